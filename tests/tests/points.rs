//! Tests messages, plots and scopes with values: ctrace shows what the program says that it wrote.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::{Finished, run};
use ctrace_tests::recorded::Recorded;
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
const TIMES: &str = "400";

fn target(env: &Env) -> PathBuf {
    env.targets.get(&program("marks_points.rs").flags(["-O"])).expect("builds")
}

/// Returns what the program says that it wrote: the marker's name, and its values as an export has
/// them.
fn told(stdout: &str) -> Vec<(String, Value)> {
    stdout.lines().map(one).collect()
}

fn one(line: &str) -> (String, Value) {
    let (kind, rest) = line.split_once(' ').expect("a kind");
    let (name, value) = rest.rsplit_once(' ').unwrap_or((rest, ""));
    match kind {
        "scope" => {
            let mut words = rest.split(' ');
            let name = words.next().expect("a name").to_owned();
            let pairs = words.map(|word| word.split_once('=').expect("a value"));
            let parsed = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
            (name, pairs.map(|(name, value)| (name.to_owned(), parsed(value))).collect())
        }
        "plot" => {
            let name = if name == "balance" { "money/balance" } else { name };
            let value: Value = serde_json::from_str(value).expect("a number");
            // Integers have no sign if they are 0.
            let value = if value == json!(-0.0) && name != "load" { json!(0) } else { value };
            (name.to_owned(), json!({ "value": value }))
        }
        "frame" => (rest.to_owned(), Value::Null),
        _ => (name.to_owned(), json!({ "message": text(value) })),
    }
}

fn text(digits: &str) -> String {
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("ASCII"));
    let bytes = pairs.map(|pair| u8::from_str_radix(pair, 16).expect("digits")).collect();
    String::from_utf8(bytes).expect("UTF-8")
}

/// Returns what ctrace shows of the same, from lines with an object each, in the order of time.
fn seen(lines: &str) -> Vec<(String, Value)> {
    let mut calls: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    calls.sort_by_key(|call| call["start_ns"].as_u64());
    let one = |mut call: Value| {
        let name = call["function"].as_str().expect("a name").to_owned();
        (name, call["values"].take())
    };
    calls.into_iter().map(one).collect()
}

/// Runs ctrace, which takes the program to its end.
fn traced(env: &Env, command: &str, options: &[&str]) -> (Finished, String) {
    let folder = tempfile::TempDir::new().expect("a folder");
    let file = folder.path().join("out");
    let mut ctrace = Command::new(&env.ctrace);
    ctrace.arg(command).args(options).arg("-o").arg(&file).arg("--").arg(target(env)).arg(TIMES);
    let finished = run(&mut ctrace, LIMIT).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let out = std::fs::read_to_string(file).expect("there is output");
    (finished, out)
}

#[track_caller]
fn compare(told: &[(String, Value)], seen: &[(String, Value)]) {
    for (told, seen) in told.iter().zip(seen) {
        assert_eq!(told, seen);
    }
    assert_eq!((told.len(), told.len() > 2000), (seen.len(), true));
}

#[test]
fn a_recording_has_each_value_in_the_order_in_which_it_was_written() {
    let env = or_skip!(gate::live(Link::Session));
    let mut recorded = Recorded::new(&env, []).expect("a folder");
    let finished = recorded.program(&target(&env), &[TIMES]).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let mut export = Command::new(&env.ctrace);
    export.arg("export").arg(&recorded.file).args(["--format", "jsonl", "-o", "-"]);
    let exported = run(&mut export, LIMIT).expect("runs");
    assert!(exported.stderr.contains("no events lost"), "{}", exported.stderr);
    assert!(!exported.stderr.contains("unseen"), "{}", exported.stderr);
    compare(&told(&finished.stdout), &seen(&exported.stdout));
}

#[test]
fn a_trace_has_them_while_they_happen() {
    let env = or_skip!(gate::live(Link::Session));
    let (finished, lines) = traced(&env, "trace", &["--json"]);
    assert!(finished.stderr.contains("no events lost"), "{}", finished.stderr);
    compare(&told(&finished.stdout), &seen(&lines));
}

#[test]
fn lines_read_well_and_drive_no_terminal() {
    let env = or_skip!(gate::live(Link::Session));
    let (_, lines) = traced(&env, "trace", &[]);
    assert!(!lines.chars().any(|c| c != '\n' && (c.is_control() || c == '\u{202e}')), "{lines}");
    let lines: Vec<&str> = lines.lines().map(|line| &line["   0.000000".len()..]).collect();
    assert_eq!(lines[0], "  it begins");
    let scope = "  handle(bytes=7, ratio=-0.25, is_odd=true) <";
    let at = lines.iter().position(|line| line.starts_with(scope)).expect("the second call");
    assert_eq!(
        lines[at + 1..at + 6],
        [
            "    [warn] cache: miss for 1",
            "    queue = 3 jobs",
            "    load = 0.1",
            "    money/balance = -1",
            "  frame",
        ]
    );
    let [.., hostile, long] = &lines[..] else { panic!("{lines:?}") };
    let expected = r#"  [error] \u{1b}[31m<b>&"quoted"</b>\u{202e}\u{d}\u{a},;'$(id)`\u{9}\u{9b}2J 😀 and then some"#;
    assert!(hostile.starts_with(expected), "{hostile}");
    assert!(long.starts_with("  [info] long long") && long.ends_with("long …"), "{long}");
}

#[test]
fn the_values_of_calls_are_in_a_report() {
    let env = or_skip!(gate::live(Link::Session));
    let options = ["--view", "calls", "--view", "values", "--view", "plots", "--format", "json"];
    let options = [&options[..], &["-m", "handle", "-m", "queue"]].concat();
    let (_, report) = traced(&env, "run", &options);
    let report: Value = serde_json::from_str(&report).expect("JSON");
    let names: Vec<_> = report["functions"].as_array().expect("rows").iter().collect();
    let of = |name: &str| names.iter().find(|row| row["name"] == name).expect("it was chosen");
    assert_eq!(names.len(), 2, "only what was chosen");
    assert_eq!(
        (&of("queue")["point"], &of("queue")["calls"]),
        (&json!({"shape": "plot"}), &400.into())
    );
    let tables = report["values"].as_array().expect("values");
    let by = |name: &str| tables.iter().filter(|table| table["name"] == name).count();
    assert_eq!((by("bytes"), by("ratio"), by("is_odd"), by("value")), (1, 1, 1, 1));
    assert_eq!(report["loss"]["calls_untimed"], 0);
    let [plot] = &report["plots"].as_array().expect("plots")[..] else { panic!("{report}") };
    assert_eq!(
        (&plot["name"], &plot["unit"], &plot["count"]),
        (&"queue".into(), &"jobs".into(), &400.into())
    );
    let numbers = ["min", "mean", "max", "last"].map(|of| plot[of].as_f64().expect("a number"));
    assert_eq!(numbers, [0.0, 598.5, 1197.0, 1197.0]);
}

#[test]
fn a_list_tells_what_they_are() {
    let env = or_skip!(gate::live(Link::Session));
    let mut command = Command::new(&env.ctrace);
    command.args(["list", "-v", "-m", "*"]).arg(target(&env));
    let listed = run(&mut command, LIMIT).expect("runs").stdout;
    let line = |name: &str| {
        let of = |line: &&str| line.split("  ").nth(2).is_some_and(|word| word.trim() == name);
        listed.lines().find(of).unwrap_or_else(|| panic!("{name} in {listed}"))
    };
    assert!(line("queue").contains("  plot; marker: "), "{listed}");
    for (name, ns) in [("queue", 18), ("handle", 34), ("{long}", 60), ("frame", 15)] {
        let cost = format!("marker: free while off, about {ns} ns while on; in the code at 0x");
        assert!(line(name).contains(&cost), "{listed}");
    }
    assert!(line("queue").ends_with("; values: value: u64 in jobs"), "{listed}");
    assert!(line("handle").ends_with("; values: bytes: u64, ratio: f64, is_odd: bool"), "{listed}");
    assert!(line("{long}").contains("  message, info; marker: "), "{listed}");
}
