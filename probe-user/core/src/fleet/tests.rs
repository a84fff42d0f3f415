//! Files as a daemon writes them and a reader reads them, whole and damaged.

use super::buckets::Buckets;
use super::decode::Part;
use super::rows::{FunctionRow, FunctionSums, Losses, Origin, PathRow, TargetRow};
use super::slow::{CalleeRow, OneCall, SlowRow};
use super::stacks::Paths;
use super::sums::{By, Sums};
use super::{FunctionNames, Wanted, encode};
use crate::function::FunctionKind;
use crate::glob::Glob;
use crate::stats::Summary;
use crate::units::{Nanos, Pid};
use std::sync::Arc;

fn origin(start_ns: i64, version: Option<&str>) -> Arc<Origin> {
    Arc::new(Origin {
        start_ns,
        end_ns: start_ns + 1_000,
        target: "web".into(),
        pid: Pid(7),
        version: version.map(Into::into),
    })
}

fn names(function: &str) -> FunctionNames {
    FunctionNames {
        function: function.into(),
        object: "server".into(),
        kind: FunctionKind::Function,
        group: None,
        short_name: None,
        full_name: None,
    }
}

fn function(origin: &Arc<Origin>, name: &str, durations: &[u64]) -> FunctionRow {
    let durations: Vec<Nanos> = durations.iter().copied().map(Nanos).collect();
    let mut summary = Summary::of(&durations);
    summary.tally.add_untimed(70, 60);
    let buckets = summary.histogram.as_ref().map(Buckets::of).unwrap_or_default();
    FunctionRow {
        origin: Arc::clone(origin),
        names: names(name),
        build_id: None,
        sums: FunctionSums {
            tally: summary.tally,
            headless: 2,
            active_ns: 900,
            innermost_ns: 800,
            buckets,
            cost_ns: 31,
            armed_ns: 1_000,
            lost_events: 5,
        },
    }
}

/// Returns the sums of files, each of a host.
fn sums(by: Option<By>, wanted: &Wanted, files: &[(&str, Vec<u8>)]) -> Sums {
    let mut all = Sums::new(by);
    for (host, file) in files {
        let part = Part::open(file.clone()).expect("a file");
        let mut of_file = Sums::new(by);
        for group in 0..part.groups() {
            part.functions(group, wanted, |row| of_file.add_function(host, "web.service", row))
                .expect("rows");
        }
        all = all.merge(of_file);
    }
    all
}

/// Calls of two functions on two hosts, with the durations of each.
const OF_A: [&[u64]; 2] = [&[1_000, 2_000, 40], &[3_000, 77]];
const OF_B: [&[u64]; 2] = [&[9_000_000], &[]];

fn two_hosts() -> Vec<(&'static str, Vec<u8>)> {
    let file = |host: usize, version: &str| {
        let (early, late) = (origin(10, Some(version)), origin(1_010, Some(version)));
        let mut rows = vec![
            function(&early, "a", OF_A[host]),
            function(&late, "b", OF_B[host]),
            function(&late, "a", &[500 + host as u64]),
        ];
        encode::functions(&mut rows).expect("a file")
    };
    vec![("one", file(0, "aa11")), ("two", file(1, "bb22"))]
}

#[test]
fn sums_over_hosts_are_those_of_all_calls() {
    let parts = sums(None, &Wanted::default(), &two_hosts()).into_parts();
    let report = parts[""].report(Vec::new());
    let row = |name: &str| report.functions.iter().find(|row| &*row.name == name).expect("a row");
    let durations: Vec<Nanos> = OF_A.concat().into_iter().chain([500, 501]).map(Nanos).collect();
    let expected = Summary::of(&durations).tally;
    let a = row("a");
    assert_eq!((a.calls, a.timed, a.untimed, a.headless), (11, 7, 4, 8));
    assert_eq!(a.tally().timed_ns, expected.timed_ns);
    assert_eq!(a.total_ns.0, expected.timed_ns + 4 * 70);
    assert_eq!(a.tally().squares, expected.squares);
    assert_eq!((a.durations.min_ns, a.durations.max_ns), (Some(Nanos(40)), Some(Nanos(3_000))));
    let p50 = a.durations.p50_ns.expect("a percentile").0;
    assert!(p50.abs_diff(501) as f64 <= 501.0 * 0.032, "{p50}");
    assert_eq!((row("b").timed, row("b").untimed), (1, 2));
}

#[test]
fn only_what_is_wanted_counts() {
    let calls = |wanted: Wanted| {
        let parts = sums(None, &wanted, &two_hosts()).into_parts();
        let report = parts.get("").map(|part| part.report(Vec::new()));
        report.map_or(0, |report| report.functions.iter().map(|row| row.calls).sum::<u64>())
    };
    let all = Wanted::default();
    assert_eq!(calls(all.clone()), 14);
    assert_eq!(calls(Wanted { functions: vec![Glob::new("b*")], ..all.clone() }), 3);
    assert_eq!(calls(Wanted { version: Some("aa".into()), ..all.clone() }), 8);
    assert_eq!(calls(Wanted { since_ns: Some(11), ..all.clone() }), 7);
    assert_eq!(calls(Wanted { until_ns: Some(1_010), ..all }), 7);
}

#[test]
fn parts_are_hosts_units_or_versions() {
    let parts = |by| {
        let parts = sums(Some(by), &Wanted::default(), &two_hosts()).into_parts();
        parts.keys().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(parts(By::Host), ["one", "two"]);
    assert_eq!(parts(By::Version), ["aa11", "bb22"]);
    assert_eq!(parts(By::Unit), ["web.service"]);
}

#[test]
fn paths_and_targets_come_back() {
    let row = |path: &[&str], calls| PathRow {
        origin: origin(5, None),
        path: path.iter().map(|name| Arc::from(*name)).collect(),
        calls,
        total_ns: 10 * calls,
        self_ns: 3 * calls,
        lost_events: 0,
        untimed: 1,
        min_ns: None,
        max_ns: None,
        buckets: Buckets::default(),
    };
    let mut rows = vec![row(&["main", "a"], 4), row(&["main"], 1), row(&["main", "a"], 5)];
    let part = Part::open(encode::paths(&mut rows).expect("a file")).expect("a file");
    let mut paths = Paths::default();
    assert_eq!(part.paths(0, &Wanted::default(), |row| paths.add(row)).expect("rows"), 3);
    let a: Vec<Arc<str>> = vec!["main".into(), "a".into()];
    let sums = paths.all[&a];
    assert_eq!((sums.calls, sums.total_ns, sums.self_ns, paths.all.len()), (9, 90, 27, 2));

    let losses = Losses { events: 1, late: 2, untimed: 4, open: 5, ..Losses::default() };
    let target = TargetRow {
        origin: origin(5, None),
        processes: 3,
        program: "server".into(),
        functions: 2,
        calls: 10,
        cost_ns: 44,
        cpu_ns: Some(900),
        losses,
    };
    let file = encode::targets(&[target.clone(), TargetRow { cpu_ns: None, ..target }]);
    let part = Part::open(file.expect("a file")).expect("a file");
    let (mut sums, host) = (Sums::new(Some(By::Version)), Arc::from("one"));
    part.targets(0, &Wanted::default(), |row| sums.add_target(&host, "u", row)).expect("rows");
    let part = &sums.into_parts()[super::sums::UNNAMED];
    assert_eq!((part.covered_ns, part.calls, part.cost_ns, part.cpu_ns), (2_000, 20, 88, 900));
    assert_eq!((part.losses.events, part.losses.report().late, part.intervals), (2, 4, 2));
}

#[test]
fn slow_calls_come_back() {
    let row = |function: &str, start_ns, duration_ns, self_ns| SlowRow {
        origin: origin(5, Some("aa11")),
        names: names(function),
        call: OneCall {
            process: 7,
            tid: u32::MAX,
            thread: "io".into(),
            start_ns,
            duration_ns,
            self_ns,
        },
        path: vec!["main".into(), function.into()],
        inside: vec![CalleeRow { function: "read".into(), calls: 3, total_ns: 40 }],
        lost_events: 2,
    };
    let unknown = SlowRow { inside: Vec::new(), ..row("a", 2, 90, None) };
    let rows = [row("b", -1, 70, Some(30)), unknown, row("a", 1, 80, Some(40))];
    let part = Part::open(encode::slow_calls(&mut rows.clone()).expect("a file")).expect("a file");
    let mut seen = Vec::new();
    let mut visit = |wanted: &Wanted| {
        part.slow_calls(0, wanted, |row| {
            assert_eq!((row.version.map(|it| &**it), &**row.target), (Some("aa11"), "web"));
            seen.push(SlowRow {
                origin: origin(5, Some("aa11")),
                names: FunctionNames::clone(row.names),
                call: row.call.clone(),
                path: row.path.to_vec(),
                inside: row.inside.to_vec(),
                lost_events: row.lost_events,
            });
        })
    };
    let only_a = Wanted { functions: vec![Glob::new("a")], ..Wanted::default() };
    assert_eq!((visit(&only_a).expect("rows"), visit(&Wanted::default()).expect("rows")), (2, 3));
    let [b, unknown, a] = rows;
    assert_eq!(seen, [&a, &unknown, &a, &unknown, &b].map(SlowRow::clone));
}

/// A damaged file is refused or read, and never ends the program.
#[test]
fn damage_is_an_error_and_no_panic() {
    std::panic::set_hook(Box::new(|_| {}));
    let (_, file) = two_hosts().remove(0);
    let read = |bytes: Vec<u8>| {
        let part = Part::open(bytes)?;
        let mut rows = 0;
        for group in 0..part.groups() {
            rows += part.functions(group, &Wanted::default(), |_| {})?;
        }
        Ok::<u64, super::decode::PartError>(rows)
    };
    assert_eq!(read(file.clone()).ok(), Some(3));
    for end in (0..file.len()).step_by(13) {
        assert!(read(file[..end].to_vec()).is_err(), "cut at {end}");
    }
    let mut refused = 0;
    for place in (0..file.len()).step_by(3) {
        let mut bytes = file.clone();
        bytes[place] ^= 0x55;
        match read(bytes) {
            Ok(rows) => assert!(rows <= 3, "{rows}"),
            Err(error) => refused += usize::from(!error.to_string().is_empty()),
        }
    }
    drop(std::panic::take_hook());
    assert!(refused > file.len() / 12, "{refused} of {}", file.len() / 3);
    let other = encode::targets(&[]).expect("a file");
    assert!(read(other).is_ok_and(|rows| rows == 0), "no row group is no row");
    assert!(read(b"PAR1 nonsense PAR1".to_vec()).is_err());
}
