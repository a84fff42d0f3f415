//! Programs written for CTRACK ask for their own tables: they get those of `--view ctrack`, and cannot have
//! ctrace write anywhere else.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::{Running, run};
use ctrace_tests::report::Report;
use ctrace_tests::targets::program;
use ctrace_tests::tools::has;
use ctrace_tests::trace::{Trace, Traced};
use ctrace_tests::{gate, or_skip};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);

fn target_of(env: &Env, compiler: &str) -> PathBuf {
    let build = program("ctrack_tables.cpp").flags(["-std=c++17", "-O2"]).compiler(compiler);
    env.targets.get(&build).expect("builds")
}

fn target(env: &Env) -> PathBuf {
    target_of(env, "g++")
}

fn traced(env: &Env, options: &[&str], arguments: &[&str]) -> Traced {
    let trace = Trace::run(env).expect("a folder").args(options.iter().copied());
    let trace = trace.program(&target(env), arguments.iter().copied());
    trace.finish().and_then(|traced| traced.expect_code(0)).expect("runs")
}

/// Returns the tables that the program has printed.
fn tables(stdout: &str) -> Vec<Value> {
    let lines = stdout.lines().filter(|line| line.starts_with('{'));
    lines.map(|line| serde_json::from_str(line).expect(line)).collect()
}

fn rows(table: &Value) -> &[Value] {
    table["rows"].as_array().expect("rows")
}

#[track_caller]
fn calls(table: &Value, name: &str) -> u64 {
    let row = rows(table).iter().find(|row| row["name"] == name);
    row.map_or(0, |row| row["calls"].as_u64().expect("a number"))
}

/// Checks each number against the row of the report. What CTRACK prints as 0 is absent there.
#[track_caller]
fn check_same(table: &Value, report: &Report) {
    let ctrack = &report.0["ctrack"];
    let expected = ctrack["functions"].as_array().expect("rows");
    assert_eq!(rows(table).len(), expected.len());
    assert!(expected.len() > 3, "{expected:?}");
    for row in expected {
        let function = &report.0["functions"][row["function"].as_u64().expect("an index") as usize];
        let is_it = |told: &&Value| told["name"] == function["name"];
        let told = rows(table).iter().find(is_it).expect("a row");
        for key in ["file", "line"] {
            assert_eq!(told[key], function[key], "{function}");
        }
        let numbers = row.as_object().expect("a row").iter();
        let numbers = numbers.filter(|(key, _)| told.get(key).is_some());
        let compared = numbers.map(|(key, number)| {
            let [told, number] = [&told[key], number].map(|n| n.as_f64().unwrap_or(0.0));
            assert!((told - number).abs() <= told.abs() * 1e-9, "{key}: {told}, {number}");
        });
        assert_eq!(compared.count(), 17, "{row}");
        let percent = told["percent"].as_f64().expect("a number");
        let ae = told["active_exclusive_ns"].as_f64().expect("a number");
        let total = table["total"].as_f64().expect("a number");
        assert!((percent - ae / total * 100.0).abs() < 1e-6, "{percent} {ae} {total}");
    }
    assert_eq!(table["tracked"], ctrack["tracked_ns"]);
    let ae = rows(table).iter().map(|row| row["active_exclusive_ns"].as_u64());
    assert!(ae.rev().is_sorted(), "in order of ae");
    // The report goes on until the program has ended.
    assert!(table["total"].as_u64() <= report.0["duration_ns"].as_u64());
}

#[test]
fn the_tables_are_those_of_the_view() {
    let env = or_skip!(gate::live(Link::Session));
    for compiler in ["g++", "clang++"].into_iter().filter(|compiler| has(compiler).is_ok()) {
        let path = target_of(&env, compiler);
        let trace = Trace::run(&env).expect("a folder").args(["--view", "ctrack"]);
        let traced = trace.program(&path, ["once"]).finish();
        let traced = traced.and_then(|traced| traced.expect_code(0)).expect("runs");
        let report = traced.report().expect("a report");
        let [table] = &tables(&traced.finished.stdout)[..] else { panic!("one table") };
        check_same(table, report);
        assert_eq!(calls(table, "outer"), 600);
        report.expect_note(&["asked 1 time", "waited"]).expect("it is told");
        let names: Vec<_> = report.functions().map(|function| function.name()).collect();
        assert!(
            !names.iter().any(|name| name.contains("tables")),
            "a request is no call: {names:?}"
        );
    }
}

/// Calls that find no room in memory are read from the file.
#[test]
fn they_are_also_those_of_calls_in_a_file() {
    let env = or_skip!(gate::live(Link::Session));
    let traced = traced(&env, &["--view", "ctrack", "--spool", "64KiB"], &["once"]);
    let [table] = &tables(&traced.finished.stdout)[..] else { panic!("one table") };
    check_same(table, traced.report().expect("a report"));
}

#[test]
fn each_call_is_in_one_period() {
    let env = or_skip!(gate::live(Link::Session));
    let traced = traced(&env, &["--view", "ctrack"], &["periods"]);
    let tables = tables(&traced.finished.stdout);
    let [work, nothing, two, cleared, without_fastest] = &tables[..] else { panic!("{tables:?}") };
    assert_eq!((calls(work, "outer"), calls(work, "inner")), (120, 600));
    assert_eq!(calls(work, "of thread 0"), 80);
    assert_eq!(rows(nothing).len(), 0, "{nothing}");
    assert_eq!((rows(two).len(), calls(two, "inner")), (1, 2), "{two}");
    assert_eq!(calls(cleared, "inner"), 1, "what was cleared is in none");
    assert_eq!(rows(without_fastest).len(), 0);
    let report = traced.report().expect("a report");
    assert_eq!(report.expect("inner").expect("traced").calls(), 614, "the report has all");
    // Each period ends where the next one begins.
    let sum: u64 = tables.iter().map(|table| table["total"].as_u64().expect("a number")).sum();
    let duration = report.0["duration_ns"].as_u64().expect("a number");
    assert!(sum <= duration);
    // The wait for the tables before is no time of the program: its two short calls came right after it.
    let short = two["total"].as_u64().expect("a number");
    assert!(short * 20 < duration, "{short} of {duration}");
}

/// Its scopes are chosen by their group, which the request has not.
#[test]
fn a_program_that_runs_has_its_tables_once_it_is_traced() {
    let env = or_skip!(gate::live(Link::Session));
    let target = Running::start_ready(Command::new(target(&env)).arg("attached")).expect("starts");
    let trace = Trace::attach(&env, target.pid()).expect("a folder").args(["-m", "prod/*"]);
    let traced = trace.finish().and_then(|traced| traced.expect_code(0)).expect("traced");
    let told = tables(&target.wait(LIMIT).expect("it ends").stdout);
    let [table] = &told[..] else { panic!("one table: {told:?}") };
    let all = traced.report().expect("a report").expect("inner").expect("traced").calls();
    assert!((1..=all).contains(&calls(table, "inner")), "{table} of {all}");
}

#[test]
fn each_process_has_its_own_calls() {
    let env = or_skip!(gate::live(Link::Session));
    let traced = traced(&env, &["--follow"], &["children"]);
    let [child, parent] = &tables(&traced.finished.stdout)[..] else { panic!("two tables") };
    assert_eq!((calls(child, "in the child"), calls(child, "inner")), (1, 5));
    assert_eq!((rows(parent).len(), calls(parent, "inner")), (1, 1));
}

#[test]
fn results_are_printed_as_tables() {
    let env = or_skip!(gate::live(Link::Session));
    let text = traced(&env, &[], &["print"]).finished.stdout;
    let (first, second) = text.split_once("\nDetails\n\u{1b}").expect("two results");
    assert!(first.starts_with("Summary\n+--"), "{first}");
    for shown in [
        "time ctracked %",
        "ctrack_tables.cpp",
        " outer |",
        " of thread 1 |",
        "ae[1-99]%",
        "time ae[0-100]",
        "slowest[99-100]%",
    ] {
        assert!(first.contains(shown), "no {shown} in {first}");
    }
    let lines = first.lines().filter(|line| line.starts_with('|'));
    let widths = lines.map(|line| line.chars().count());
    assert!(widths.clone().count() > 10 && widths.min() > Some(80), "{first}");
    assert!(second.contains("inner") && !second.contains("outer"), "{second}");
}

/// Nobody who cannot give the numbers has the program wait for them.
#[test]
fn without_numbers_tables_are_empty_at_once() {
    let env = or_skip!(gate::live(Link::Session));
    let alone = run(Command::new(target(&env)).arg("once"), LIMIT).expect("runs");
    let outputs = [&["--interval", "100"][..], &["--budget", "50"], &["-f", "main"]];
    let traced = outputs.map(|options| traced(&env, options, &["once"]).finished);
    for finished in traced.iter().chain([&alone]) {
        let [table] = &tables(&finished.stdout)[..] else { panic!("{}", finished.stdout) };
        assert_eq!((rows(table).len(), &table["tracked"]), (0, &0.into()));
    }
    let printed = run(Command::new(target(&env)).arg("print"), LIMIT).expect("runs").stdout;
    assert_eq!(printed.lines().count(), 2, "{printed}");
    let says =
        |line: &str| line.contains("no ctrace traces") && line.contains("sudo ctrace attach");
    assert!(printed.lines().all(says), "{printed}");
    let file = tempfile::tempdir().expect("a folder");
    let file = file.path().join("recording");
    let mut record = Command::new(&env.ctrace);
    record.args(["record", "-o"]).arg(&file).arg("--").arg(target(&env)).arg("print");
    let recorded = run(&mut record, LIMIT).expect("runs");
    assert!(recorded.stdout.lines().all(says), "{}", recorded.stdout);
}

/// The target checks that no other file has changed.
#[test]
fn files_that_are_none_are_left_alone() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    let traced = traced(&env, &[], &["forged", file.to_str().expect("text")]);
    let told = tables(&traced.finished.stdout);
    assert!(told.len() > 10);
    assert_eq!(calls(&told[0], "inner"), 1, "a program that also asks well has its tables");
    let written = std::fs::read(&file).expect("it is there");
    assert_eq!((written.len(), written[8]), (8192, 1), "the request is as it was");
}

#[test]
fn a_million_requests_are_a_few_answers() {
    let env = or_skip!(gate::live(Link::Session));
    let traced = traced(&env, &["-m", "*"], &["often"]);
    let answered = traced.finished.stdout.lines().last().expect("a number");
    let answered: u32 = answered.parse().expect("a number");
    assert!(answered < 64, "{answered} answers");
    let report = traced.report().expect("a report");
    assert_eq!(report.expect("inner").expect("traced").calls(), 1);
    report.expect_note(&["for its own results", "requests got no answer"]).expect("it is told");
}
