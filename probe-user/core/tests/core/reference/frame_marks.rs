//! Frames between marks, from a recording cut into chunks anywhere, against the list of all calls of the
//! program.

use crate::reference::extras::apart;
use crate::reference::program::{Call, FUNCTIONS, Program, run, steps};
use crate::reference::replay::{cuts, record_by};
use crate::reference::start;
use crate::support::*;
use ctrace_common::Kind;
use ctrace_core::engine::EngineConfig;
use ctrace_core::function::{ExitSeen, FunctionInfo};
use ctrace_core::points::PointShape;
use ctrace_core::recording::Recording;
use ctrace_core::recording::replay::{Query, report_with};
use ctrace_core::report::{Extras, FramePart, FramesAsked, FramesReport};
use ctrace_core::units::{FuncId, Nanos};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

const MARK: u32 = FUNCTIONS;

/// Makes frame marks of the program's points.
fn marked(mut program: Program) -> Program {
    let mut times = BTreeSet::new();
    for event in program.rings.iter_mut().flatten().filter(|event| event.kind == Kind::Point) {
        event.func = MARK;
        times.insert(event.ts);
    }
    let points = program.calls.iter_mut().filter(|call| times.contains(&call.start));
    points.for_each(|call| call.func = MARK);
    program
}

fn record(program: &Program, cuts: &[u64]) -> Recording {
    let mut engine = start(EngineConfig { record: true, ..EngineConfig::default() });
    let (point, exit) = (Some(PointShape::Frame), ExitSeen::Never);
    engine.add_function(FunctionInfo { point, exit, ..function("picture") });
    record_by(engine, program, cuts)
}

/// A frame: its start and end, and the thread of the mark that ends it.
type Frame = (u64, u64, u64);

fn frames_of(program: &Program) -> Vec<Frame> {
    let marks = program.calls.iter().filter(|call| call.func == MARK);
    let mut marks: Vec<_> = marks.map(|call| (call.start, call.thread)).collect();
    marks.sort_unstable();
    marks.windows(2).map(|pair| (pair[0].0, pair[1].0, pair[1].1)).collect()
}

/// Returns the part of a call that is in a frame, and whether it ends there, if it is inside.
fn share(call: &Call, (from, to, _): Frame) -> Option<(u64, bool)> {
    let begins = (from..to).contains(&call.start);
    let ends = call.end > from && call.end <= to;
    (begins || ends).then(|| (call.end.min(to) - call.start.max(from), ends))
}

/// Returns calls and own time of each function in a frame.
fn parts(program: &Program, frame: Frame) -> BTreeMap<usize, (u64, u64)> {
    let is_mark = |call: &Call| call.func == MARK;
    let mut own: Vec<Option<u64>> = Vec::new();
    for call in &program.calls {
        own.push(share(call, frame).filter(|_| !is_mark(call)).map(|(time, _)| time));
    }
    for call in program.calls.iter().filter(|call| !is_mark(call)) {
        if let (Some((time, _)), Some(parent)) = (share(call, frame), call.parent)
            && let Some(of) = &mut own[parent]
        {
            *of -= time;
        }
    }
    let mut parts = BTreeMap::<usize, (u64, u64)>::new();
    let mut rest = frame.1 - frame.0;
    for (call, own) in program.calls.iter().zip(own) {
        let Some(own) = own else { continue };
        let ends = share(call, frame).is_some_and(|(_, ends)| ends);
        rest -= if call.thread == frame.2 { own } else { 0 };
        let of = parts.entry(call.func as usize).or_default();
        *of = (of.0 + u64::from(ends), of.1 + own);
    }
    parts.insert(MARK as usize, (1, rest));
    parts
}

fn sum(program: &Program, frames: &[Frame]) -> BTreeMap<usize, (u64, u64)> {
    let mut all = BTreeMap::<usize, (u64, u64)>::new();
    for (function, (calls, own)) in frames.iter().flat_map(|frame| parts(program, *frame)) {
        let of = all.entry(function).or_default();
        *of = (of.0 + calls, of.1 + own);
    }
    all.retain(|_, sums| *sums != (0, 0));
    all
}

fn check(
    frames: &FramesReport,
    program: &Program,
    all: &[Frame],
    budget: u64,
) -> Result<(), TestCaseError> {
    let duration = |(from, to, _): &Frame| to - from;
    let marks = frames.marks.expect("they are between marks");
    prop_assert_eq!((frames.frames, marks.unknown), (all.len() as u64, 0));
    let over = all.iter().filter(|frame| duration(frame) > budget).count();
    prop_assert_eq!(frames.over_budget, Some(over as u64));
    let mut durations: Vec<u64> = all.iter().map(duration).collect();
    durations.sort_unstable();
    let rank = |percent: usize| durations[(durations.len() * percent).div_ceil(100) - 1];
    let mean = durations.iter().sum::<u64>() / durations.len() as u64;
    let told = [marks.mean_ns, marks.p50_ns, marks.p99_ns, marks.max_ns];
    prop_assert_eq!(told, [mean, rank(50), rank(99), rank(100)].map(|ns| Some(Nanos(ns))));
    let compared = (all.len() / 3).clamp(1, 10);
    let mut worst = all.to_vec();
    worst.sort_by_key(|frame| (Reverse(duration(frame)), frame.0));
    let mut typical = worst.split_off(compared.min(worst.len()));
    typical.sort_by_key(|frame| (duration(frame).abs_diff(rank(50)), frame.0));
    typical.truncate(compared);
    let told: Vec<_> = frames.worst.iter().map(|it| (it.start_ns.0, it.duration_ns.0)).collect();
    let expected: Vec<_> = worst.iter().map(|it| (it.0, duration(it))).collect();
    prop_assert_eq!(told, expected);
    prop_assert_eq!(frames.typical_frames, typical.len() as u64);
    let told = |of: fn(&FramePart) -> (u64, u64)| {
        let parts = frames.parts.iter().map(|part| (part.function, of(part)));
        parts.filter(|(_, sums)| *sums != (0, 0)).collect::<BTreeMap<_, _>>()
    };
    let of_worst = told(|part| (part.worst_calls, part.worst_self_ns.0));
    prop_assert_eq!(of_worst, sum(program, &worst));
    let of_typical = told(|part| (part.typical_calls, part.typical_self_ns.0));
    prop_assert_eq!(of_typical, sum(program, &typical));
    Ok(())
}

fn asked(budget: u64) -> Extras {
    let frames = FramesAsked { function: FuncId(MARK), budget: Some(Nanos(budget)) };
    Extras { frames: Some(frames), ..Extras::default() }
}

proptest! {
    #[test]
    fn frames_are_between_marks_with_the_calls_of_all_threads(
        steps in steps(true),
        cuts in cuts(),
        factor in 1_u64..40,
        budget in 0_u64..4_000,
    ) {
        let program = marked(run(&apart(steps, factor)));
        let recording = record(&program, &cuts);
        let report = report_with(&recording, &Query::default(), meta_with(asked(budget)));
        let all = frames_of(&program);
        prop_assert_eq!(report.frames.is_some(), !all.is_empty());
        if let Some(frames) = &report.frames {
            check(frames, &program, &all, budget)?;
        }
    }

    #[test]
    fn each_frame_is_in_the_part_of_the_time_in_which_it_ends(
        steps in steps(true),
        cuts in cuts(),
        at in 0_u64..=100,
    ) {
        let program = marked(run(&apart(steps, 7)));
        let recording = record(&program, &cuts);
        let middle = program.end * at / 100;
        for (from, to) in [(0, middle), (middle, program.end)] {
            let query =
                Query { window: Some(Nanos(from)..Nanos(to)), ..Query::default() };
            let report = report_with(&recording, &query, meta_with(asked(0)));
            let all = frames_of(&program).into_iter();
            let expected = all.filter(|frame| frame.1 > from && frame.1 <= to).count();
            let told = report.frames.map_or(0, |frames| frames.frames);
            prop_assert_eq!(told, expected as u64);
        }
    }
}
