//! Tests `ctrace trace`: every call is a line, as the program itself tells of it.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::{Running, run};
use ctrace_tests::recorded::Recorded;
use ctrace_tests::targets::program;
use ctrace_tests::told::{Told, compare, told};
use ctrace_tests::truth::Truth;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::read_to_string;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);

/// Some of what `call_values.c` tells of.
const VALUES: [&str; 8] = [
    "--arg",
    "mixed: number=0:i32, key=1:str",
    "--ret",
    "mixed: i32",
    "--arg",
    "text: 0:str, by=1:i32",
    "--ret",
    "text: str",
];

fn trace(env: &Env) -> Command {
    let mut command = Command::new(&env.ctrace);
    command.args(["trace", "--link", env.link.name()]);
    command
}

/// Traces `call_values.c`. Returns the calls that it tells of, and the lines.
fn of_values(env: &Env, options: &[&str]) -> (Vec<Told>, String) {
    let target = env.targets.get(&program("call_values.c")).expect("builds");
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("lines");
    let mut command = trace(env);
    command.args(VALUES).args(options).arg("-o").arg(&file).arg("--").arg(target).arg("40");
    let finished = run(&mut command, LIMIT).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    assert!(finished.stderr.contains("; no events lost"), "{}", finished.stderr);
    let mut told = told(&finished.stdout).expect("it tells of its calls");
    told.retain(|call| ["mixed", "text"].contains(&&*call.function));
    assert!(!told.is_empty(), "{}", finished.stdout);
    (told, read_to_string(file).expect("there are lines"))
}

fn objects(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}

/// Returns a value as lines have it: what would drive a terminal is escaped as in names, and a byte that is
/// not UTF-8 has one backslash.
fn in_line(value: &Value) -> String {
    let Some(text) = value.as_str() else { return value.to_string() };
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        '\t' => "\\t".to_owned(),
        c if c.is_control() => c.escape_unicode().to_string(),
        c => c.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>()).replace("\\\\xff", "\\xff")
}

#[test]
fn a_line_has_what_the_program_tells_of_the_call() {
    let env = or_skip!(gate::live(Link::Session));
    let (told, lines) = of_values(&env, &[]);
    let shown = |call: &Told| {
        let values = &call.values;
        let value = |name: &str| values.get(name).map_or("<unreadable>".into(), in_line);
        match &*call.function {
            "mixed" => format!(
                "mixed(number={}, key={}) = {} <",
                value("number"),
                value("key"),
                value("retval")
            ),
            _ => {
                format!("text(arg0={}, by={}) = {} <", value("arg0"), value("by"), value("retval"))
            }
        }
    };
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines.len(), told.len(), "{lines:?}");
    for (line, call) in lines.iter().zip(&told) {
        // A text that cannot be read is null in JSON.
        let expected =
            shown(call).replace("=null", "=<unreadable>").replace("= null", "= <unreadable>");
        assert!(line.contains(&format!("  {expected}")), "{line}, not {expected}");
        assert!(line.ends_with("s>"), "{line}");
    }
}

#[test]
fn objects_are_those_of_an_export() {
    let env = or_skip!(gate::live(Link::Session));
    let (told, lines) = of_values(&env, &["--json"]);
    let calls = objects(&lines);
    let starts: Vec<_> = calls.iter().map(|call| call["start_ns"].as_u64()).collect();
    assert!(starts.is_sorted(), "{starts:?}");
    let seen: Vec<Told> = calls
        .iter()
        .map(|call| Told {
            function: call["function"].as_str().expect("a name").to_owned(),
            values: call["values"].as_object().expect("values").clone(),
        })
        .collect();
    compare(&told, &seen).expect("they are the same calls");
}

#[test]
fn every_call_of_a_busy_program_is_there() {
    let env = or_skip!(gate::live(Link::Session));
    let target = env.targets.get(&program("counts.c")).expect("builds");
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("lines");
    let mut command = trace(&env);
    command.args(["-f", "leaf", "-f", "ping", "-f", "pong", "-o"]).arg(&file);
    command.arg("--").arg(target).arg("100000");
    let finished = run(&mut command, LIMIT).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    assert!(finished.stderr.contains("; no events lost"), "{}", finished.stderr);
    let lines = read_to_string(file).expect("there are lines");
    let truth = Truth::parse(&finished.stdout);
    for name in ["leaf", "ping", "pong"] {
        let expected = truth.calls.iter().find(|(known, _)| known == name).expect("it counts").1;
        let call = format!(" {name}(…) <");
        let seen = lines.lines().filter(|line| line.contains(&call)).count() as u64;
        assert!(expected > 0 && seen == expected, "{name}: {seen}, not {expected}");
    }
}

#[track_caller]
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "{what} did not come");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_call_that_stays_open_holds_up_no_other() {
    let env = or_skip!(gate::live(Link::Session));
    let target = env.targets.get(&program("longcall.c")).expect("builds");
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("lines");
    let mut command = trace(&env);
    command.args(["-f", "event_loop", "-f", "leaf", "-o"]).arg(&file).arg("--").arg(target);
    let running = Running::start(&mut command).expect("starts");
    let lines = || read_to_string(&file).unwrap_or_default();
    wait_for("a line inside the open call", || lines().matches("leaf(…) <").count() > 10);
    // It passes the signal on.
    running.signal(Signal::TERM).expect("ctrace runs");
    let finished = running.wait(LIMIT).expect("it ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let lines = lines();
    let (first, last) = (lines.lines().next().expect("one"), lines.lines().last().expect("one"));
    assert!(first.ends_with("  event_loop(…) … still running"), "{first}");
    assert!(last.contains("  … event_loop resumed <"), "{last}");
    assert!(lines.lines().nth(1).is_some_and(|line| line.contains("    leaf(…) <")), "{lines}");
}

/// Reads a line of ctrace, and no more.
fn read_one(command: &mut Command) -> (Running, String) {
    let (running, input, output) = Running::start_piped(command).expect("starts");
    drop(input);
    let mut line = String::new();
    BufReader::with_capacity(64, output).read_line(&mut line).expect("a line");
    (running, line)
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("spin.c")).expect("builds");
    let target = Running::start_ready(Command::new(path).args(["0", "20000"])).expect("starts");
    let pid = target.pid().to_string();
    let (running, line) = read_one(trace(&env).args([&pid, "-f", "step"]));
    assert!(line.contains("  step(…) <"), "{line}");
    let finished = running.wait(LIMIT).expect("it ends by itself");
    assert_eq!((finished.shell_code(), finished.stderr.as_str()), (0, ""));
    target.signal(Signal::TERM).expect("the target lives");
    let finished = target.wait(LIMIT).expect("it ends");
    assert!(finished.stdout.contains("ok "), "{}", finished.stdout);
}

fn trace_file(env: &Env, file: &Path, options: &[&str]) -> String {
    let mut command = Command::new(&env.ctrace);
    let finished = run(command.arg("trace").arg(file).args(options), LIMIT).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    assert!(finished.stderr.contains(" calls in "), "{}", finished.stderr);
    finished.stdout
}

#[test]
fn a_recording_has_the_same_lines() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("counts.c")).expect("builds");
    let mut recorded = Recorded::new(&env, ["leaf", "ping", "pong"]).expect("a folder");
    let finished = recorded.program(&path, &["70000"]).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let mut export = Command::new(&env.ctrace);
    export.arg("export").arg(&recorded.file).args(["--format", "jsonl"]);
    let exported = run(&mut export, LIMIT).expect("runs");
    let mut exported: Vec<&str> = exported.stdout.lines().collect();
    let lines = trace_file(&env, &recorded.file, &["--json"]);
    let starts: Vec<u64> =
        objects(&lines).iter().map(|call| call["start_ns"].as_u64().expect("a time")).collect();
    assert!(starts.len() > 70_000 && starts.is_sorted(), "{} calls", starts.len());
    let mut seen: Vec<&str> = lines.lines().collect();
    exported.sort_unstable();
    seen.sort_unstable();
    assert!(seen == exported, "{} lines, {} exported", seen.len(), exported.len());
    let of_pong = trace_file(&env, &recorded.file, &["-f", "pong"]);
    let pongs = seen.iter().filter(|line| line.contains(r#""function":"pong""#)).count();
    assert_eq!(of_pong.lines().filter(|line| line.contains("  pong(…) <")).count(), pongs);
    assert_eq!(of_pong.lines().count(), pongs);
    let mut command = Command::new(&env.ctrace);
    let (running, line) = read_one(command.arg("trace").arg(&recorded.file));
    assert!(line.ends_with(">\n"), "{line}");
    let finished = running.wait(LIMIT).expect("it ends by itself");
    assert_eq!((finished.shell_code(), finished.stderr.as_str()), (0, ""));
}

#[test]
fn what_does_not_fit_is_refused() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("none.ctrace");
    let file = file.to_str().expect("text");
    let pid = std::process::id().to_string();
    for (arguments, why) in [
        (&[file][..], "cannot open"),
        (&[&pid, "-f", "*", "--time", "1s.."], "are for a recording"),
        (&[&pid, "-f", "*", "--budget", "1%"], "--budget is for reports"),
        (&[&pid, "other"], "no process is named `other`"),
        (&[file, "--arg", "f: 0:i32"], "--arg, --ret, --where and --locks are for a process"),
        (&[file, "--follow"], "are for a process"),
    ] {
        let mut command = Command::new(&env.ctrace);
        let finished = run(command.arg("trace").args(arguments), LIMIT).expect("runs");
        assert_eq!(finished.shell_code(), 125, "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(why), "{arguments:?}: {}", finished.stderr);
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
    }
}
