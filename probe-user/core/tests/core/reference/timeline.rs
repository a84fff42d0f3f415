//! The timeline, slice by slice, from a recording cut into chunks anywhere.

use crate::reference::definitions::*;
use crate::reference::extras::apart;
use crate::reference::program::*;
use crate::reference::replay::{cuts, record};
use crate::support::*;
use ctrace_core::recording::replay::{Query, report_with};
use ctrace_core::report::{Extras, TimelineCell, TimelineReport};
use ctrace_core::units::Nanos;
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The time by slice and function.
type Times = BTreeMap<(usize, u32), u64>;

fn add(times: &mut Times, edges: &[u64], function: u32, from: u64, to: u64) {
    for (slice, edge) in edges.windows(2).enumerate() {
        let within = to.min(edge[1]).saturating_sub(from.max(edge[0]));
        if within > 0 {
            *times.entry((slice, function)).or_default() += within;
        }
    }
}

fn cells(times: &Times, slices: usize) -> Vec<TimelineCell> {
    let of_slice = |slice: usize| {
        let times: Vec<(u32, u64)> =
            times.iter().filter(|((s, _), _)| *s == slice).map(|((_, f), t)| (*f, *t)).collect();
        let (function, time) = *times.iter().max_by_key(|(f, t)| (*t, Reverse(*f)))?;
        Some(TimelineCell {
            slice,
            function: function as usize,
            function_ns: Nanos(time),
            busy_ns: Nanos(times.iter().map(|(_, t)| t).sum()),
        })
    };
    (0..slices).filter_map(of_slice).collect()
}

fn check(
    report: &TimelineReport,
    calls: &[Call],
    (from, to): (u64, u64),
) -> Result<(), TestCaseError> {
    let edges: Vec<u64> = report.slice_edges_ns.iter().map(|edge| edge.0).collect();
    let slices = edges.len() - 1;
    let least = (to - from) / slices as u64;
    let is_open = |c: &Call| c.known > to;
    let inside: Vec<&Call> = calls.iter().filter(|c| c.start <= to && c.known > from).collect();
    let end = |c: &Call| if is_open(c) { to } else { c.end };
    let mut lanes = 0;
    for thread in 0..THREADS {
        let mine: Vec<&&Call> = inside.iter().filter(|c| c.thread == thread).collect();
        let lane = report.lanes.iter().find(|lane| u64::from(lane.tid.0 - PID) == thread);
        prop_assert_eq!(lane.is_some(), !mine.is_empty());
        let Some(lane) = lane else { continue };
        lanes += 1;
        let ended = || mine.iter().filter(|c| !is_open(c) && c.end - c.start < least);
        prop_assert_eq!(lane.short_calls, ended().count() as u64);
        prop_assert_eq!(lane.short_ns.0, ended().map(|c| c.end - c.start).sum::<u64>());
        let mut by_depth: BTreeMap<usize, Times> = BTreeMap::new();
        let mut moments: Vec<u64> = edges.clone();
        for call in &mine {
            let times = by_depth.entry(call.depth).or_default();
            add(times, &edges, call.func, call.start, end(call));
            moments.extend([call.start, end(call)]);
        }
        for (depth, cells_of) in lane.depths.iter().enumerate() {
            let times = by_depth.remove(&depth).unwrap_or_default();
            prop_assert_eq!(cells_of, &cells(&times, slices));
        }
        prop_assert!(by_depth.values().all(BTreeMap::is_empty));
        moments.sort_unstable();
        let mut innermost = Times::new();
        for moment in moments.windows(2) {
            let on = mine.iter().filter(|c| c.start <= moment[0] && end(c) >= moment[1]);
            if let Some(call) = on.max_by_key(|c| c.depth) {
                add(&mut innermost, &edges, call.func, moment[0], moment[1]);
            }
        }
        prop_assert_eq!(&lane.innermost, &cells(&innermost, slices));
    }
    prop_assert_eq!(report.lanes.len(), lanes);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_timeline_shows_what_ran_longest(
        steps in steps(true), cuts in cuts(), slices in 1usize..30,
        functions in prop_oneof![Just(None), prop::collection::vec(any::<bool>(), FUNCTIONS as usize).prop_map(Some)],
    ) {
        let program = run(&apart(steps, 1));
        let recording = record(&program, &cuts);
        let selected = |c: &Call| functions.as_ref().is_none_or(|f| f[c.func as usize]);
        let kept = with_depths(&filter(&program.calls, selected));
        let query = Query { functions: functions.clone(), ..Query::default() };
        let extras = Extras { timeline_lanes: Some(4), slices, ..Extras::default() };
        let report = report_with(&recording, &query, meta_with(extras));
        check(report.timeline.as_ref().expect("asked for"), &kept, (0, program.end))?;
    }

    #[test]
    fn the_timeline_of_a_window(
        steps in steps(false), cuts in cuts(), window in (0u64..=100, 0u64..=100), lanes in 0usize..4,
    ) {
        let program = run(&apart(steps, 1));
        let recording = record(&program, &cuts);
        let (from, to) = (window.0.min(window.1), window.0.max(window.1));
        let (from, to) = (program.end * from / 100, program.end * to / 100);
        let query = Query { window: Some(Nanos(from)..Nanos(to)), ..Query::default() };
        let asked = |lanes| Extras { timeline_lanes: Some(lanes), slices: 7, ..Extras::default() };
        let report = report_with(&recording, &query, meta_with(asked(THREADS as usize)));
        let all = report.timeline.expect("asked for");
        check(&all, &program.calls, (from, to))?;
        prop_assert_eq!(all.lanes_left_out, 0);
        let few = report_with(&recording, &query, meta_with(asked(lanes))).timeline.expect("asked for");
        prop_assert_eq!(few.lanes.len() as u64 + few.lanes_left_out, all.lanes.len() as u64);
        prop_assert!(few.lanes.len() <= lanes && few.lanes.iter().all(|lane| all.lanes.contains(lane)));
    }
}
