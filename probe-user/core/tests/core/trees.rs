//! Slow calls in a recording, and the calls inside them.

use crate::support::{Event, enter, function, point, recorded, ret};
use ctrace_core::recording::replay::{SlowCallCriteria, Tree, trees};
use ctrace_core::recording::{Recording, Start};
use ctrace_core::units::Nanos;

/// A slow call over three chunks with three calls inside it, and one of another thread.
fn groups() -> [Vec<Event>; 3] {
    [
        vec![enter(0, 900, 10), enter(1, 800, 20), enter(2, 700, 22), ret(2, 700, 24)],
        vec![ret(1, 800, 50), point(2, 850, 60), enter(2, 800, 61), ret(2, 800, 65)],
        vec![enter(0, 900, 70).on(7), ret(0, 900, 105).on(7), ret(0, 900, 110)],
    ]
}

fn wanted() -> SlowCallCriteria {
    let functions = vec![true, false, false];
    SlowCallCriteria { threshold: Nanos(30), functions, since: Nanos::ZERO, most: 9, inside: 9 }
}

fn read(groups: &[Vec<Event>], wanted: &SlowCallCriteria) -> Vec<Tree> {
    let functions = ["outer", "inner", "leaf"].map(function);
    let groups: Vec<&[Event]> = groups.iter().map(Vec::as_slice).collect();
    let bytes = recorded::record(&functions, &Start::default(), &groups, true);
    let recording = Recording::open(bytes).expect("it was written");
    let mut trees = trees(&recording, wanted).expect("it was written");
    trees.sort_by_key(|tree| tree.branches[0].call.start());
    trees
}

/// Returns the start, duration and caller of each call, and whether it is slow.
fn told(tree: &Tree) -> Vec<(u64, u64, Option<usize>, bool)> {
    let told = tree.branches.iter().map(|branch| {
        let call = branch.call;
        (call.start().0, call.duration().0, branch.caller, branch.is_slow)
    });
    told.collect()
}

#[test]
fn a_slow_call_has_the_calls_inside_it_from_all_chunks() {
    let all = read(&groups(), &wanted());
    let [one, two] = &all[..] else { panic!("{all:?}") };
    let inside = [(61, 4, Some(0), false), (20, 30, Some(0), false), (22, 2, Some(2), false)];
    assert_eq!(told(one), [&[(10, 100, None, true)], &inside[..]].concat());
    // The point has no duration.
    assert_eq!((one.left_out, one.is_cut), (1, false));
    assert_eq!(told(two), [(70, 35, None, true)]);
    assert_ne!(one.thread, two.thread);
}

#[test]
fn the_longest_are_told_and_the_others_counted() {
    let all = read(&groups(), &SlowCallCriteria { inside: 1, ..wanted() });
    assert_eq!(told(&all[0]), [(10, 100, None, true), (20, 30, Some(0), false)]);
    assert_eq!(all[0].left_out, 3);
    assert_eq!(read(&groups(), &SlowCallCriteria { most: 1, ..wanted() }).len(), 1);
}

#[test]
fn slow_calls_inside_slow_ones_are_told_once() {
    let all = read(&groups(), &SlowCallCriteria { functions: vec![true; 3], ..wanted() });
    assert_eq!(all.len(), 2);
    assert_eq!(told(&all[0])[2], (20, 30, Some(0), true));
}

#[test]
fn what_was_told_before_is_not_told_again() {
    let functions = vec![false, true, false];
    let wanted = SlowCallCriteria { functions, ..wanted() };
    assert_eq!(read(&groups(), &wanted).len(), 1);
    let since = Nanos(65);
    assert_eq!(read(&groups(), &SlowCallCriteria { since, ..wanted }).len(), 0);
}
