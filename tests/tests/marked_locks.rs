//! Tests that locks of which markers tell are followed, on the running kernel.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::run;
use ctrace_tests::recorded::Recorded;
use ctrace_tests::report::Report;
use ctrace_tests::targets::{Build, program};
use ctrace_tests::tools::has;
use ctrace_tests::trace::Trace;
use ctrace_tests::{gate, or_skip};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// As in the targets.
const ROUNDS: u64 = 5;
const ALONE: u64 = 2 * 300;
const READS: u64 = 12;
const OVERLAPS: u64 = 7;
const JOBS_DONE: u64 = 6;

fn rust() -> Build {
    program("marks_locks.rs").flags(["-O"])
}

fn builds() -> Vec<Build> {
    let cpp = || program("marks_locks.cpp").flags(["-std=c++17", "-O2"]);
    let mut builds = vec![rust(), cpp()];
    builds.extend(has("clang++").map(|()| cpp().compiler("clang++")));
    builds
}

fn target(env: &Env, build: &Build) -> PathBuf {
    env.targets.get(build).expect("builds")
}

#[track_caller]
fn locks(report: &Report) -> &[Value] {
    report.0["locks"]["locks"].as_array().expect("locks")
}

#[track_caller]
fn lock<'a>(report: &'a Report, name: &str) -> &'a Value {
    let found = locks(report).iter().find(|lock| lock["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is not among {:#?}", locks(report)))
}

/// Returns the caller with the longest time, and the number of its times.
fn longest<'a>(lock: &'a Value, count: &str, time: &str) -> (&'a str, u64) {
    let callers = lock["callers"].as_array().expect("callers");
    let number = |caller: &Value, key: &str| caller[key].as_u64().expect("a number");
    let longest = callers.iter().max_by_key(|caller| number(caller, time)).expect("a caller");
    (longest["name"].as_str().expect("a name"), number(longest, count))
}

#[track_caller]
fn check(report: &Report) {
    report.check_schema().expect("as the schema says");
    report.check_lossless().expect("no losses");
    assert_eq!(report.0["locks"]["lossy_stretches"], 0);
    for lock in locks(report) {
        let unknown = [&lock["unknown_holds"], &lock["open_holds"], &lock["unclear"]];
        assert_eq!(unknown, [&json!(0); 3], "{lock:#}");
    }
    let counts = |name: &str| {
        let lock = lock(report, name);
        let number = |key: &str| lock[key].as_u64().expect("a number");
        [number("acquisitions"), number("contended"), number("holds"), number("refused")]
    };
    assert_eq!(counts("pool \x1b[2J"), [2 * ROUNDS, ROUNDS, 2 * ROUNDS, ROUNDS]);
    assert_eq!(counts("alone"), [ALONE, 0, ALONE, 0]);
    assert_eq!(lock(report, "alone")["wait_ns"], 0);
    let held = lock(report, "pool \x1b[2J");
    assert_eq!(longest(held, "waits", "wait_ns"), ("waits for it", ROUNDS));
    assert_eq!(longest(held, "blocked", "blocked_ns"), ("holds it", ROUNDS));
    // Nearly all of the wait is the sleep of the holder.
    let [wait, blocked] = ["wait_ns", "blocked_ns"].map(|key| held[key].as_u64().expect("a time"));
    assert!(blocked <= wait && blocked * 2 > wait, "{blocked} of {wait}");
    let table = lock(report, "table");
    let numbers = ["kind", "shared", "nested", "acquisitions"].map(|key| &table[key]);
    // A thread that reads twice at once has one hold.
    let expected = [json!("rw_lock"), json!(READS), json!(READS), json!(READS + 1)];
    assert_eq!(numbers, expected.each_ref());
    for name in ["heap", "stack"] {
        let of = locks(report).iter().filter(|lock| lock["name"] == name);
        let holds: u64 = of.map(|lock| lock["holds"].as_u64().expect("a number")).sum();
        assert_eq!(holds, OVERLAPS, "{name}");
    }
    // One without a name has that of its variable.
    let unnamed = |lock: &&Value| {
        let name = lock["name"].as_str().expect("a name");
        name.contains("UNNAMED") || name.contains("unnamed_lock")
    };
    assert_eq!(locks(report).iter().filter(unnamed).count(), 1, "{:#?}", locks(report));
    // Holds do not disturb scopes.
    for (name, calls) in
        [("outer", OVERLAPS), ("inner", OVERLAPS), ("holds it", ROUNDS), ("waits for it", ROUNDS)]
    {
        let function = report.function(name).expect("it was called");
        let timed = function.integer("timed").expect("a number");
        assert_eq!((function.calls(), timed), (calls, calls), "{name}");
    }
}

#[test]
fn locks_of_markers_are_followed_unasked() {
    let env = or_skip!(gate::live(Link::Session));
    for build in builds() {
        let traced = Trace::run(&env)
            .expect("starts")
            .program(&target(&env, &build), [])
            .finish()
            .and_then(|traced| traced.expect_code(0))
            .expect("runs");
        check(traced.report().expect("reports"));
    }
}

/// The mutex is free while a thread waits for a condition: its holds are short, its waits for jobs long.
#[test]
fn a_wait_for_a_condition_is_no_hold_of_the_mutex() {
    let env = or_skip!(gate::live(Link::Session));
    let traced = Trace::run(&env).expect("starts").program(&target(&env, &rust()), []).finish();
    let traced = traced.and_then(|traced| traced.expect_code(0)).expect("runs");
    let report = traced.report().expect("reports");
    let jobs = lock(report, "jobs");
    let number = |key: &str| jobs[key].as_u64().expect("a number");
    let of = |name: &str| report.function(name).expect("it was called");
    let waits = of("condition wait");
    // Each hold is from an acquisition or the end of such a wait to a release or the next one.
    assert_eq!(number("holds"), number("acquisitions") + waits.calls(), "{jobs:#}");
    assert!(waits.calls() >= JOBS_DONE, "{} waits", waits.calls());
    let in_waits = waits.integer("total_ns").expect("a time");
    assert_eq!(number("conditions_ns"), in_waits, "{jobs:#}");
    assert!(in_waits > JOBS_DONE * 10_000_000, "{in_waits} ns");
    assert!(number("hold_ns") < in_waits / 2, "{jobs:#}");
    assert_eq!(of("next job").calls(), JOBS_DONE);
}

/// Returns the lines of a Perfetto file with the names of counters of locks, if Python is there.
fn counters(trace: &Path) -> Option<String> {
    // Each packet has this tag, its length, and inside another tag and length before what is compressed.
    const UNPACK: &str = r"
import re, sys, zlib
data, packets = open(sys.argv[1], 'rb').read(), b''
while data:
    start = re.match(rb'\x0a[\x80-\xff]*[\x00-\x7f]\x92\x03[\x80-\xff]*[\x00-\x7f]', data).end()
    unpack = zlib.decompressobj()
    packets += unpack.decompress(data[start:])
    data = unpack.unused_data
print(*(found.decode() for found in re.findall(rb'[ -~]+: threads waiting', packets)), sep='\n')
";
    has("python3").ok()?;
    let mut python = Command::new("python3");
    let finished =
        run(python.args(["-c", UNPACK]).arg(trace), Duration::from_secs(60)).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    Some(finished.stdout)
}

#[test]
fn a_recording_has_the_same_locks() {
    let env = or_skip!(gate::live(Link::Session));
    let mut recorded = Recorded::new(&env, []).expect("a folder");
    let finished = recorded.program(&target(&env, &rust()), &[]).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    check(&recorded.report(&["--view", "locks"]).expect("a report"));
    let mut export = Command::new(&env.ctrace);
    export.args(["export", "--format", "perfetto"]).arg(&recorded.file).arg("-o");
    let trace = recorded.file.with_extension("pftrace");
    let finished = run(export.arg(&trace), Duration::from_secs(120)).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let Some(counters) = counters(&trace) else {
        return eprintln!("not all is tested: no python3");
    };
    assert!(counters.contains(r"pool \u{1b}[2J: threads waiting"), "{counters}");
    assert!(!counters.contains("alone: threads waiting"), "{counters}");
}

/// Returns what `run` shows in a table.
fn shown(env: &Env, options: &[&str]) -> String {
    let mut ctrace = Command::new(&env.ctrace);
    ctrace.arg("run").args(options).args(["-o", "-", "--"]).arg(target(env, &rust()));
    let finished = run(&mut ctrace, Duration::from_secs(120)).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    finished.stdout
}

#[test]
fn a_table_has_them_unless_other_views_are_chosen() {
    let env = or_skip!(gate::live(Link::Session));
    let text = shown(&env, &[]);
    let row = |name: &str| text.lines().any(|line| line.contains(name));
    assert!(row("Locks") && row("Who waits, and for whom") && row("alone"), "{text}");
    assert!(text.contains(r"pool \u{1b}[2J") && !text.contains('\x1b'), "{text}");
    assert!(!shown(&env, &["--view", "tree"]).contains("Who waits"));
    let of_locks = shown(&env, &["-m", "locks/*"]);
    // No scope is around them.
    assert!(of_locks.contains("waiter"), "{of_locks}");
}

/// Wrong numbers would be worse than none.
#[test]
fn locks_of_which_some_events_are_left_out_are_not_followed() {
    let env = or_skip!(gate::live(Link::Session));
    for (options, why) in [
        (&["-x", "mutex unlock"][..], "10 of 11 markers of the group locks are chosen"),
        (&["--min-duration", "1us"], "--min-duration leaves out some"),
    ] {
        let text = shown(&env, options).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(why) && !text.contains("Who waits, and for whom"), "{text}");
    }
    let text = shown(&env, &["-x", "locks/*"]);
    assert!(!text.contains("mutex") && text.contains("holds it"), "{text}");
}
