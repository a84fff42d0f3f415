//! Hostile targets, which register and write unlike any runtime: the work for them is bounded.

use super::tests::{SECTION, STACK, events, forged, markers, object, reading, sample};
use crate::marker::EventsOnly;
use crate::marker::reading::Reading;
use crate::units::{FuncId, Nanos, Pid};

/// In an earlier version, each registration visited all dropped batches or all held readings.
#[test]
fn forged_registrations_cost_little_each() {
    const MANY: u64 = 300_000;
    let mut markers = markers();
    markers.set_cut_off((1..=8_000).map(|number| (forged(number), 1)), Nanos::ZERO);
    let object = object(&mut markers, &[Some(FuncId(0)); 4]);
    for number in 0..MANY {
        markers.map_object(Pid(10), object, number << 12, Nanos::ZERO);
    }
    assert!(events(&mut markers, 100).is_empty());
    assert_eq!(markers.lost(), 8_000);
    // All were recorded for which there is room.
    assert!(markers.take_malformed() > MANY - 5_000);
}

#[test]
fn a_process_has_so_many_buffers_and_no_more() {
    let mut markers = markers();
    let event = (1, STACK, SECTION, false);
    // Less than 1 MiB is held at a time.
    for number in 0..70_000 {
        markers.read(Reading { buffer: forged(number), ..reading(0, 0, &[event]) });
        if number % 200 == 199 {
            markers.sample(sample(100 + number), Nanos::MAX, &mut EventsOnly(|_, _| {}));
            markers.release(Nanos::MAX, &mut EventsOnly(|_, _| {}));
        }
    }
    assert_eq!(markers.take_malformed(), 70_000 - (1 << 16));
}

#[test]
fn slots_of_an_unknown_kind_are_counted_and_left_out() {
    let event = (2, STACK, SECTION, false);
    // A name that is an exit, a sample that is one and of no chosen scope, a value, a long piece of a name
    // and an exit that are whole, and a sample of a scope.
    let kinds = [
        (5, SECTION),
        (29, SECTION + 32),
        (18, SECTION),
        (26, SECTION),
        (3, SECTION),
        (28, SECTION),
    ];
    for (bits, site) in kinds {
        let mut markers = markers();
        markers.read(reading(0, 0, &[event, (1, STACK, site | bits, false), event]));
        assert_eq!(events(&mut markers, 100).len(), 2, "{bits:#b}");
        assert_eq!(markers.take_malformed(), 1, "{bits:#b}");
    }
}
