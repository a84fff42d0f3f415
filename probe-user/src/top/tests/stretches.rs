//! Compares stretches between two looks at a daemon with an engine whose interval began at the
//! first look.

use super::{SECOND, fixture};
use crate::{
    session::keep::live::Snapshot,
    top::{
        data::Data,
        source::{Update, observer::Series, stretch::threads},
    },
};
use ctrace_common::Kind;
use ctrace_core::{
    engine::{Engine, EngineConfig, ReportMeta},
    function::FunctionInfo,
    report::{Extras, FunctionReport, Report, SampledReport, ThreadReport},
    units::{Nanos, Pid, Tid},
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const FUNCTIONS: [&str; 4] = ["serve", "parse", "hash", "write"];
const THREADS: u32 = 3;

/// The next event of a thread, and its delay after the previous one.
#[derive(Clone, Debug)]
struct Step {
    thread: u32,
    /// The function to call. `None` returns from the innermost one.
    calls: Option<u32>,
    after: u64,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let call = prop::option::of(0..FUNCTIONS.len() as u32);
    let step = (0..THREADS, call, 1_u64..40_000).prop_map(|(thread, calls, after)| Step {
        thread,
        calls,
        after,
    });
    prop::collection::vec(step, 1..300)
}

/// Returns events sorted by time, and the time of the last.
fn events(steps: &[Step]) -> (Vec<(u64, [u8; 32])>, u64) {
    let (mut now, mut stacks) = (SECOND, vec![Vec::new(); THREADS as usize]);
    let mut events = Vec::new();
    for step in steps {
        now += step.after;
        let stack: &mut Vec<u32> = &mut stacks[step.thread as usize];
        let (kind, function) = match (step.calls, stack.last().copied()) {
            (Some(function), _) if stack.len() < 20 => {
                stack.push(function);
                (Kind::Enter, function)
            }
            (_, Some(_)) => (Kind::Return, stack[stack.len() - 1]),
            (_, None) => continue,
        };
        let sp = 1_000_000 - 100 * stack.len() as u64;
        if kind == Kind::Return {
            stack.pop();
        }
        events.push((now, event(kind, function, 7 + step.thread, sp, now)));
    }
    (events, now)
}

/// Makes an event as in docs/wire-format.md.
fn event(kind: Kind, function: u32, tid: u32, sp: u64, now: u64) -> [u8; 32] {
    let mut event = [0; 32];
    event[..8].copy_from_slice(&now.to_le_bytes());
    event[8..16].copy_from_slice(&sp.to_le_bytes());
    event[16..20].copy_from_slice(&7_u32.to_le_bytes());
    event[20..24].copy_from_slice(&tid.to_le_bytes());
    event[24..28].copy_from_slice(&function.to_le_bytes());
    event[28] = kind as u8;
    event
}

/// Makes one call of the first function. Also returns its end.
pub(super) fn call(start: u64, duration: u64) -> ([(u64, [u8; 32]); 2], u64) {
    let at = |kind, now| (now, event(kind, 0, 7, 1_000_000, now));
    let end = start + duration;
    ([at(Kind::Enter, start), at(Kind::Return, end)], end)
}

/// Enters functions, each from the one before.
pub(super) fn nested(functions: &[u32], start: u64) -> Vec<(u64, [u8; 32])> {
    let enter = |(depth, function): (usize, &u32)| {
        let now = start + depth as u64;
        (now, event(Kind::Enter, *function, 7, 1_000_000 - 100 * depth as u64, now))
    };
    functions.iter().enumerate().map(enter).collect()
}

/// Makes one call that far inside others.
pub(super) fn leaf(function: u32, depth: u64, start: u64) -> [(u64, [u8; 32]); 2] {
    [(Kind::Enter, start), (Kind::Return, start + 10)]
        .map(|(kind, now)| (now, event(kind, function, 7, 1_000_000 - 100 * depth, now)))
}

/// A session that takes events up to a time, and reports.
pub(super) struct Session {
    engine: Engine,
    events: Vec<(u64, [u8; 32])>,
}

impl Session {
    pub(super) fn new(events: &[(u64, [u8; 32])], spool_bytes: usize) -> Self {
        let mut engine = Engine::new(EngineConfig { spool_bytes, ..EngineConfig::default() });
        FUNCTIONS.iter().for_each(|name| {
            engine.add_function(FunctionInfo::new(*name, "server"));
        });
        engine.begin(Nanos(SECOND));
        Self { engine, events: events.to_vec() }
    }

    fn go_to(&mut self, time: u64) {
        let later = self.events.iter().position(|(at, _)| *at > time);
        let later = self.events.split_off(later.unwrap_or(self.events.len()));
        let now = std::mem::replace(&mut self.events, later);
        now.iter().for_each(|(_, event)| self.engine.push(0, event));
        self.engine.advance(Nanos(time));
    }

    fn look(&mut self, time: u64) -> Snapshot {
        self.go_to(time);
        of(self.engine.report(Nanos(time), meta()), time)
    }

    pub(super) fn end_interval(&mut self, time: u64) -> Snapshot {
        self.go_to(time);
        of(self.engine.report_interval(Nanos(time), meta()), time)
    }
}

fn meta() -> ReportMeta {
    let extras = Extras { histograms: true, slices: 1, ..Extras::default() };
    ReportMeta { extras, ..ReportMeta::default() }
}

/// In this test, costs equal calls, and the target is always busy.
fn of(report: Report, time: u64) -> Snapshot {
    let spent = report.functions.iter().map(|f| Nanos(f.calls - f.open)).collect();
    Snapshot { report, spent, cpu: Some(Nanos(time)) }
}

#[track_caller]
fn parts(update: Update) -> (Vec<Snapshot>, u64) {
    match update {
        Update::Interval { parts, missed } => (parts, missed),
        _ => panic!("there is no interval"),
    }
}

/// Returns calls, total and self by names.
fn paths(report: &Report) -> BTreeMap<Vec<String>, [u64; 3]> {
    let called = report.paths.iter().filter(|path| path.calls > 0);
    let row = |path: &ctrace_core::report::PathReport| {
        let names = path.path.iter().map(ToString::to_string).collect();
        (names, [path.calls, path.total_ns.0, path.self_ns.0])
    };
    called.map(row).collect()
}

fn sums(function: &FunctionReport) -> [u64; 9] {
    let FunctionReport { calls, timed, untimed, open, headless, .. } = function;
    let FunctionReport { total_ns, self_ns, active_ns, active_exclusive_ns, .. } = function;
    let times = [total_ns, self_ns, active_ns, active_exclusive_ns].map(|time| time.0);
    let [total, own, active, exclusive] = times;
    [*calls, *timed, *untimed, *open, *headless, total, own, active, exclusive]
}

/// Allows half a bucket, plus rounding in narrow buckets.
fn is_near(told: Option<Nanos>, truth: Option<Nanos>) -> bool {
    match (told, truth) {
        (Some(told), Some(truth)) => {
            told.0.abs_diff(truth.0) as f64 <= truth.0 as f64 * 0.063 + 1.0
        }
        (told, truth) => told == truth,
    }
}

/// Compares all numbers of a stretch with those of an engine that saw nothing before.
fn check(told: &Report, truth: &Report) {
    assert_eq!((told.start_ns, told.end_ns), (truth.start_ns, truth.end_ns));
    assert_eq!((told.duration_ns, told.tracked_ns), (truth.duration_ns, truth.tracked_ns));
    assert_eq!(told.loss, truth.loss);
    assert_eq!(paths(told), paths(truth));
    for (place, (told_of, truth_of)) in told.functions.iter().zip(&truth.functions).enumerate() {
        assert_eq!(sums(told_of), sums(truth_of), "{}", truth_of.name);
        let counts = |report: &Report| report.histogram_of(place).map(|h| h.durations.clone());
        assert_eq!(counts(told), counts(truth), "{}", truth_of.name);
        let (a, b) = (&told_of.durations, &truth_of.durations);
        assert_eq!((a.mean_ns, a.sd_ns, a.cv), (b.mean_ns, b.sd_ns, b.cv));
        for (told, truth) in [
            (a.min_ns, b.min_ns),
            (a.p50_ns, b.p50_ns),
            (a.p90_ns, b.p90_ns),
            (a.p99_ns, b.p99_ns),
            (a.max_ns, b.max_ns),
        ] {
            assert!(is_near(told, truth), "{told:?} for {truth:?} of {}", truth_of.name);
        }
        let share = told_of.active_exclusive_percent - truth_of.active_exclusive_percent;
        assert!(share.abs() < 1e-9);
    }
}

/// Returns the moment `permille` thousandths along the way.
fn at(last: u64, permille: u64) -> u64 {
    SECOND + (last - SECOND) * permille / 1_000
}

proptest! {
    /// For any events, and with or without single calls.
    #[test]
    fn a_stretch_is_what_an_interval_would_be(
        steps in steps(),
        first in 1_u64..500,
        second in 500_u64..1_000,
        spool_bytes in prop::sample::select(vec![1_usize << 12, 256 << 20]),
    ) {
        let (events, last) = events(&steps);
        let (first, second) = (at(last + 1_000, first), at(last + 1_000, second));
        let mut looked_at = Session::new(&events, spool_bytes);
        let mut series = Series::default();
        let begun = series.add(vec![looked_at.look(first)]);
        assert!(matches!(begun, Update::Begun { cpu } if cpu == Some(Nanos(first))));
        let (stretches, missed) = parts(series.add(vec![looked_at.look(second)]));
        let mut divided = Session::new(&events, spool_bytes);
        divided.end_interval(first);
        let truth = divided.look(second);
        assert_eq!((stretches.len(), missed), (1, 0));
        check(&stretches[0].report, &truth.report);
        let ended = truth.report.functions.iter().map(|f| Nanos(f.calls - f.open));
        assert!(stretches[0].spent.iter().copied().eq(ended));
    }
}

/// An earlier version of the daemon reports no exact sums.
#[test]
fn rounded_numbers_tell_no_spread() {
    let (events, last) = busy(4_000);
    let mut session = Session::new(&events, 256 << 20);
    let mut look = |permille| {
        let mut look = session.look(at(last, permille));
        look.report.functions.iter_mut().for_each(|function| function.summary = None);
        look
    };
    let mut series = Series::default();
    series.add(vec![look(400)]);
    let (stretches, _) = parts(series.add(vec![look(700)]));
    let durations = stretches[0].report.functions[0].durations;
    assert!(durations.mean_ns.is_some() && durations.p50_ns.is_some(), "{durations:?}");
    assert_eq!((durations.sd_ns, durations.cv), (None, None));
}

fn busy(count: usize) -> (Vec<(u64, [u8; 32])>, u64) {
    let step = |n: usize| Step {
        thread: 0,
        calls: [Some(0), Some(1), None, None][n % 4],
        after: 1_000 + n as u64 % 7,
    };
    events(&(0..count).map(step).collect::<Vec<_>>())
}

fn calls(parts: &[Snapshot], function: usize) -> u64 {
    parts.iter().map(|part| part.report.functions[function].timed).sum()
}

/// If the daemon's interval ends between two looks, there are two parts, and nothing is missing.
#[test]
fn an_interval_that_turns_over() {
    let (events, last) = busy(4_000);
    let mut session = Session::new(&events, 256 << 20);
    let mut series = Series::default();
    let base = session.look(at(last, 400));
    let before = calls(std::slice::from_ref(&base), 0);
    series.add(vec![base]);
    assert_eq!(series.known_to(), Some(Nanos(at(last, 400))));
    let ended = session.end_interval(at(last, 450));
    let (turned, missed) = parts(series.add(vec![ended, session.look(at(last, 700))]));
    assert_eq!((turned.len(), missed), (2, 0));
    assert_eq!(turned[0].report.end_ns, turned[1].report.start_ns);
    assert!(turned[1].report.approximate);
    let (after, _) = parts(series.add(vec![session.look(last)]));
    assert_eq!(before + calls(&turned, 0) + calls(&after, 0), 1_000);

    // They are shown as one.
    let mut data = Data::of_looks(None);
    let long = [&turned[0], &turned[1]].map(|part| part.report.duration_ns.0).iter().sum();
    let both = calls(&turned, 0);
    data.add(turned, missed);
    let shown = &data.interval.as_ref().expect("it is shown").report;
    assert_eq!((shown.duration_ns.0, shown.functions[0].timed), (long, both));
}

/// Intervals that were not kept are counted as missed, and so is another session of the process.
#[test]
fn a_gap_is_told() {
    let (events, last) = busy(400);
    let mut session = Session::new(&events, 256 << 20);
    let mut series = Series::default();
    series.add(vec![session.look(at(last, 100))]);
    session.end_interval(at(last, 300));
    let (stretches, missed) = parts(series.add(vec![session.look(at(last, 500))]));
    assert_eq!((stretches.len(), missed), (1, 1));
    assert_eq!(stretches[0].report.start_ns, Nanos(at(last, 300)));
    assert!(stretches[0].report.functions[0].calls > 0);
    let (stretches, missed) = parts(series.add(vec![session.look(at(last, 700))]));
    assert_eq!((stretches.len(), missed), (1, 0));
    // An answer that is no newer adds nothing.
    let (stretches, missed) = parts(series.add(vec![session.look(at(last, 700))]));
    assert_eq!((stretches.len(), missed), (0, 0));
}

/// Places change when functions are armed late.
#[test]
fn functions_that_appear_later() {
    let look = |functions: &[(&str, u64)], time: u64| {
        let mut report = fixture::empty();
        (report.start_ns, report.end_ns) = (Nanos(SECOND), Nanos(SECOND + time));
        report.duration_ns = Nanos(time);
        let row = |&(name, calls): &(&str, u64)| fixture::function(name, calls, 100, Nanos(time));
        report.functions = functions.iter().map(row).collect();
        of(report, time)
    };
    let mut series = Series::default();
    series.add(vec![look(&[("old", 10)], SECOND)]);
    let later = look(&[("late", 3), ("old", 15)], 2 * SECOND);
    let (stretches, _) = parts(series.add(vec![later]));
    let told = stretches[0].report.functions.iter().map(|f| (&*f.name, f.calls));
    assert_eq!(told.collect::<Vec<_>>(), [("late", 3), ("old", 5)]);
    assert_eq!(stretches[0].spent, [Nanos(3), Nanos(5)]);
}

/// Estimates grow by the stretch's estimate. If nothing was armed, nothing is known.
#[test]
fn estimates_of_a_stretch() {
    let look = |seconds: u64, seen: u64, windows: u64, estimate: u64, error: u64| {
        let mut report = fixture::empty();
        (report.start_ns, report.end_ns) = (Nanos(SECOND), Nanos(SECOND + seconds * SECOND));
        report.duration_ns = Nanos(seconds * SECOND);
        let mut function = fixture::function("often", seen, 100, report.duration_ns);
        function.sampled = Some(SampledReport {
            armed_ns: Nanos(windows * SECOND / 100),
            armed_percent: windows as f64 / seconds as f64,
            windows,
            calls: Some(estimate),
            calls_error: Some(error),
            total_ns: Some(Nanos(estimate * 100)),
            active_ns: None,
        });
        report.functions.push(function);
        of(report, seconds)
    };
    let mut series = Series::default();
    series.add(vec![look(8, 80, 8, 8_000, 400)]);
    let mut next = |later| {
        let (stretches, _) = parts(series.add(vec![later]));
        stretches[0].report.functions[0].sampled.expect("it is armed for a part")
    };
    let two_more = next(look(10, 102, 10, 10_200, 510));
    assert_eq!((two_more.windows, two_more.calls), (2, Some(2_200)));
    // The error is 5 % of the whole, which has ten windows; this stretch has two.
    assert_eq!(two_more.calls_error, Some(245));
    assert_eq!((two_more.total_ns, two_more.active_ns), (Some(Nanos(220_000)), None));
    assert!((two_more.armed_percent - 1.0).abs() < 1e-9);
    let none = next(look(11, 102, 10, 11_100, 510));
    assert_eq!((none.calls, none.calls_error, none.total_ns), (None, None, None));
    // The total estimate got smaller, but the seen calls count.
    let seen = next(look(12, 112, 11, 10_900, 510));
    assert_eq!(seen.calls, Some(10));
}

/// A thread: its id, its start in seconds, its calls, and how many of them are open.
type Row = (u32, u64, u64, u64);

/// Takes threads of the interval at the first and at the second look. Expects the calls between them.
#[track_caller]
fn check_threads(old: &[Row], new: &[Row], between: &[(u32, u64)]) {
    let report = |rows: &[Row]| {
        let thread = |&(tid, first, calls, open): &Row| ThreadReport {
            pid: Pid(1),
            tid: Tid(tid),
            name: "".into(),
            calls,
            open,
            first_ns: Nanos(first * SECOND),
            last_ns: Nanos(100 * SECOND),
        };
        let mut report = fixture::typical();
        report.start_ns = Nanos(10 * SECOND);
        report.threads = rows.iter().map(thread).collect();
        report
    };
    let found = threads(&report(old), &report(new));
    let found: Vec<_> = found.iter().map(|thread| (thread.tid.0, thread.calls)).collect();
    assert_eq!(found, between);
}

#[test]
fn threads_of_the_same_id_are_told_apart_by_their_start() {
    check_threads(&[(7, 11, 5, 0)], &[(7, 11, 9, 0)], &[(7, 4)]);
    let (gone, other) = ((7, 11, 5, 0), (7, 20, 3, 0));
    check_threads(&[gone, other], &[gone, (7, 20, 4, 0)], &[(7, 1)]);
    check_threads(&[gone], &[gone, (7, 30, 2, 0)], &[(7, 2)]);
    // The thread is in two calls since before the interval. Its first event came after the first
    // look. One of the calls has ended since, and three more.
    check_threads(&[(7, 9, 2, 2)], &[(7, 12, 5, 1)], &[(7, 5)]);
}

#[test]
fn a_thread_that_stays_in_its_calls_is_in_every_stretch() {
    check_threads(&[(7, 9, 3, 3)], &[(7, 9, 3, 3)], &[(7, 3)]);
    check_threads(&[(7, 11, 8, 1)], &[(7, 11, 8, 1)], &[(7, 1)]);
}
