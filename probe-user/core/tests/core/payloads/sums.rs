//! Sums of calls by a value while they happen, against what each call was.

use super::*;
use ctrace_core::recording::{CallValue, ValueSum, ValueSums};
use std::collections::BTreeMap;

const LOAD: u32 = 2;

fn taken(sums: &mut ValueSums) -> BTreeMap<CallValue, (u64, u64)> {
    let each = sums.drain().map(|(function, value, ValueSum { calls, total })| {
        assert_eq!(&*function.name, "load");
        (value, (calls, total.0))
    });
    each.collect()
}

fn feed(sums: &mut ValueSums, trace: &mut Trace, to: u64) {
    trace.engine.advance(Nanos(to));
    trace.engine.end_chunk(Nanos(to));
    for block in trace.engine.take_blocks() {
        sums.take(&block).expect("blocks of an engine are sound");
    }
}

fn key(key: u64) -> CallValue {
    CallValue::Known(Value::Unsigned(key))
}

#[test]
fn each_call_counts_once_with_its_value_when_it_has_ended() {
    let mut trace = Trace::new(Filter::default());
    let mut sums = ValueSums::new("key", |function| &*function.name != "stage");
    trace.push_with(point(STAGE, 700, 8), 0, &[1, 2], 0);
    trace.push_with(enter(LOAD, 900, 10), 0, &[7], 0).push(ret(LOAD, 900, 40));
    trace.push_with(enter(LOAD, 900, 50), 0, &[7], 1).push(ret(LOAD, 900, 55));
    trace.push(enter(LOAD, 900, 60)).push(ret(LOAD, 900, 62));
    trace.push_with(enter(LOAD, 900, 70), 0, &[9], 0);
    feed(&mut sums, &mut trace, 80);
    let expected = [(key(7), (1, 30)), (CallValue::Unread, (1, 5)), (CallValue::Lost, (1, 2))];
    assert_eq!(taken(&mut sums), BTreeMap::from(expected));
    // One that was open counts in the chunk in which it ends.
    trace.push(ret(LOAD, 900, 90));
    trace.push_with(enter(LOAD, 900, 100), 0, &[7], 0).push(ret(LOAD, 900, 103));
    feed(&mut sums, &mut trace, 110);
    assert_eq!(taken(&mut sums), BTreeMap::from([(key(7), (1, 3)), (key(9), (1, 20))]));
    feed(&mut sums, &mut trace, 120);
    assert!(taken(&mut sums).is_empty());
}

#[test]
fn more_values_than_there_is_room_for_are_others() {
    let mut trace = Trace::new(Filter::default());
    let mut sums = ValueSums::new("key", |_| true);
    let mut now = 10;
    for value in (0..5_000).chain([3, 4_999]) {
        trace.push_with(enter(LOAD, 900, now), 0, &[value], 0).push(ret(LOAD, 900, now + 2));
        now += 5;
    }
    feed(&mut sums, &mut trace, now);
    let all = taken(&mut sums);
    assert_eq!(all.len(), 4_096 + 1);
    // The latest calls of a chunk come first.
    assert_eq!(all[&CallValue::Other], (5_000 - 4_096, 2 * (5_000 - 4_096)));
    assert_eq!(all[&key(3)], (2, 4));
    assert_eq!(all.values().map(|(calls, _)| calls).sum::<u64>(), 5_002);
}
