use super::super::super::buffer::{BATCHES_AT_ONCE, MOST_EVENTS_PER_BATCH};
use super::super::super::reading::Reading;
use super::super::tests::{
    BIAS, ID, SECTION, STACK, Written, events, exec, forged, markers, object, reading,
};
use crate::units::{FuncId, Nanos, Pid};

#[test]
fn counts_that_cannot_be_are_no_losses() {
    let mut markers = markers();
    let dropped = (1..=2_000).map(|number| (forged(number), u64::MAX / 3));
    markers.set_cut_off([(ID, 252)].into_iter().chain(dropped), Nanos::ZERO);
    assert_eq!((markers.lost(), markers.implausible_counts()), (252, 2_000));
    assert_eq!(markers.take_malformed(), 2_000);
    // Each of these counts is possible, but not all together.
    let dropped = (1..=2_000).map(|number| (forged(number), 500));
    markers.set_cut_off(dropped, Nanos::ZERO);
    let most = BATCHES_AT_ONCE * MOST_EVENTS_PER_BATCH;
    assert!((most - 500..=most).contains(&markers.lost()), "{}", markers.lost());
    let told = (most - 252) / 500;
    assert_eq!(markers.implausible_counts(), 2_000 + 2_000 - told);
}

/// A paused session samples the clocks late.
#[test]
fn what_can_be_lost_is_reckoned_up_to_the_telling() {
    let mut markers = markers();
    let many = BATCHES_AT_ONCE * MOST_EVENTS_PER_BATCH + 7;
    markers.set_cut_off([(ID, many)], Nanos::from_millis(1));
    assert_eq!((markers.lost(), markers.take_malformed()), (many, 0));
}

#[test]
fn what_was_told_lost_of_others_is_not_taken_back() {
    let mut markers = markers();
    let event = (1, STACK, SECTION, false);
    markers.read(reading(1, 500, &[event]));
    events(&mut markers, 100);
    assert_eq!(markers.lost(), 500);
    // This buffer delivered more events than it claims to have written.
    let other =
        |batch, written: &[Written]| Reading { buffer: forged(9), ..reading(batch, 0, written) };
    markers.read(other(0, &[event; 200]));
    markers.read(other(1, &[event]));
    events(&mut markers, 200);
    assert_eq!(markers.lost(), 500);
}

#[test]
fn a_dropped_batch_told_of_before_the_exec_is_of_the_new_program() {
    let mut markers = markers();
    let event = (1, STACK, SECTION, false);
    // Counts take effect at once, an exec in its turn.
    markers.set_cut_off([(ID, 252)], Nanos::ZERO);
    assert_eq!(markers.lost(), 252);
    exec(&mut markers, 5);
    let object = object(&mut markers, &[Some(FuncId(5))]);
    markers.map_object(Pid(10), object, BIAS, Nanos(6));
    markers.read(Reading { time: Nanos(7), ..reading(2, 700, &[event]) });
    assert_eq!(events(&mut markers, 100).len(), 1);
    assert_eq!(markers.lost(), 700, "not once more");
}
