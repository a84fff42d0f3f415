//! Compares the builds of simulated fleets: what is slower is found, and nothing else.

#[path = "../fixture/fleet.rs"]
mod simulation;

use ctrace_core::diff::{Diff, Metric, Options, Verdict};
use ctrace_core::fleet::compare::{Side, Survey, diff};
use ctrace_core::fleet::decode::{FunctionSeen, TargetSeen};
use ctrace_core::fleet::encode;
use simulation::{Host, Simulation, slower};
use std::sync::Arc;

fn small(seed: u64, factor: f64) -> Simulation {
    let interval_ns = 3_600_000_000_000;
    Simulation { hosts: 40, intervals: 12, interval_ns, functions: 12, calls: 30, seed, factor }
}

/// Returns the side of these hosts.
fn side<'a>(hosts: impl Iterator<Item = &'a Host> + Clone) -> Side {
    let mut survey = Survey::default();
    let targets = |each: &mut dyn FnMut(&Arc<str>, &TargetSeen<'_>)| {
        for host in hosts.clone() {
            let name = Arc::from(host.name.as_str());
            for row in &host.targets {
                let seen = TargetSeen {
                    version: row.origin.version.as_ref(),
                    start_ns: row.origin.start_ns,
                    end_ns: row.origin.end_ns,
                    processes: 1,
                    calls: row.calls,
                    cost_ns: row.cost_ns,
                    cpu_ns: row.cpu_ns,
                    losses: row.losses,
                };
                each(&name, &seen);
            }
        }
    };
    targets(&mut |host, row| survey.add(host, row));
    let mut side = survey.side();
    targets(&mut |host, row| side.add_target(host, row));
    for host in hosts.clone() {
        for row in &host.functions {
            let names = Arc::new(row.names.clone());
            side.add_function(
                &host.name,
                &FunctionSeen {
                    names: &names,
                    version: row.origin.version.as_ref(),
                    start_ns: row.origin.start_ns,
                    end_ns: row.origin.end_ns,
                    sums: &row.sums,
                },
            );
        }
    }
    side
}

fn compared(simulation: &Simulation, metric: Metric) -> Diff {
    let hosts: Vec<Host> = (0..simulation.hosts).map(|host| simulation.host(host)).collect();
    let of = |new: bool| {
        let chosen = hosts.iter().enumerate();
        side(chosen.filter(move |(at, _)| Simulation::is_new(*at) == new).map(|(_, host)| host))
    };
    let options = Options { metric, ..Options::default() };
    diff(("old".to_owned(), of(false)), ("new".to_owned(), of(true)), &options)
}

#[test]
fn a_slower_build_on_a_tenth_of_the_hosts_is_found() {
    for metric in [Metric::P50, Metric::MEAN] {
        let found = compared(&small(7, 1.07), metric);
        assert_eq!((found.old.stretches, found.new.stretches), (36 * 12, 4 * 12));
        for function in &found.functions {
            let change = function.compared.changes.of(metric);
            let expected = if *function.name == slower() { "slower" } else { "" };
            let is_found = change.verdict.is_significant();
            assert_eq!(is_found, !expected.is_empty(), "{}: {change:?}", function.name);
            if is_found {
                assert_eq!(change.verdict.name(), expected);
                let (low, high) = (change.low_percent, change.high_percent);
                assert!(low < Some(7.0) && high > Some(7.0), "{change:?}");
            }
        }
    }
}

/// At most 5 % of the comparisons of equal builds find anything at all.
#[test]
fn equal_builds_are_rarely_told_apart() {
    let is_alarm = |seed: &u64| {
        let found = compared(&small(100 + seed, 1.0), Metric::P50);
        assert_eq!(found.functions.len(), 12);
        assert!(found.functions.iter().all(|row| row.compared.verdict != Verdict::TooFew));
        found.functions.iter().any(|row| row.compared.verdict.is_significant())
    };
    let alarms = (0..200).filter(is_alarm).count();
    assert!(alarms <= 10, "{alarms} of 200");
}

/// Names, times and buckets repeat themselves: a row needs few bytes of a file.
#[test]
fn rows_need_few_bytes() {
    let simulation =
        Simulation { hosts: 1, intervals: 24, functions: 200, calls: 20, ..small(1, 1.0) };
    let mut host = simulation.host(0);
    let rows = host.functions.len();
    assert_eq!([host.paths.len(), host.slow_calls.len()], [rows, rows]);
    let files = [
        encode::functions(&mut host.functions),
        encode::paths(&mut host.paths),
        encode::slow_calls(&mut host.slow_calls),
    ];
    let bytes = files.map(|file| file.expect("a file").len() as f64 / rows as f64);
    let [functions, paths, slow_calls] = bytes;
    assert!(functions < 40.0 && paths < 26.0 && slow_calls < 20.0, "{bytes:?}");
}
