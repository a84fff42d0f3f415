//! What is told of one call: the calls around it and inside it, and what is not known.

use super::tests::{BEGIN, Made, OTHER, record};
use super::*;
use crate::stop::Stop;
use crate::units::Nanos;

fn call(distance: u64, duration: u64, path: u32) -> (u32, u64, u64, u32, bool) {
    (0, distance, duration, path, true)
}

fn made(calls: Vec<(u32, u64, u64, u32, bool)>) -> Made {
    Made { length: 1_000, is_lossy: false, calls, open: Vec::new() }
}

fn near(chunks: &[Made], depth: u32, time: u64, slack: u64) -> Option<Near> {
    let recording = record(chunks);
    let timeline = Timeline::build(&recording, &AtomicU64::new(0)).expect("there is room");
    let row = RowKey { thread: ThreadId(0), depth };
    timeline.near(&recording, row, Nanos(BEGIN + time), slack, &Stop::default())
}

#[test]
fn a_call_is_told_with_those_around_and_inside_it() {
    // f0 calls f1 twice in the second chunk; the first f1 calls f2 in it, and f0 began in the first.
    let calls = vec![call(0, 1_500, 1), call(100, 300, 2), call(600, 200, 2), call(650, 50, 3)];
    let chunks = [made(Vec::new()), made(calls)];
    let told = |depth, time, slack| {
        let Near { call, parents, inside, .. } = near(&chunks, depth, time, slack)?;
        let paths: Vec<_> = parents.iter().map(|(_, span)| span.path).collect();
        let starts: Vec<_> = inside.calls.iter().map(|span| span.start.0 - BEGIN).collect();
        assert_eq!(inside.doubts, Doubts::default());
        Some((call.start.0 - BEGIN, paths, starts, inside.count, inside.total))
    };
    assert_eq!(told(0, 600, 0), Some((500, vec![], vec![1_200, 1_600], 2, 500)));
    assert_eq!(told(1, 1_320, 0), Some((1_200, vec![1], vec![1_300], 1, 50)));
    assert_eq!(told(2, 1_320, 0), Some((1_300, vec![1, 2], vec![], 0, 0)));
    assert_eq!(told(2, 1_400, 0), None);
    assert_eq!(told(2, 1_400, 51).map(|found| found.0), Some(1_300));
    assert_eq!(told(3, 1_320, 1_000), None);
}

#[test]
fn a_call_around_it_that_is_missing_changes_no_depth() {
    // The f1 between f0 and f2 was lost.
    let chunks = [made(vec![call(0, 900, 1), call(650, 50, 3)])];
    let near = near(&chunks, 2, 320, 0).expect("it is there");
    let told: Vec<_> = near.parents.iter().map(|(row, span)| (row.depth, span.path)).collect();
    assert_eq!((told, near.missing_parents), (vec![(0, 1)], 1));
}

#[test]
fn own_time_is_doubted_if_calls_inside_may_be_unknown() {
    let outer = call(100, 800, 1);
    let doubts = |calls: Vec<_>, is_lossy| {
        let calls = calls.into_iter().chain([outer]).collect();
        let chunks = [Made { is_lossy, ..made(calls) }, made(Vec::new())];
        near(&chunks, 0, 500, 0).expect("it is there").inside.doubts
    };
    let none = Doubts::default();
    assert_eq!(doubts(vec![call(200, 50, 2)], false), none);
    assert_eq!(doubts(vec![call(200, 50, 2)], true), Doubts { lost: true, ..none });
    let untimed = (0, 200, 50, 2, false);
    assert_eq!(doubts(vec![untimed], false), Doubts { untimed: true, ..none });
    assert_eq!(doubts(vec![call(200, 50, OTHER)], false), Doubts { others: true, ..none });
    assert_eq!(doubts(vec![call(0, 50, OTHER)], false), none, "it came after the call");
    let of_others = (1, 200, 50, OTHER, true);
    assert_eq!(doubts(vec![of_others], false), none, "another thread made it");
}

#[test]
fn a_call_beyond_the_bounds_has_no_calls_around_it() {
    let chunks = [made(vec![call(0, 900, 1), call(200, 50, OTHER)])];
    let near = near(&chunks, 0, 760, 0).expect("it is there");
    assert_eq!((near.call.path, near.is_other), (OTHER, true));
    assert_eq!((near.parents.len(), near.missing_parents), (0, 0));
}
