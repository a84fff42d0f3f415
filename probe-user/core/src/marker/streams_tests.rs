use super::super::layout::tests::{buffer, complete, put};
use super::super::objects::MarkerPlace;
use super::*;
use crate::marker::{EventsOnly, Ticks};
use crate::units::{FuncId, Tid};
use ctrace_common::{Comm, Record};
use proptest::prelude::*;

pub(super) const ID: BufferId = BufferId { pid: Pid(10), address: 0x7000_0000_1000 };
pub(super) const STACK: u64 = 0x7fff_1234_5678;
pub(super) const SECTION: u64 = 0x5555_5555_4000;

const COMM: Comm = [0; 16];

/// Reports a change in a process.
pub(super) fn change(markers: &mut Markers, time: u64, pid: u32, change: Change) {
    let (time, pid, tid) = (Nanos(time), Pid(pid), Tid(pid));
    markers.process_changed(&ProcessEvent { time, pid, tid, lost_before: 0, change });
}

pub(super) fn exec(markers: &mut Markers, time: u64) {
    change(markers, time, 10, Change::Exec { comm: COMM, by: 10, held: false });
}

fn exit(markers: &mut Markers, time: u64, pid: u32) {
    change(markers, time, pid, Change::ProcessExit { comm: COMM, status: 0 });
}

pub(super) fn sample(ticks: u64) -> ClockSample {
    ClockSample { ticks: Ticks(ticks), time: Nanos(ticks / 2) }
}

/// The load bias of the object.
pub(super) const BIAS: u64 = 0x5555_5555_0000;

pub(super) fn object(markers: &mut Markers, functions: &[Option<FuncId>]) -> ObjectId {
    let place = |of: &Option<FuncId>| of.map(|function| MarkerPlace::new(function, 0));
    let functions = functions.iter().map(place).collect();
    markers.add_object(MarkerObject { section: SECTION - BIAS, functions })
}

fn add_sites(markers: &mut Markers, pid: u32, functions: &[Option<FuncId>]) {
    let object = object(markers, functions);
    markers.map_object(Pid(pid), object, BIAS, Nanos::ZERO);
}

/// Takes no events.
fn nothing() -> EventsOnly<impl FnMut(usize, &[Event])> {
    EventsOnly(|_, new| panic!("{new:?}"))
}

pub(super) fn markers() -> Markers {
    let mut markers = Markers::default();
    add_sites(&mut markers, 10, &[Some(FuncId(0)), None, Some(FuncId(2))]);
    markers.sample(sample(0), Nanos::MAX, &mut nothing());
    markers
}

pub(super) type Written = (u64, u64, u64, bool);

/// Makes a buffer of batch `batch` with these events from the first slot on.
pub(super) fn reading(batch: u64, events: u64, written: &[Written]) -> Reading {
    let mut bytes = buffer(64, batch, events);
    for (index, event) in written.iter().enumerate() {
        put(&mut bytes, index, *event);
    }
    Reading { buffer: ID, tid: Tid(11), bytes, time: Nanos::ZERO, passed: None, before: None }
}

pub(super) fn events(markers: &mut Markers, at: u64) -> Vec<Event> {
    lanes(markers, at, Nanos::MAX).into_iter().flat_map(|(_, events)| events).collect()
}

/// Returns all events up to `through`, lane by lane.
fn lanes(markers: &mut Markers, at: u64, through: Nanos) -> Vec<(usize, Vec<Event>)> {
    let mut lanes = Vec::new();
    markers.sample(
        sample(at),
        through,
        &mut EventsOnly(|lane, new| lanes.push((lane, new.to_vec()))),
    );
    markers.release(Nanos::MAX, &mut EventsOnly(|lane, new| lanes.push((lane, new.to_vec()))));
    lanes
}

#[test]
fn slots_become_events() {
    let mut markers = markers();
    let sp = (STACK - 0x100) & !15;
    markers.read(reading(0, 0, &[(1000, sp, SECTION, false), (3000, sp, SECTION, true)]));
    let enter = Record {
        ts_ns: 500,
        sp,
        pid: 10,
        tid: 11,
        probe: 0,
        kind: Kind::ScopeEnter as u8,
        ..Record::default()
    };
    let exit = Record { ts_ns: 1500, kind: Kind::ScopeExit as u8, ..enter };
    assert_eq!(events(&mut markers, 4000), [enter, exit].map(Event::from));
    assert_eq!((markers.lost(), markers.take_malformed()), (0, 0));
}

#[test]
fn a_whole_call_becomes_two_events() {
    let mut markers = markers();
    let sp = (STACK - 0x7_f000) & !15;
    let mut whole = reading(0, 0, &[(1000, sp, SECTION, false)]);
    complete(&mut whole.bytes, 0, 2000);
    markers.read(whole);
    let told: Vec<_> = events(&mut markers, 4000)
        .iter()
        .map(|event| (event.ts(), event.sp(), event.kind()))
        .collect();
    let enter = (500, sp, Some(Kind::ScopeEnter));
    assert_eq!(told, [enter, (1500, sp, Some(Kind::ScopeExit))]);
    assert_eq!((markers.lost(), markers.take_malformed()), (0, 0));
}

#[test]
fn events_are_in_order_of_time() {
    let mut markers = markers();
    let event = |time| (time, STACK, SECTION, false);
    markers.read(reading(0, 0, &[event(10), event(30), event(20)]));
    let times: Vec<u64> = events(&mut markers, 100).iter().map(Event::ts).collect();
    assert_eq!(times, [5, 10, 15]);
}

#[test]
fn scopes_that_were_not_chosen_are_left_out() {
    let mut markers = markers();
    markers.read(reading(0, 0, &[(1, STACK, SECTION + 32, false), (2, STACK, SECTION, false)]));
    assert_eq!(events(&mut markers, 100).len(), 1);
    assert_eq!(markers.take_malformed(), 0);
}

#[test]
fn addresses_that_are_no_scope_are_counted() {
    let mut markers = markers();
    markers.read(reading(0, 0, &[(1, STACK, 0x20, false), (2, STACK, SECTION, false)]));
    assert_eq!(events(&mut markers, 100).len(), 1);
    assert_eq!((markers.take_malformed(), markers.take_malformed()), (1, 0));
}

#[test]
fn a_header_with_reserved_bits_is_not_read() {
    let mut markers = markers();
    let mut reading = reading(0, 0, &[(1, STACK, SECTION, false)]);
    reading.bytes[44] = 1;
    markers.read(reading);
    assert!(events(&mut markers, 100).is_empty());
    assert_eq!(markers.take_malformed(), 1);
}

#[test]
fn a_lost_batch_marks_the_next_event() {
    let mut markers = markers();
    let event = (1, STACK, SECTION, false);
    markers.read(reading(0, 0, &[event]));
    markers.read(reading(2, 504, &[event, event]));
    let lost: Vec<u16> = events(&mut markers, 100).iter().map(Event::lost_before).collect();
    assert_eq!(lost, [0, 503, 0]);
    assert_eq!(markers.lost(), 503);
}

#[test]
fn each_buffer_has_a_lane_and_gives_it_back() {
    let mut markers = markers();
    add_sites(&mut markers, 20, &[Some(FuncId(1))]);
    let lane = |markers: &mut Markers, pid, address| {
        let buffer = BufferId { pid: Pid(pid), address };
        markers.read(Reading { buffer, ..reading(0, 0, &[(1, STACK, SECTION, false)]) });
        lanes(markers, 10, Nanos::MAX)[0].0
    };
    let (a, b, c) = (
        lane(&mut markers, 10, 0x1000),
        lane(&mut markers, 10, 0x2000),
        lane(&mut markers, 20, 0x1000),
    );
    assert_eq!([a, b, c], [0, 1, 2]);
    exit(&mut markers, 0, 20);
    markers.sample(sample(10), Nanos(1_000_000_000), &mut nothing());
    add_sites(&mut markers, 30, &[Some(FuncId(1))]);
    assert_eq!(lane(&mut markers, 30, 0x1000), 2);
}

#[test]
fn a_buffer_that_was_there_before_begins_with_what_is_new() {
    let mut markers = markers();
    let event = (1, STACK, SECTION, false);
    markers.adopt(ID, &reading(5, 2000, &[event, event]).bytes, Nanos::ZERO);
    markers.read(reading(5, 2000, &[event, event, event]));
    assert_eq!(events(&mut markers, 100).len(), 1);
    assert_eq!(markers.lost(), 0);
}

proptest! {
    /// No buffer contents cause a panic, or more records than slots.
    #[test]
    fn scribbled_buffers_are_survived(
        header in proptest::collection::vec(any::<u8>(), 64),
        slots in proptest::collection::vec((any::<u64>(), any::<u64>()), 0..40),
        keep_magic in any::<bool>(),
    ) {
        let mut markers = markers();
        let mut bytes = buffer(64, 0, 0);
        let from = if keep_magic { 8 } else { 0 };
        bytes[from..40].copy_from_slice(&header[from..40]);
        bytes[48..64].copy_from_slice(&header[48..64]);
        for (index, (first, second)) in slots.iter().enumerate() {
            let at = 64 + index * 16;
            bytes[at..at + 8].copy_from_slice(&first.to_le_bytes());
            bytes[at + 8..at + 16].copy_from_slice(&second.to_le_bytes());
        }
        for _ in 0..2 {
            markers.read(Reading { buffer: ID, tid: Tid(11), bytes: bytes.clone(), time: Nanos::ZERO, passed: None, before: None });
        }
        prop_assert!(events(&mut markers, 1 << 50).len() <= slots.len());
    }
}

#[test]
fn an_exec_begins_another_life() {
    let mut markers = markers();
    let event = (1, STACK, SECTION, false);
    let at = |time, reading| Reading { time: Nanos(time), ..reading };
    // They are processed in order of time, not of arrival.
    markers.read(at(7, reading(0, 0, &[event])));
    exec(&mut markers, 5);
    let object = object(&mut markers, &[Some(FuncId(5))]);
    markers.map_object(Pid(10), object, BIAS, Nanos(6));
    markers.read(at(4, reading(3, 700, &[event])));
    let probes: Vec<u32> = events(&mut markers, 100).iter().map(|event| event.func().0).collect();
    assert_eq!(probes, [0, 5]);
    assert_eq!(markers.take_malformed(), 0);
}

#[test]
fn batches_that_come_by_several_ways_are_in_order() {
    let mut markers = markers();
    let event = (1, STACK, SECTION, false);
    let batch = |batch: u64| {
        let flushed = reading(batch, batch * 252, &[event; 252]);
        Reading { time: Nanos(batch), ..flushed }
    };
    for number in [1, 3, 0, 2] {
        markers.read(batch(number));
    }
    let early = lanes(&mut markers, 50, Nanos(2));
    assert_eq!(early.iter().map(|(_, events)| events.len()).sum::<usize>(), 3 * 252);
    assert_eq!(markers.lost(), 0);
    markers.read(batch(4));
    assert_eq!(events(&mut markers, 100).len(), 2 * 252);
    assert_eq!(markers.lost(), 0);
}

#[test]
fn a_child_has_its_parents_scopes_and_buffers_of_its_own() {
    let mut markers = markers();
    let event = (1, STACK, SECTION, false);
    markers.read(reading(0, 0, &[event, event]));
    change(&mut markers, 0, 10, Change::Fork { comm: COMM, child: 20, child_tid: 20 });
    let buffer = BufferId { pid: Pid(20), ..ID };
    markers.read(Reading { buffer, ..reading(0, 0, &[event]) });
    let pids: Vec<u32> = events(&mut markers, 100).iter().map(|event| event.pid().0).collect();
    assert_eq!(pids, [10, 10, 20]);
}

#[test]
fn the_sites_of_a_runtime_tell_where_its_object_is() {
    let mut markers = Markers::default();
    let object = object(&mut markers, &[Some(FuncId(3))]);
    let number = markers.add_runtime(MarkerRuntime { object, flush: 0x100, register: 0x200 });
    let passed = |address| Passed { runtime: number, address };
    let site = BIAS + 0x200;
    let registered = Change::Buffer { runtime: number, inside: 10, address: ID.address, site };
    change(&mut markers, 0, 10, registered);
    let flushed = |pid, address| {
        let buffer = BufferId { pid: Pid(pid), ..ID };
        let event = (1, STACK, SECTION, false);
        Reading { buffer, passed: Some(passed(address)), ..reading(0, 0, &[event]) }
    };
    markers.sample(sample(0), Nanos::MAX, &mut nothing());
    markers.read(reading(0, 0, &[(1, STACK, SECTION, false)]));
    markers.read(flushed(20, BIAS + 0x100));
    assert_eq!(events(&mut markers, 100).len(), 2);
    assert_eq!(markers.take_malformed(), 0);
}

#[test]
fn what_a_dying_thread_ships_after_the_end_of_its_process_counts() {
    let mut markers = markers();
    exit(&mut markers, 5, 10);
    markers.sample(sample(20), Nanos(6), &mut nothing());
    markers.read(Reading { time: Nanos(7), ..reading(0, 0, &[(1, STACK, SECTION, false)]) });
    assert_eq!(events(&mut markers, 100).len(), 1);
    assert_eq!(markers.take_malformed(), 0);
}

#[test]
fn a_batch_that_nothing_follows_is_lost_as_far_as_it_was_not_seen() {
    let mut markers = markers();
    let event = (1, STACK, SECTION, false);
    markers.read(reading(0, 0, &[event; 200]));
    assert_eq!(events(&mut markers, 100).len(), 200);
    markers.set_cut_off([(ID, 252)], Nanos::ZERO);
    assert_eq!(markers.lost(), 52);
    // A batch that follows after all does not change the count.
    markers.read(reading(1, 252, &[event]));
    assert_eq!(events(&mut markers, 200).len(), 1);
    assert_eq!(markers.lost(), 52);
}

/// Makes a buffer of pid 10 that was flushed at `time`, with an entry as many ticks (half a
/// nanosecond each) after the start.
fn flushed_at(batch: u64, time: Nanos, ticks: u64) -> Reading {
    Reading { time, ..reading(batch, batch, &[(ticks, STACK, SECTION, false)]) }
}

#[test]
fn events_are_not_handed_over_before_their_time() {
    let second = Nanos(1_000_000_000);
    let mut markers = markers();
    markers.read(flushed_at(0, second, 2 * 100_000_000));
    markers.read(flushed_at(1, second, 2 * 500_000_000));
    markers.sample(sample(2_000_000_000), Nanos::MAX, &mut nothing());
    let mut released = Vec::new();
    for watermark in [99, 100, 499, 500].map(Nanos::from_millis) {
        let mut events = Vec::new();
        markers
            .release(watermark, &mut EventsOnly(|_, new| events.extend(new.iter().map(Event::ts))));
        released.push(events);
    }
    assert_eq!(released, [vec![], vec![100_000_000], vec![], vec![500_000_000]]);
}

#[test]
fn what_waits_is_of_the_process_as_it_was_then() {
    let second = Nanos(1_000_000_000);
    let mut markers = markers();
    markers.read(flushed_at(0, second, 2 * 500_000_000));
    exec(&mut markers, 2 * second.0);
    // The scopes are those of the old program.
    assert_eq!(events(&mut markers, 2_000_000_000).len(), 1);
    assert_eq!(markers.take_malformed(), 0);
}

#[test]
fn what_waits_is_not_lost_and_what_is_missing_before_it_is() {
    let second = Nanos(1_000_000_000);
    // The number of events up to the dropped batch, and before the waiting reading.
    for (dropped_at, waits) in [(253, 0), (252, 252)] {
        let mut markers = markers();
        let waiting = reading(waits / 252, waits, &[(2 * 500_000_000, STACK, SECTION, false)]);
        markers.read(Reading { time: second, ..waiting });
        markers.sample(sample(2_000_000_000), Nanos::MAX, &mut nothing());
        markers.set_cut_off([(ID, dropped_at)], Nanos::ZERO);
        assert_eq!(markers.lost(), 252);
        assert_eq!(events(&mut markers, 2_000_000_001).len(), 1);
        assert_eq!(markers.lost(), 252);
    }
}

#[test]
fn clocks_that_are_set_back_change_nothing_that_waits() {
    let second = Nanos(1_000_000_000);
    let mut markers = markers();
    markers.read(flushed_at(0, second, 2 * 500_000_000));
    markers.sample(sample(2_000_000_000), Nanos::MAX, &mut nothing());
    let mut times = Vec::new();
    markers.sample(
        sample(10),
        Nanos::MAX,
        &mut EventsOnly(|_, new| times.extend(new.iter().map(Event::ts))),
    );
    assert_eq!(times, [500_000_000]);
}

#[test]
fn a_buffer_stays_in_order_when_its_times_do_not() {
    let second = Nanos(1_000_000_000);
    let mut markers = markers();
    markers.read(flushed_at(0, second, 2 * 500_000_000));
    markers.read(flushed_at(1, second.saturating_add(Nanos(1)), 2 * 400_000_000));
    markers.sample(sample(3_000_000_000), Nanos::MAX, &mut nothing());
    let mut times = Vec::new();
    markers.release(
        Nanos::from_millis(400),
        &mut EventsOnly(|_, new| times.extend(new.iter().map(Event::ts))),
    );
    assert_eq!(times, [500_000_000, 400_000_000]);
    assert_eq!(markers.lost(), 0);
}

/// Generates batches: a buffer, the times of its events and a watermark, both in milliseconds.
fn batches() -> impl Strategy<Value = Vec<(u64, Vec<u64>, u64)>> {
    let times = proptest::collection::vec(1u64..1_000, 1..5);
    proptest::collection::vec((0u64..2, times, 0u64..1_000), 1..30)
}

proptest! {
    /// For any order of times, waiting changes no event, and nothing waits too long.
    #[test]
    fn waiting_changes_nothing(batches in batches()) {
        let (mut prompt, mut patient) = (markers(), markers());
        let (mut expected, mut handed) = ([vec![], vec![]], [vec![], vec![]]);
        let mut written = [(0, 0); 2];
        for (step, (which, times, watermark)) in batches.into_iter().enumerate() {
            let (batch, events) = &mut written[which as usize];
            let slots: Vec<Written> =
                times.iter().map(|ms| (ms * 2_000_000, STACK, SECTION, false)).collect();
            let buffer = BufferId { address: 0x1000 * (1 + which), ..ID };
            let time = Nanos(2_000_000_000 + step as u64);
            let reading = Reading { buffer, time, ..reading(*batch, *events, &slots) };
            (*batch, *events) = (*batch + 1, *events + slots.len() as u64);
            for markers in [&mut prompt, &mut patient] {
                markers.read(reading.clone());
                let now = sample(5_000_000_000 + 2 * step as u64);
                markers.sample(now, Nanos::MAX, &mut nothing());
            }
            prompt.release(Nanos::MAX, &mut EventsOnly(|lane, new| expected[lane].extend_from_slice(new)));
            let watermark = Nanos::from_millis(watermark);
            patient.release(watermark, &mut EventsOnly(|lane, new| handed[lane].extend_from_slice(new)));
            for (expected, handed) in expected.iter().zip(&handed) {
                prop_assert!(expected[handed.len()..].iter().all(|event| event.ts() > watermark.0));
            }
        }
        patient.release(Nanos::MAX, &mut EventsOnly(|lane, new| handed[lane].extend_from_slice(new)));
        prop_assert_eq!(handed, expected);
        prop_assert_eq!((prompt.lost(), patient.lost()), (0, 0));
    }
}

/// Returns buffers of pid 10 at any address.
pub(super) fn forged(number: u64) -> BufferId {
    BufferId { address: 0x1000 * number, ..ID }
}
