//! Tests that methods of a language, which its runtime announces by USDT probes, have their own names: in
//! the tree, in recordings, and wherever hostile names may come.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::{Finished, run};
use ctrace_tests::recorded::Recorded;
use ctrace_tests::report::Report;
use ctrace_tests::targets::program;
use ctrace_tests::trace::Trace;
use ctrace_tests::{gate, or_skip};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
const ROUNDS: u64 = 50;
const HOSTILE: &str = "\u{1b}[31m<b>\"#x\n=1+1";

fn target(env: &Env) -> PathBuf {
    env.targets.get(&program("usdt_methods.c")).expect("builds")
}

/// Checks that each method has its calls. One whose class could not be read is a call of the pair.
#[track_caller]
fn check(report: &Report, hostile: &str) {
    report.check_lossless().expect("no losses");
    let called = report.functions().filter(|function| function.calls() > 0);
    let calls: BTreeMap<&str, u64> =
        called.map(|function| (function.name(), function.calls())).collect();
    let expected = [
        ("Server#handle", ROUNDS),
        ("Server#parse", 2 * ROUNDS),
        (hostile, ROUNDS),
        ("method", ROUNDS),
    ];
    assert_eq!(calls, BTreeMap::from(expected));
    let paths = report.paths();
    for path in
        [&["Server#handle", "Server#parse", "Server#parse"][..], &["Server#handle", hostile]]
    {
        assert!(paths.iter().any(|of| of == path), "{path:?} in {paths:?}");
    }
}

fn recorded(env: &Env, options: &[&str]) -> Recorded {
    let mut recorded = Recorded::new(env, []).expect("a folder").args(options.iter().copied());
    let finished = recorded.program(&target(env), &[&ROUNDS.to_string()]).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    recorded
}

fn export(env: &Env, recorded: &Recorded, format: &str) -> Finished {
    let mut export = Command::new(&env.ctrace);
    export.arg("export").arg(&recorded.file).args(["--format", format, "-o", "-"]);
    let exported = run(&mut export, LIMIT).expect("exports");
    assert_eq!(exported.shell_code(), 0, "{}", exported.stderr);
    exported
}

#[test]
fn a_tree_has_the_names_of_methods() {
    let env = or_skip!(gate::live(Link::Session));
    let traced = Trace::run(&env)
        .expect("ctrace")
        .args(["-u", "ruby:method"])
        .program(&target(&env), [ROUNDS.to_string().as_str()])
        .finish()
        .and_then(|traced| traced.expect_code(0))
        .expect("a trace");
    check(traced.report().expect("a report"), HOSTILE);
}

#[test]
fn a_recording_has_the_names_of_methods() {
    let env = or_skip!(gate::live(Link::Session));
    let recorded = recorded(&env, &["-u", "ruby:method"]);
    check(&recorded.report(&[]).expect("a report"), HOSTILE);
    // The name of the call and those of its probes find all of its methods.
    for pattern in ["ruby:method", "ruby:method__entry"] {
        check(&recorded.report(&["-u", pattern]).expect("a report"), HOSTILE);
    }
    let of_one = recorded.report(&["-u", "ruby:Server#parse"]).expect("a report");
    assert_eq!(of_one.expect("Server#parse").expect("it is there").calls(), 2 * ROUNDS);
}

#[test]
fn hostile_names_of_methods_drive_nothing() {
    let env = or_skip!(gate::live(Link::Session));
    let recorded = recorded(&env, &["-u", "ruby:method"]);
    let mut report = Command::new(&env.ctrace);
    report.arg("report").arg(&recorded.file).args(["--view", "summary", "--view", "tree"]);
    let shown = run(&mut report, LIMIT).expect("a report");
    assert_eq!(shown.shell_code(), 0, "{}", shown.stderr);
    assert!(!shown.stdout.contains('\u{1b}'), "{:?}", shown.stdout);
    for format in ["flamegraph", "csv"] {
        let exported = export(&env, &recorded, format).stdout;
        assert!(exported.contains("31m"), "{format} has the name: {exported:?}");
        assert!(!exported.contains('\u{1b}') || format == "csv", "{format}: {exported:?}");
        assert!(!exported.contains("<b>") || format == "csv", "{format}: {exported:?}");
    }
}

#[test]
fn values_that_are_asked_for_are_no_names() {
    let env = or_skip!(gate::live(Link::Session));
    let asked = ["-u", "ruby:method", "--arg", "ruby:method: class=0:str, 1:str"];
    let recorded = recorded(&env, &asked);
    let report = recorded.report(&[]).expect("a report");
    assert_eq!(report.expect("method").expect("it is there").calls(), 5 * ROUNDS);
    let exported = export(&env, &recorded, "jsonl").stdout;
    let of_server = exported.lines().filter(|line| line.contains("\"class\":\"Server\"")).count();
    assert_eq!(of_server as u64, 3 * ROUNDS);
}
