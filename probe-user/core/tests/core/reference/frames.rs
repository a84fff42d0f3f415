//! Frames, from a recording cut into chunks anywhere, against the list of all its calls.

use crate::reference::extras::apart;
use crate::reference::program::{FUNCTIONS, run, steps};
use crate::reference::replay::{cuts, record};
use crate::support::*;
use ctrace_core::engine::ReportMeta;
use ctrace_core::recording::replay::{Query, report_with};
use ctrace_core::report::{CallReport, Extras, FramePart, FramesAsked, FramesReport};
use ctrace_core::units::{FuncId, Nanos};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Returns calls and own time of each function within frames.
fn parts(frames: &[&CallReport]) -> BTreeMap<usize, (u64, u64)> {
    let mut parts = BTreeMap::<usize, (u64, u64)>::new();
    for frame in frames {
        let inside = frame.inside.iter().map(|row| (row.function, row.calls, row.self_ns.0));
        for (function, calls, own) in inside.chain([(frame.function, 1, frame.self_ns.0)]) {
            let part = parts.entry(function).or_default();
            *part = (part.0 + calls, part.1 + own);
        }
    }
    parts
}

/// Returns whether it is a call of the function, and in no other call of it.
fn is_outermost(call: &CallReport, function: usize) -> bool {
    call.function == function && call.functions.iter().filter(|on| **on == function).count() == 1
}

fn check(
    frames: &FramesReport,
    all: &[CallReport],
    median: u64,
    budget: u64,
) -> Result<(), TestCaseError> {
    let of_it: Vec<&CallReport> =
        all.iter().filter(|call| is_outermost(call, frames.function)).collect();
    prop_assert_eq!(frames.frames, of_it.len() as u64);
    let over = of_it.iter().filter(|call| call.duration_ns.0 > budget).count();
    prop_assert_eq!(frames.over_budget, Some(over as u64));
    let compared = (of_it.len() / 3).clamp(1, 10);
    // The list has the slowest first.
    let worst = &of_it[..compared];
    let told: Vec<_> = frames.worst.iter().map(|it| (it.start_ns, it.duration_ns)).collect();
    let expected: Vec<_> = worst.iter().map(|it| (it.start_ns, it.duration_ns)).collect();
    prop_assert_eq!(told, expected);
    // Of equally near ones, any will do: their distances are told by the sum of their times.
    let mut near = of_it[compared..].to_vec();
    near.sort_by_key(|call| call.duration_ns.0.abs_diff(median));
    let distance = |call: &&CallReport| call.duration_ns.0.abs_diff(median);
    let typical = &near[..compared.min(near.len())];
    let is_clear = near.get(compared).is_none_or(|next| {
        typical.last().is_none_or(|farthest| distance(next) > distance(farthest))
    });
    prop_assert_eq!(frames.typical_frames, typical.len() as u64);
    let (worst, typical) = (parts(worst), parts(typical));
    let part = |function: usize| frames.parts.iter().find(|part| part.function == function);
    for (function, sums) in &worst {
        let told = part(*function).map(|part| (part.worst_calls, part.worst_self_ns.0));
        prop_assert_eq!(told, Some(*sums));
    }
    if is_clear {
        for (function, sums) in &typical {
            let told = part(*function).map(|part| (part.typical_calls, part.typical_self_ns.0));
            prop_assert_eq!(told, Some(*sums));
        }
        prop_assert!(
            frames
                .parts
                .iter()
                .all(|part| worst.contains_key(&part.function)
                    || typical.contains_key(&part.function))
        );
    }
    let more: Vec<i128> = frames.parts.iter().map(FramePart::more_ns).collect();
    prop_assert!(more.is_sorted_by_key(|more| Reverse(*more)));
    Ok(())
}

proptest! {
    #[test]
    fn frames_are_the_longest_and_the_nearest_to_the_median(
        steps in steps(true),
        cuts in cuts(),
        factor in 1_u64..40,
        budget in 0_u64..4_000,
    ) {
        let program = run(&apart(steps, factor));
        let recording = record(&program, &cuts);
        for function in 0..FUNCTIONS {
            let asked = FramesAsked { function: FuncId(function), budget: Some(Nanos(budget)) };
            let extras = Extras {
                frames: Some(asked),
                slowest_calls: Some(usize::MAX),
                ..Extras::default()
            };
            let meta = ReportMeta { extras, ..meta(0.0) };
            let report = report_with(&recording, &Query::default(), meta);
            let row = &report.functions[function as usize];
            let all = report.slowest_calls.as_deref().expect("asked for");
            let is_there = all.iter().any(|call| is_outermost(call, function as usize));
            prop_assert_eq!(report.frames.is_some(), is_there);
            if let (Some(frames), Some(median)) = (&report.frames, row.durations.p50_ns) {
                check(frames, all, median.0, budget)?;
            }
        }
    }
}
