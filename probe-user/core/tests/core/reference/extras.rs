//! The optional parts of reports, from a recording cut into chunks anywhere: histograms, their
//! change over time, and the slowest calls with the calls inside them.

use crate::reference::definitions::*;
use crate::reference::program::*;
use crate::reference::replay::{cuts, record};
use crate::reference::{feed, start};
use crate::support::*;
use ctrace_core::engine::{EngineConfig, ReportMeta};
use ctrace_core::filter::Filter;
use ctrace_core::recording::replay::{Query, report_with};
use ctrace_core::report::{CallReport, Extras, HistogramsReport, Report};
use ctrace_core::units::Nanos;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Separates events in time, because the nesting of simultaneous ones is ambiguous, and lengthens
/// calls.
pub(crate) fn apart(steps: Vec<Step>, factor: u64) -> Vec<Step> {
    steps.into_iter().map(|step| Step { wait: (step.wait + 1) * factor, ..step }).collect()
}

/// Returns the timed calls that ended in the window.
pub(crate) fn timed(
    calls: &[Call],
    (from, to): (u64, u64),
) -> impl Iterator<Item = (usize, &Call)> {
    let is_in = move |c: &Call| c.timed && c.known > from && c.known <= to;
    calls.iter().enumerate().filter(move |(_, c)| is_in(c))
}

fn check_histograms(
    report: &HistogramsReport,
    calls: &[Call],
    window: (u64, u64),
) -> Result<(), TestCaseError> {
    let slices = report.slice_edges_ns.as_deref().expect("single calls are known");
    prop_assert_eq!((slices[0].0, slices.last().map(|n| n.0)), (window.0, Some(window.1)));
    for function in 0..FUNCTIONS {
        let of_function = || timed(calls, window).filter(|(_, c)| c.func == function);
        let count = |from: u64, to: u64| {
            of_function().filter(|(_, c)| (from..to).contains(&(c.end - c.start))).count() as u64
        };
        let found = report.functions.iter().find(|f| f.function == function as usize);
        prop_assert_eq!(found.is_some(), of_function().count() > 0);
        let Some(found) = found else { continue };
        let (edges, counts) = (&found.durations.edges_ns, &found.durations.counts);
        let expected: Vec<u64> = edges.windows(2).map(|e| count(e[0].0, e[1].0)).collect();
        prop_assert_eq!(counts, &expected);
        prop_assert_eq!(counts.iter().sum::<u64>(), of_function().count() as u64);
        let mut seen = 0;
        for row in &found.over_time {
            let octave = row.from_ns.0..row.to_ns.0;
            let expected = slices.windows(2).map(|edge| {
                let ended = of_function().filter(|(_, c)| c.end > edge[0].0 && c.end <= edge[1].0);
                ended.filter(|(_, c)| octave.contains(&(c.end - c.start))).count() as u64
            });
            prop_assert_eq!(&row.counts, &expected.collect::<Vec<_>>());
            prop_assert!(octave.start == 0 || octave.end == octave.start * 2);
            seen += row.counts.iter().sum::<u64>();
        }
        prop_assert_eq!(seen, of_function().count() as u64);
    }
    Ok(())
}

/// The number of calls, their sum and the longest, by path from the function inside.
type Sums = BTreeMap<String, (u64, u64, u64)>;

fn add(sums: &mut Sums, path: String, calls: u64, total: u64, max: u64) {
    let sum = sums.entry(path).or_default();
    *sum = (sum.0 + calls, sum.1 + total, sum.2.max(max));
}

fn sums_of(call: &CallReport) -> Sums {
    let mut paths: Vec<String> = Vec::new();
    let mut sums = Sums::new();
    for row in &call.inside {
        let above = row.parent.map_or(String::new(), |parent| format!("{}>", paths[parent]));
        paths.push(format!("{above}{}", row.name));
        let path = paths[paths.len() - 1].clone();
        add(&mut sums, path, row.calls, row.total_ns.0, row.max_ns.0);
    }
    sums
}

fn check_calls(
    report: &Report,
    calls: &[Call],
    window: (u64, u64),
    top: usize,
) -> Result<(), TestCaseError> {
    let mut slowest: Vec<(usize, &Call)> = timed(calls, window).collect();
    slowest.sort_by_key(|(_, c)| (u64::MAX - (c.end - c.start), c.start));
    slowest.truncate(top);
    let found = report.slowest_calls.as_deref().expect("they were asked for");
    prop_assert_eq!(found.len(), slowest.len());
    for (found, (place, call)) in found.iter().zip(slowest) {
        let tid = found.tid.map(|tid| u64::from(tid.0 - PID));
        let times = (found.start_ns.0, found.duration_ns.0);
        prop_assert_eq!((times, tid), ((call.start, call.end - call.start), Some(call.thread)));
        let mut path = vec![format!("f{}", call.func)];
        let mut above = call.parent;
        while let Some(parent) = above {
            path.insert(0, format!("f{}", calls[parent].func));
            above = calls[parent].parent;
        }
        prop_assert_eq!(found.path.join(">"), path.join(">"));
        prop_assert_eq!(report.names_of_call(found).join(">"), path.join(">"));
        let mut expected = BTreeMap::<String, (u64, u64, ((bool, u64), u64))>::new();
        let mut own = call.end - call.start;
        for (index, inside) in calls.iter().enumerate() {
            let (mut path, mut at) = (String::new(), index);
            let relative = loop {
                path =
                    format!("f{}{}{path}", calls[at].func, if path.is_empty() { "" } else { ">" });
                match calls[at].parent {
                    Some(parent) if parent == place => break Some(path),
                    Some(parent) => at = parent,
                    None => break None,
                }
            };
            let Some(relative) = relative else { continue };
            let duration = inside.end - inside.start;
            let (calls, total, longest) = expected.entry(relative).or_default();
            (*calls, *total) = (*calls + 1, *total + duration);
            let (timed, all) = longest;
            (*timed, *all) = ((*timed).max((inside.timed, duration)), (*all).max(duration));
            own -= if inside.parent == Some(place) { duration } else { 0 };
        }
        let found_sums = sums_of(found);
        prop_assert!(found_sums.keys().eq(expected.keys()), "{found_sums:?} {expected:?}");
        for ((path, found), (_, expected)) in found_sums.iter().zip(&expected) {
            let (calls, total, (timed, max)) = *expected;
            prop_assert_eq!((found.0, found.1), (calls, total), "{}", path);
            // A call whose end was not seen is the longest of its row only if all are such. Rows of single calls
            // have their own.
            prop_assert!((timed.1..=max).contains(&found.2), "{path}: {found:?} {expected:?}");
        }
        prop_assert_eq!(found.inside_calls, found.inside.iter().map(|row| row.calls).sum::<u64>());
        prop_assert_eq!(found.self_ns.0, own);
        let in_time = found.inside.iter().all(|row| row.start_ns >= found.start_ns);
        prop_assert!(in_time && found.inside.iter().all(|row| row.self_ns <= row.total_ns));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn histograms_and_slowest_calls_are_those_of_the_calls(
        steps in steps(true), cuts in cuts(), factor in prop_oneof![Just(1u64), Just(1_000)],
        top in 0usize..12, slices in 1usize..20, min in prop_oneof![Just(0), 0u64..800],
        functions in prop_oneof![Just(None), prop::collection::vec(any::<bool>(), FUNCTIONS as usize).prop_map(Some)],
    ) {
        let program = run(&apart(steps, factor));
        let recording = record(&program, &cuts);
        let selected = |c: &Call| functions.as_ref().is_none_or(|f| f[c.func as usize]);
        let kept = filter(&filter(&program.calls, selected), |c| !(c.timed && c.end - c.start < min));
        let query = Query {
            filter: Filter { min_duration: Nanos(min), ..Filter::default() },
            functions: functions.clone(),
            ..Query::default()
        };
        let extras = Extras { histograms: true, slowest_calls: Some(top), slices, ..Extras::default() };
        let report = report_with(&recording, &query, meta_with(extras));
        let window = (0, program.end);
        check_histograms(report.histograms.as_ref().expect("asked for"), &kept, window)?;
        // A call too short to count stays on the paths of the calls inside it.
        if min == 0 {
            check_calls(&report, &kept, window, top)?;
        }
    }

    #[test]
    fn a_window_has_the_calls_that_ended_in_it_and_all_that_was_inside(
        steps in steps(false), cuts in cuts(), window in (0u64..=100, 0u64..=100), top in 1usize..5,
    ) {
        let program = run(&apart(steps, 1));
        let recording = record(&program, &cuts);
        let (from, to) = (window.0.min(window.1), window.0.max(window.1));
        let (from, to) = (program.end * from / 100, program.end * to / 100);
        let query = Query { window: Some(Nanos(from)..Nanos(to)), ..Query::default() };
        let extras = Extras { histograms: true, slowest_calls: Some(top), ..Extras::default() };
        let report = report_with(&recording, &query, meta_with(extras));
        check_histograms(report.histograms.as_ref().expect("asked for"), &program.calls, (from, to))?;
        check_calls(&report, &program.calls, (from, to), top)?;
    }

    #[test]
    fn a_session_has_the_same_histograms(steps in steps(true), spool in prop_oneof![Just(usize::MAX), 0usize..6_000]) {
        let program = run(&apart(steps, 1));
        let mut engine = start(EngineConfig { spool_bytes: spool, ..EngineConfig::default() });
        feed(&mut engine, &program, 0, program.end);
        let extras = Extras { histograms: true, path_histograms: true, ..Extras::default() };
        let report = engine.report(Nanos(program.end), ReportMeta { extras, ..meta(10.0) });
        let mut histograms = report.histograms.clone().expect("asked for");
        prop_assert_eq!(histograms.slice_edges_ns.is_none(), report.approximate);
        let recorded = report_with(&record(&program, &[]), &Query::default(), meta_with(extras));
        let mut expected = recorded.histograms.expect("asked for");
        if report.approximate {
            (histograms.slice_edges_ns, expected.slice_edges_ns) = (None, None);
            expected.functions.iter_mut().for_each(|f| f.over_time.clear());
        }
        prop_assert_eq!(&histograms, &expected);
        check_paths(&report, &recorded.paths)?;
    }

    /// If events are simultaneous, the nesting of calls is ambiguous, but not their durations.
    #[test]
    fn the_slowest_are_the_slowest_whatever_is_inside_them(steps in steps(true), cuts in cuts()) {
        let program = run(&steps);
        let extras = Extras { slowest_calls: Some(20), ..Extras::default() };
        let report = report_with(&record(&program, &cuts), &Query::default(), meta_with(extras));
        let mut expected: Vec<u64> =
            timed(&program.calls, (0, program.end)).map(|(_, c)| c.end - c.start).collect();
        expected.sort_unstable_by(|a, b| b.cmp(a));
        expected.truncate(20);
        let found = report.slowest_calls.expect("asked for");
        prop_assert_eq!(found.iter().map(|c| c.duration_ns.0).collect::<Vec<_>>(), expected);
    }
}

/// Checks that the histograms of a function's paths add up to its timed calls.
fn check_paths(
    report: &Report,
    recorded: &[ctrace_core::report::PathReport],
) -> Result<(), TestCaseError> {
    let mut timed = vec![0; report.functions.len()];
    let by_path = |paths: &[ctrace_core::report::PathReport]| -> BTreeMap<_, _> {
        paths.iter().map(|path| (path.path.join(">"), path.histogram.clone())).collect()
    };
    prop_assert_eq!(by_path(&report.paths), by_path(recorded));
    for path in &report.paths {
        let histogram = path.histogram.as_ref().expect("asked for");
        timed[path.function] += histogram.counts.iter().sum::<u64>();
    }
    prop_assert_eq!(timed, report.functions.iter().map(|f| f.timed).collect::<Vec<_>>());
    Ok(())
}
