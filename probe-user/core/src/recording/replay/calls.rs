//! Reports of the slowest calls and the calls inside them.

use super::inside::{InnerSum, Inside, PlacedCall};
use super::lens::Lens;
use super::slowest::SlowCall;
use super::walk::callers;
use crate::calls::paths::{Node, ROOT, functions_on};
use crate::recording::Recording;
use crate::report::{CallReport, InsideReport};
use crate::units::{FuncId, Nanos};
use std::collections::{BTreeMap, HashMap};

/// If a single call makes at most this many calls of a function, each gets a row of its own.
const FEW: usize = 3;

pub(crate) fn reports(
    recording: &Recording,
    lens: &Lens<'_>,
    found: &[SlowCall],
    inside: &[Inside],
) -> Vec<CallReport> {
    let nodes = lens.paths.nodes();
    let name = |function: usize| recording.functions()[function].name.clone();
    let reports = found.iter().zip(inside).map(|(found, inside)| {
        let rows = match &inside.sums {
            None => tree(&inside.each, nodes, recording.nodes()),
            Some(sums) => by_path(sums, found.node, nodes),
        };
        let (own, rows) = with_own(found.call.duration, rows);
        let functions = functions_on(found.node, nodes).into_iter();
        let functions: Vec<usize> = functions.map(FuncId::index).collect();
        let thread = recording.thread(found.thread);
        CallReport {
            function: nodes[found.node as usize].func.index(),
            path: functions.iter().map(|&function| name(function)).collect(),
            functions,
            pid: thread.map(|thread| thread.pid),
            tid: thread.map(|thread| thread.tid),
            thread: thread.map(|thread| thread.name.clone()),
            start_ns: Nanos(found.call.start),
            duration_ns: Nanos(found.call.duration),
            self_ns: Nanos(own),
            values: Default::default(),
            points: Default::default(),
            inside_calls: rows.iter().map(|(row, _)| row.sum.calls).sum(),
            inside: rows
                .into_iter()
                .map(|(row, own)| InsideReport {
                    parent: row.parent,
                    function: nodes[row.node as usize].func.index(),
                    name: name(nodes[row.node as usize].func.index()),
                    calls: row.sum.calls,
                    start_ns: Nanos(row.sum.start),
                    total_ns: Nanos(row.sum.total),
                    self_ns: Nanos(own),
                    max_ns: Nanos(row.sum.max()),
                })
                .collect(),
        }
    });
    reports.collect()
}

struct Row {
    parent: Option<usize>,
    node: u32,
    sum: InnerSum,
}

/// Computes the own times of the call and of each row.
fn with_own(duration: u64, rows: Vec<Row>) -> (u64, Vec<(Row, u64)>) {
    let (mut own, mut owns) = (duration, rows.iter().map(|r| r.sum.total).collect::<Vec<_>>());
    for row in &rows {
        let caller = row.parent.map_or(&mut own, |parent| &mut owns[parent]);
        *caller = caller.saturating_sub(row.sum.total);
    }
    (own, rows.into_iter().zip(owns).collect())
}

/// Makes rows from single calls, in order of time. Many calls of one function are one row.
fn tree(each: &[PlacedCall], nodes: &[Node], recorded: &[Node]) -> Vec<Row> {
    let mut callees: Vec<Vec<usize>> = vec![Vec::new(); each.len() + 1];
    let callers = callers(each.iter().map(|kept| &kept.call), recorded);
    for (index, caller) in callers.into_iter().enumerate() {
        callees[caller.unwrap_or(each.len())].push(index);
    }
    let mut rows = Vec::new();
    // Groups of calls that make one row each, with the caller's row; the next group is last.
    let mut to_do = groups(&[each.len()], &callees, each, nodes, None);
    while let Some((parent, calls)) = to_do.pop() {
        let mut sum = InnerSum::default();
        calls.iter().for_each(|&call| sum.add(&InnerSum::of(&each[call].call)));
        rows.push(Row { parent, node: each[calls[0]].node, sum });
        to_do.extend(groups(&calls, &callees, each, nodes, Some(rows.len() - 1)));
    }
    rows
}

type Group = (Option<usize>, Vec<usize>);

/// Groups the calls that these calls made, one group for each row, latest first.
fn groups(
    calls: &[usize],
    callees: &[Vec<usize>],
    each: &[PlacedCall],
    nodes: &[Node],
    parent: Option<usize>,
) -> Vec<Group> {
    let mut by_function: HashMap<u32, Vec<usize>> = HashMap::new();
    for &callee in calls.iter().flat_map(|&call| &callees[call]) {
        let function = nodes[each[callee].node as usize].func.0;
        by_function.entry(function).or_default().push(callee);
    }
    let one = calls.len() == 1;
    let groups = by_function.into_values().flat_map(|mut of_function| {
        of_function.sort_unstable_by(|a, b| b.cmp(a));
        match one && of_function.len() <= FEW {
            true => of_function.into_iter().map(|call| vec![call]).collect(),
            false => vec![of_function],
        }
    });
    let mut groups: Vec<Group> = groups.map(|calls| (parent, calls)).collect();
    groups.sort_unstable_by_key(|(_, calls)| calls[0]);
    groups
}

/// Makes rows from sums by path.
fn by_path(sums: &BTreeMap<u32, InnerSum>, of: u32, nodes: &[Node]) -> Vec<Row> {
    let mut places = HashMap::new();
    let mut rows = Vec::new();
    for (&node, &sum) in sums {
        let mut above = nodes[node as usize].parent;
        while above != ROOT && above != of && !places.contains_key(&above) {
            above = nodes[above as usize].parent;
        }
        let parent = if above == of { None } else { places.get(&above).copied() };
        places.insert(node, rows.len());
        rows.push(Row { parent, node, sum });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::paths::Paths;
    use crate::calls::spool::Call;
    use crate::units::FuncId;

    /// Parent, function, calls, start of the first call, total time, own time.
    type Expected = (Option<usize>, u32, u64, u64, u64, u64);

    #[track_caller]
    fn check(rows: Vec<Row>, nodes: &[Node], expected: &[Expected]) {
        let (_, rows) = with_own(1_000, rows);
        let rows = rows.iter().map(|(row, own)| {
            let InnerSum { calls, start, total, .. } = row.sum;
            (row.parent, nodes[row.node as usize].func.0, calls, start, total, *own)
        });
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }

    /// Function 0 calls 1 three times and 2 five times; 1 calls 2 once, the last time four times.
    fn calls() -> (Paths, [u32; 4], Vec<(u32, u64, u64)>) {
        let mut paths = Paths::new(9, 9);
        let a = paths.child(ROOT, FuncId(0));
        let ab = paths.child(a, FuncId(1));
        let (abc, ac) = (paths.child(ab, FuncId(2)), paths.child(a, FuncId(2)));
        let mut calls = vec![(ab, 10, 10), (abc, 11, 5), (ab, 30, 10), (abc, 31, 5), (ab, 50, 30)];
        calls.extend((0..4).map(|n| (abc, 51 + n * 5, 4)));
        calls.extend((0..5).map(|n| (ac, 100 + n, 1)));
        (paths, [a, ab, abc, ac], calls)
    }

    #[test]
    fn few_calls_are_told_one_by_one_and_many_as_one() {
        let (paths, _, mut calls) = calls();
        // Latest first, each call before those inside it.
        calls.sort_by_key(|(_, start, duration)| std::cmp::Reverse((start + duration, *duration)));
        let each: Vec<PlacedCall> = calls
            .iter()
            .enumerate()
            .map(|(place, &(node, start, duration))| {
                PlacedCall::new(Call { start, duration, node, timed: true }, node, 0, place)
            })
            .collect();
        let expected = [
            (None, 1, 1, 10, 10, 5),
            (Some(0), 2, 1, 11, 5, 5),
            (None, 1, 1, 30, 10, 5),
            (Some(2), 2, 1, 31, 5, 5),
            (None, 1, 1, 50, 30, 14),
            (Some(4), 2, 4, 51, 16, 16),
            (None, 2, 5, 100, 5, 5),
        ];
        check(tree(&each, paths.nodes(), paths.nodes()), paths.nodes(), &expected);
    }

    #[test]
    fn sums_are_told_by_path() {
        let (paths, [a, ..], calls) = calls();
        let mut sums = BTreeMap::<u32, InnerSum>::new();
        for (node, start, duration) in calls {
            let sum = sums.entry(node).or_default();
            sum.add(&InnerSum::of(&Call { start, duration, node, timed: true }));
        }
        let expected =
            [(None, 1, 3, 10, 50, 24), (Some(0), 2, 6, 11, 26, 26), (None, 2, 5, 100, 5, 5)];
        check(by_path(&sums, a, paths.nodes()), paths.nodes(), &expected);
    }
}
