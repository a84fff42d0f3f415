use super::{
    accumulator::{Accumulator, Bounds},
    by_value::CallsOfValue,
    catalog,
    family::{Families, Family, MetricValue},
    fixtures::{Did, snapshot},
    latency::{Edges, Latency},
    metric::{Metric, MetricKind},
    plots::NumbersOfPlot,
};
use crate::daemon::ids::SessionId;
use ctrace_core::{
    function::FunctionInfo,
    recording::{CallValue, PlotSum, ValueSum},
    report::LossReport,
    units::Nanos,
    values::Value,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn start(all: &mut Accumulator, id: u64, target: &str) -> SessionId {
    all.begin(SessionId(id), target);
    all.armed(SessionId(id));
    SessionId(id)
}

fn told(accumulator: &mut Accumulator) -> Vec<Family> {
    let mut families = Families::default();
    accumulator.tell(&mut families);
    families.finish()
}

/// Returns the value of the series with all these label values.
fn find<'a>(families: &'a [Family], metric: &str, values: &[&str]) -> Option<&'a MetricValue> {
    let family = families.iter().find(|family| family.metric.name == metric)?;
    let mut points = family.points.iter();
    let point = points.find(|point| {
        values.iter().all(|value| point.labels.iter().any(|(_, label)| **label == **value))
    });
    point.map(|point| &point.value)
}

fn number(accumulator: &mut Accumulator, metric: &str, values: &[&str]) -> Option<f64> {
    match find(&told(accumulator), metric, values)? {
        MetricValue::Number(value) => Some(*value),
        MetricValue::Histogram(latency) => Some(latency.count() as f64),
    }
}

const CALLS: &str = "ctrace_function_calls_total";
const DURATION: &str = "ctrace_function_duration_seconds";
const ACTIVE: &str = "ctrace_function_active_seconds_total";
const OPEN: &str = "ctrace_function_open_calls";

#[test]
fn looks_count_nothing_twice() {
    let mut all = Accumulator::new(Bounds::default());
    let id = start(&mut all, 1, "web");
    let two = [Did { open: 1, ..Did::called("f", &[10, 20]) }];
    for _ in 0..3 {
        all.look(id, &snapshot(0, 50, &two));
        assert_eq!(number(&mut all, CALLS, &["f"]), Some(2.0));
        assert_eq!(number(&mut all, DURATION, &["f"]), Some(2.0));
        assert_eq!(number(&mut all, OPEN, &["f"]), Some(1.0));
    }
    all.observe(id, &snapshot(0, 100, &[Did { open: 2, ..Did::called("f", &[10, 20, 30]) }]));
    assert_eq!(number(&mut all, CALLS, &["f"]), Some(3.0));
    assert_eq!(number(&mut all, OPEN, &["f"]), Some(2.0));
    // A late look, and an interval that is reported twice.
    all.look(id, &snapshot(0, 90, &two));
    all.observe(id, &snapshot(0, 100, &two));
    assert_eq!(number(&mut all, CALLS, &["f"]), Some(3.0));
    assert_eq!(number(&mut all, "ctrace_target_intervals_total", &["web"]), Some(1.0));
}

#[test]
fn what_a_budget_sheds_is_told() {
    const DISARMED: &str = "ctrace_function_disarmed_seconds_total";
    const SAMPLED: &str = "ctrace_target_functions_sampled";
    let second = 1_000_000_000;
    let mut all = Accumulator::new(Bounds::default());
    all.add_target("web", Some(1.5));
    let budget = number(&mut all, "ctrace_target_budget_ratio", &["web"]);
    assert!(budget.is_some_and(|budget| (budget - 0.015).abs() < 1e-9));
    let (one, two) = (start(&mut all, 1, "web"), start(&mut all, 2, "web"));
    let armed = |part: u64| Did { armed: Some(part), ..Did::called("f", &[1]) };
    let others = Did::called("g", &[1]);
    all.look(one, &snapshot(0, 2 * second, &[armed(second), others.clone()]));
    assert_eq!(number(&mut all, DISARMED, &["f"]), Some(1.0));
    all.observe(one, &snapshot(0, 10 * second, &[armed(4 * second), others.clone()]));
    all.observe(two, &snapshot(0, 10 * second, &[armed(9 * second), others.clone()]));
    assert_eq!(number(&mut all, DISARMED, &["f"]), Some(7.0));
    assert_eq!(number(&mut all, DISARMED, &["g"]), Some(0.0));
    // The last interval counts until there is data of the next one.
    assert_eq!(number(&mut all, SAMPLED, &["web"]), Some(2.0));
    all.look(one, &snapshot(10 * second, 11 * second, std::slice::from_ref(&others)));
    assert_eq!(number(&mut all, SAMPLED, &["web"]), Some(1.0));
    // A function that was not armed has no data.
    let unseen = Did { durations: Vec::new(), ..armed(0) };
    all.observe(one, &snapshot(10 * second, 20 * second, &[unseen, others]));
    assert_eq!(number(&mut all, DISARMED, &["f"]), Some(17.0));
    assert_eq!(number(&mut all, CALLS, &["f"]), Some(2.0));
}

#[test]
fn counters_go_on_when_the_target_is_started_again() {
    let mut all = Accumulator::new(Bounds::default());
    for round in 1..4 {
        let id = start(&mut all, 1, "web");
        all.observe(id, &snapshot(0, 10, &[Did::called("f", &[1, 2])]));
        // The process was killed: of its last interval there is only a look.
        all.look(id, &snapshot(10, 20, &[Did { open: 3, ..Did::called("f", &[1]) }]));
        all.end(id);
        assert_eq!(number(&mut all, CALLS, &["f"]), Some(3.0 * f64::from(round)));
        assert_eq!(number(&mut all, OPEN, &["f"]), Some(0.0));
        assert_eq!(number(&mut all, "ctrace_target_processes", &["web"]), Some(0.0));
    }
    for metric in ["ctrace_target_starts_total", "ctrace_target_ends_total"] {
        assert_eq!(number(&mut all, metric, &["web"]), Some(3.0));
    }
}

#[test]
fn processes_of_a_target_are_told_together() {
    let mut all = Accumulator::new(Bounds::default());
    let names = [(1, "web"), (2, "web"), (3, "db")];
    let [one, two, other] = names.map(|(id, name)| start(&mut all, id, name));
    all.observe(one, &snapshot(0, 10, &[Did::called("f", &[1])]));
    all.look(two, &snapshot(0, 10, &[Did::called("f", &[1, 2])]));
    all.observe(other, &snapshot(0, 10, &[Did::called("f", &[1, 2, 3, 4])]));
    assert_eq!(number(&mut all, CALLS, &["f", "web"]), Some(3.0));
    assert_eq!(number(&mut all, CALLS, &["f", "db"]), Some(4.0));
    all.keep(|name| name == "db");
    assert_eq!(number(&mut all, CALLS, &["f", "web"]), Some(3.0), "it is still traced");
    [one, two].into_iter().for_each(|id| all.end(id));
    all.keep(|name| name == "db");
    assert_eq!(number(&mut all, CALLS, &["web"]), None);
}

#[test]
fn functions_beyond_the_bound_are_told_together() {
    let bounds = Bounds { functions: 2, ..Bounds::default() };
    let mut all = Accumulator::new(bounds);
    let id = start(&mut all, 1, "web");
    let names = ["a", "b", "c", "d", "never"];
    let calls = |name: &&str| Did::called(name, if *name == "never" { &[] } else { &[5] });
    for interval in 0..3 {
        let did: Vec<Did> = names.iter().map(calls).collect();
        all.observe(id, &snapshot(interval * 10, interval * 10 + 10, &did));
    }
    assert_eq!(number(&mut all, CALLS, &["a"]), Some(3.0));
    assert_eq!(number(&mut all, CALLS, &["c"]), None);
    assert_eq!(number(&mut all, CALLS, &["never"]), None);
    assert_eq!(number(&mut all, CALLS, &["other", "web"]), Some(6.0));
    assert_eq!(number(&mut all, "ctrace_target_functions", &[]), Some(2.0));
    assert_eq!(number(&mut all, "ctrace_target_functions_in_other", &[]), Some(2.0));
}

#[test]
fn the_age_of_a_target_is_not_its_processor_time() {
    let mut all = Accumulator::new(Bounds::default());
    let id = start(&mut all, 1, "old");
    let cpu = "ctrace_target_cpu_seconds_total";
    let second = 1_000_000_000;
    all.observe(id, &snapshot(0, 1_000 * second, &[]));
    assert_eq!(number(&mut all, cpu, &[]), Some(0.0));
    all.look(id, &snapshot(1_000 * second, 1_002 * second, &[]));
    all.observe(id, &snapshot(1_000 * second, 1_003 * second, &[]));
    assert_eq!(number(&mut all, cpu, &[]), Some(3.0));
}

#[test]
fn a_known_target_is_told_before_it_runs() {
    let mut all = Accumulator::new(Bounds::default());
    all.add_target("web", None);
    all.begin(SessionId(1), "web");
    all.end(SessionId(1));
    assert_eq!(number(&mut all, "ctrace_target_starts_total", &["web"]), Some(0.0));
    assert_eq!(number(&mut all, "ctrace_target_attach_failures_total", &["web"]), Some(1.0));
    assert_eq!(number(&mut all, "ctrace_target_losses_total", &["event"]), Some(0.0));
}

#[test]
fn each_kind_of_loss_has_its_own_number() {
    let mut all = Accumulator::new(Bounds::default());
    let id = start(&mut all, 1, "web");
    let mut interval = snapshot(0, 100, &[]);
    interval.report.loss = LossReport {
        events: 1,
        late: 2,
        decode_errors: 3,
        calls_untimed: 4,
        calls_headless: 5,
        payloads: 6,
        ..LossReport::default()
    };
    all.observe(id, &interval);
    let kinds = ["event", "late_event", "decode_error", "untimed_call", "headless_exit", "payload"];
    let told = kinds.map(|kind| number(&mut all, "ctrace_target_losses_total", &[kind]));
    assert_eq!(told, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(Some));
}

/// A daemon may take over another configuration between two sessions of a target.
#[test]
fn the_number_of_values_with_series_is_that_of_the_latest_session() {
    let mut all = Accumulator::new(Bounds::default());
    let calls = |value: u64| {
        let sum = ValueSum { calls: value, total: Nanos(70 * value) };
        let value = CallValue::Known(Value::Unsigned(value));
        CallsOfValue::new(&FunctionInfo::new("f", "program"), value, sum)
    };
    for (session, most, value, expected) in [(1, 0, 3, None), (2, 20, 5, Some(5.0))] {
        let id = start(&mut all, session, "web");
        all.observe_values(id, "key", most, vec![calls(value)]);
        let value = value.to_string();
        assert_eq!(number(&mut all, "ctrace_value_calls_total", &[&value]), expected);
        all.lose_values(id);
        let lost = number(&mut all, "ctrace_target_values_lost_total", &["web"]);
        assert_eq!(lost, Some(session as f64));
    }
}

#[test]
fn series_have_the_labels_that_the_catalogue_says() {
    let mut all = Accumulator::new(Bounds::default());
    all.add_target("web", Some(1.0));
    let id = start(&mut all, 1, "web");
    all.observe(id, &snapshot(0, 10, &[Did::called("f", &[5])]));
    let sum = ValueSum { calls: 3, total: Nanos(70) };
    let calls = CallsOfValue::new(&FunctionInfo::new("f", "program"), CallValue::Lost, sum);
    all.observe_values(id, "key", 20, vec![calls]);
    let mut sum = PlotSum::default();
    sum.add(Nanos(3), 2.5);
    let numbers = NumbersOfPlot::new(&FunctionInfo::new("queue", "program"), sum);
    all.observe_plots(id, vec![numbers]);
    let families = told(&mut all);
    for Family { metric, points } in &families {
        for point in points {
            let labels: Vec<&str> = point.labels.iter().map(|(name, _)| *name).collect();
            assert_eq!(labels, metric.labels, "{}", metric.name);
        }
    }
    let own = |metric: &Metric| !metric.labels.contains(&"target");
    let told = families.iter().map(|family| family.metric.name);
    let expected = catalog::all().filter(|metric| !own(metric)).map(|metric| metric.name);
    assert!(told.eq(expected));
}

/// An event of one of two targets of a daemon.
#[derive(Clone, Debug)]
enum Step {
    Start,
    Calls {
        session: usize,
        function: usize,
        durations: Vec<u64>,
        untimed: u64,
    },
    /// The look overestimates the running calls by `too_long`.
    Look {
        session: usize,
        too_long: u64,
    },
    Interval {
        session: usize,
    },
    End {
        session: usize,
        last_report: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let calls = (0..4usize, 0..3usize, prop::collection::vec(0..1u64 << 40, 0..4), 0..3u64);
    prop_oneof![
        1 => Just(Step::Start),
        4 => calls.prop_map(|(session, function, durations, untimed)| {
            Step::Calls { session, function, durations, untimed }
        }),
        3 => (0..4usize, 0..50u64).prop_map(|(session, too_long)| Step::Look { session, too_long }),
        2 => (0..4usize).prop_map(|session| Step::Interval { session }),
        1 => (0..4usize, any::<bool>())
            .prop_map(|(session, last_report)| Step::End { session, last_report }),
    ]
}

struct Process {
    id: SessionId,
    from: u64,
    looked: bool,
    did: Vec<Did>,
}

fn nothing() -> Vec<Did> {
    // There are more functions than allowed series.
    ["f", "g", "h"].map(|name| Did::called(name, &[])).into()
}

/// Returns each number that must not decrease, by its series.
fn counters(families: &[Family]) -> BTreeMap<String, f64> {
    let counters = families.iter().filter(|family| family.metric.kind != MetricKind::Gauge);
    let mut all = BTreeMap::new();
    for (metric, point) in counters.flat_map(|f| f.points.iter().map(|point| (f.metric, point))) {
        let name = format!("{}{:?}", metric.name, point.labels);
        match &point.value {
            MetricValue::Number(value) => drop(all.insert(name, *value)),
            MetricValue::Histogram(latency) => {
                all.insert(format!("{name} sum"), latency.sum.0 as f64);
                for (first, counts) in latency.spans() {
                    for (place, count) in counts.iter().enumerate() {
                        all.insert(format!("{name} {}", first + place as i32), *count as f64);
                    }
                }
            }
        }
    }
    all
}

proptest! {
    #[test]
    fn counters_never_go_down_and_end_at_the_truth(
        steps in prop::collection::vec(step(), 1..60)
    ) {
        let bounds = Bounds { functions: 2, ..Bounds::default() };
        let mut all = Accumulator::new(bounds);
        let (mut processes, mut now) = (Vec::<Process>::new(), 0);
        let (mut calls, mut truth) = (0, Latency::default());
        let mut before = BTreeMap::new();
        for step in steps {
            now += 10;
            let count = processes.len();
            let of = |session: usize| (count > 0).then(|| session % count);
            match step {
                Step::Start => {
                    let id = start(&mut all, now, "web");
                    processes.push(Process { id, from: now, looked: false, did: nothing() });
                }
                Step::Calls { session, function, durations, untimed } => {
                    let Some(process) = of(session).map(|at| &mut processes[at]) else { continue };
                    let did = &mut process.did[function];
                    did.active += durations.len() as u64;
                    did.durations.extend(durations);
                    did.untimed += untimed;
                    process.looked = false;
                }
                Step::Look { session, too_long } => {
                    let Some(process) = of(session).map(|at| &mut processes[at]) else { continue };
                    let mut seen = process.did.clone();
                    seen.iter_mut().for_each(|did| did.active += too_long);
                    all.look(process.id, &snapshot(process.from, now, &seen));
                    process.looked = true;
                }
                Step::Interval { session } => {
                    let Some(process) = of(session).map(|at| &mut processes[at]) else { continue };
                    all.observe(process.id, &snapshot(process.from, now, &process.did));
                    let did = std::mem::replace(&mut process.did, nothing());
                    (process.from, process.looked) = (now, true);
                    add(&mut calls, &mut truth, &did);
                }
                Step::End { session, last_report } => {
                    let Some(at) = of(session) else { continue };
                    let process = processes.swap_remove(at);
                    if last_report || !process.looked {
                        all.observe(process.id, &snapshot(process.from, now, &process.did));
                    }
                    all.end(process.id);
                    add(&mut calls, &mut truth, &process.did);
                }
            }
            let after = counters(&told(&mut all));
            for (name, was) in &before {
                let is = after.get(name);
                prop_assert!(is.is_some_and(|is| is >= was), "{name}: {was} became {is:?}");
            }
            before = after;
        }
        for process in processes {
            all.observe(process.id, &snapshot(process.from, now + 10, &process.did));
            all.end(process.id);
            add(&mut calls, &mut truth, &process.did);
        }
        let families = told(&mut all);
        let (mut told_calls, mut told_latency) = (0.0, Latency::default());
        for point in families.iter().flat_map(|family| family.points.iter().map(move |p| (family, p))) {
            match (point.0.metric.name, &point.1.value) {
                (CALLS, MetricValue::Number(value)) => told_calls += value,
                (DURATION, MetricValue::Histogram(latency)) => told_latency.add(latency),
                _ => {}
            }
        }
        prop_assert_eq!(told_calls, calls as f64);
        prop_assert_eq!(told_latency, truth);
        prop_assert!(number(&mut all, ACTIVE, &[]).is_none_or(|active| active >= 0.0));
    }
}

fn add(calls: &mut u64, truth: &mut Latency, did: &[Did]) {
    for did in did {
        *calls += did.durations.len() as u64 + did.untimed;
        if !did.durations.is_empty() {
            let durations: Vec<Nanos> = did.durations.iter().copied().map(Nanos).collect();
            let calls = ctrace_core::stats::Summary::of(&durations);
            truth.add(&Latency::new(&calls, &Edges::default()));
        }
    }
}
