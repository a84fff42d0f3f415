//! Tests that calls of Go programs are those of goroutines, whatever threads run them and wherever
//! their stacks are.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::{Finished, run};
use ctrace_tests::trace::Trace;
use ctrace_tests::truth::Truth;
use ctrace_tests::{gate, or_skip};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(300);
const ROUNDS: &str = "20";
/// The functions that the program tells of, and the one that calls them.
const FUNCTIONS: [&str; 6] =
    ["main.worker", "main.handle", "main.leaf", "main.descend", "main.tries", "main.fails"];

/// Builds the program with these options of the linker; `Err`: the reason why it cannot be built.
fn program(folder: &Path, linking: &str) -> Result<PathBuf, String> {
    if Command::new("go").arg("version").output().is_err() {
        return Err("there is no go".into());
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("targets/goroutines.go");
    let path = folder.join("goroutines");
    let mut build = Command::new("go");
    build.current_dir(folder).env("GOCACHE", folder.join("cache")).env("GOFLAGS", "-mod=mod");
    build.args(["build", "-ldflags", linking, "-o"]).arg(&path).arg(source);
    let built = run(&mut build, LIMIT).expect("go runs");
    assert_eq!(built.shell_code(), 0, "{}", built.stderr);
    Ok(path)
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
