//! Tests that calls of Go programs are those of goroutines, whatever threads run them and wherever
//! their stacks are.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::{Finished, run};
use ctrace_tests::trace::Trace;
use ctrace_tests::truth::Truth;
use ctrace_tests::{gate, or_skip};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(300);
const ROUNDS: &str = "20";
/// The functions that the program tells of, and the one that calls them.
const FUNCTIONS: [&str; 6] =
    ["main.worker", "main.handle", "main.leaf", "main.descend", "main.tries", "main.fails"];

/// Builds a program with these options of the linker; `Err`: the reason why it cannot be built.
fn build(folder: &Path, name: &str, linking: &str) -> Result<PathBuf, String> {
    if Command::new("go").arg("version").output().is_err() {
        return Err("there is no go".into());
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("targets/{name}.go"));
    let path = folder.join(name);
    let mut build = Command::new("go");
    build.current_dir(folder).env("GOCACHE", folder.join("cache")).env("GOFLAGS", "-mod=mod");
    build.args(["build", "-ldflags", linking, "-o"]).arg(&path).arg(source);
    let built = run(&mut build, LIMIT).expect("go runs");
    assert_eq!(built.shell_code(), 0, "{}", built.stderr);
    Ok(path)
}

fn program(folder: &Path, linking: &str) -> Result<PathBuf, String> {
    build(folder, "goroutines", linking)
}

fn ctrace(env: &Env, options: &[&str], program: &Path) -> Finished {
    let mut command = Command::new(&env.ctrace);
    command.args(options).arg("--").arg(program).arg(ROUNDS);
    run(&mut command, LIMIT).expect("runs")
}

/// Traces the program, and compares the calls with what it says of itself. Every call ends where it
/// began: in its goroutine.
fn calls_are_those_of_goroutines(env: &Env, linking: &str, options: &[&str]) -> Result<(), String> {
    let folder = TempDir::new().expect("a folder");
    let path = program(folder.path(), linking)?;
    let traced = Trace::run(env)
        .expect("starts")
        .functions(FUNCTIONS)
        .args(options.iter().copied())
        .program(&path, [ROUNDS])
        .finish()
        .and_then(|traced| traced.expect_code(0))
        .expect("runs");
    let report = traced.report().expect("reports");
    Truth::parse(&traced.finished.stdout).check_calls(report).expect("its own counts");
    report.check_schema().expect("as the schema says");
    for name in ["main.handle", "main.leaf", "main.descend"] {
        let (calls, timed, untimed, open) = report.expect(name).expect("traced").ends();
        assert_eq!((timed, untimed, open), (calls, 0, 0), "{name}");
    }
    // Those that panic never come to their ends.
    let (calls, timed, untimed, _) = report.expect("main.fails").expect("traced").ends();
    assert!(0 < timed && timed < calls && timed + untimed == calls, "{timed} of {calls}");
    // A wait is part of the call in which the goroutine has no thread.
    let handle = report.expect("main.handle").expect("traced");
    let total = handle.integer("total_ns").expect("it is told");
    assert!(total >= handle.calls() * 2_000_000, "{total} ns");
    for path in report.paths() {
        let of_goroutine = match path.as_slice() {
            ["main.worker"] => true,
            ["main.worker", "main.handle" | "main.tries"] => true,
            ["main.worker", "main.tries", "main.fails"] => true,
            ["main.worker", "main.handle", "main.leaf"] => true,
            ["main.worker", "main.handle", deeper @ ..] => {
                deeper.iter().all(|name| *name == "main.descend")
            }
            _ => false,
        };
        assert!(of_goroutine, "{path:?}");
    }
    Ok(())
}

#[test]
fn goroutines_that_move_keep_their_calls() {
    let env = or_skip!(gate::live(Link::Session));
    or_skip!(calls_are_those_of_goroutines(&env, "", &[]));
}

#[test]
fn counted_calls_are_those_of_goroutines_too() {
    let env = or_skip!(gate::live(Link::Session));
    or_skip!(calls_are_those_of_goroutines(&env, "", &["--aggregate"]));
}

/// Without symbols, Go's own table has the names.
#[test]
fn a_stripped_program_has_the_names_of_gos_table() {
    let env = or_skip!(gate::live(Link::Session));
    or_skip!(calls_are_those_of_goroutines(&env, "-s -w", &[]));
}

#[test]
fn waits_of_goroutines_are_refused() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = TempDir::new().expect("a folder");
    let path = or_skip!(program(folder.path(), ""));
    let refused = ctrace(&env, &["run", "--cpu", "-f", "main.handle"], &path);
    assert_eq!(refused.shell_code(), 125, "{}", refused.stderr);
    assert!(refused.stderr.contains("goroutines"), "{}", refused.stderr);
}

/// The ids that the program prints of goroutines that call `main.leaves`, and of later ones.
fn printed(stdout: &str) -> [BTreeSet<u64>; 2] {
    ["leaves", "later"].map(|name| {
        let ids = stdout.lines().filter_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        ids.collect()
    })
}

/// Records the program, and compares the threads of its calls with the ids that it prints.
fn goroutines_have_gos_ids(env: &Env, linking: &str) -> Result<(), String> {
    let folder = TempDir::new().expect("a folder");
    let path = build(folder.path(), "goroutine_ids", linking)?;
    let file = folder.path().join("ids.ctrace").display().to_string();
    let functions = ["-f", "main.leaves", "-f", "main.tell", "-f", "main.later"];
    let recorded = ctrace(env, &[&["record", "-o", &file], &functions[..]].concat(), &path);
    assert_eq!(recorded.shell_code(), 0, "{}", recorded.stderr);
    let [leaving, later] = printed(&recorded.stdout);
    assert!(leaving.len() > 50 && later.len() == leaving.len(), "{leaving:?} {later:?}");
    let mut export = Command::new(&env.ctrace);
    export.args(["export", "--format", "jsonl", &file, "-o", "-"]);
    let exported = run(&mut export, LIMIT).expect("runs");
    assert_eq!(exported.shell_code(), 0, "{}", exported.stderr);
    let mut ids = [BTreeSet::new(), BTreeSet::new()];
    for line in exported.stdout.lines() {
        let call: Value = serde_json::from_str(line).expect("a call");
        let name = call["thread"].as_str().expect("it has a name");
        let id: u64 = name.strip_prefix("goroutine ").and_then(|id| id.parse().ok()).expect(name);
        assert_eq!(call["tid"], (1_u64 << 30) + id, "{line}");
        let callers: Vec<&str> =
            call["path"].as_array().expect("a path").iter().filter_map(Value::as_str).collect();
        match callers.as_slice() {
            ["main.leaves"] => {
                assert_eq!(call["timed"].as_bool(), Some(id % 2 == 1), "{line}");
                assert!(ids[0].insert(id), "{line}");
            }
            ["main.later"] => {
                assert_eq!(call["timed"].as_bool(), Some(true), "{line}");
                assert!(ids[1].insert(id), "{line}");
            }
            ["main.leaves" | "main.later", "main.tell"] => {}
            // The calls of one that has ended are no callers of others.
            _ => panic!("{line}"),
        }
    }
    assert_eq!(ids, [leaving, later]);
    Ok(())
}

#[test]
fn goroutines_have_the_ids_that_they_print() {
    let env = or_skip!(gate::live(Link::Session));
    or_skip!(goroutines_have_gos_ids(&env, ""));
}

/// Its version and its code tell where the ids are.
#[test]
fn goroutines_of_a_stripped_program_have_their_ids_too() {
    let env = or_skip!(gate::live(Link::Session));
    or_skip!(goroutines_have_gos_ids(&env, "-s -w"));
}

#[test]
fn counted_calls_of_goroutines_that_end_inside_are_no_callers_of_others() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = TempDir::new().expect("a folder");
    let path = or_skip!(build(folder.path(), "goroutine_ids", ""));
    let traced = Trace::run(&env)
        .expect("starts")
        .functions(["main.leaves", "main.tell", "main.later"])
        .args(["--aggregate"])
        .program(&path, [ROUNDS])
        .finish()
        .and_then(|traced| traced.expect_code(0))
        .expect("runs");
    let report = traced.report().expect("reports");
    let [leaving, later] = printed(&traced.finished.stdout);
    let odd = leaving.iter().filter(|id| *id % 2 == 1).count() as u64;
    let (calls, timed, untimed, open) = report.expect("main.leaves").expect("traced").ends();
    assert_eq!((calls, timed, untimed + open), (leaving.len() as u64, odd, calls - odd));
    assert!(untimed > open, "most descriptors serve later goroutines: {untimed}, {open}");
    let (calls, timed, ..) = report.expect("main.later").expect("traced").ends();
    assert_eq!((calls, timed), (later.len() as u64, calls));
    for path in report.paths() {
        let is_own = matches!(
            path.as_slice(),
            ["main.leaves" | "main.later"] | ["main.leaves" | "main.later", "main.tell"]
        );
        assert!(is_own, "{path:?}");
    }
}

#[test]
fn one_goroutine_can_be_chosen_by_its_id() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = TempDir::new().expect("a folder");
    let path = or_skip!(build(folder.path(), "goroutine_ids", ""));
    let file = folder.path().join("ids.ctrace").display().to_string();
    let recorded = ctrace(&env, &["record", "-o", &file, "-f", "main.later"], &path);
    let [_, later] = printed(&recorded.stdout);
    let (chosen, other) = (later.first().expect("one"), later.last().expect("another"));
    let mut trace = Command::new(&env.ctrace);
    trace.args(["trace", &file, "--thread", &format!("goroutine {chosen}")]);
    trace.args(["--thread", &format!("goroutine {other}")]);
    let traced = run(&mut trace, LIMIT).expect("runs");
    for id in [chosen, other] {
        let of = format!("  goroutine {id}  ");
        let lines = traced.stdout.lines().filter(|line| line.contains(&of));
        assert_eq!(lines.count(), 1, "{id}: {}", traced.stdout);
    }
    assert_eq!(traced.stdout.matches("main.later").count(), 2, "{}", traced.stdout);
}
