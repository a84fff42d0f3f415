//! Tests that the values of calls of C functions tell of the Python functions around them, in every version
//! that is there: with and without the global lock, in several threads, and in children.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::{Running, run};
use ctrace_tests::report::Report;
use ctrace_tests::trace::Trace;
use ctrace_tests::{gate, or_skip};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);
/// The function that `os.write` calls.
const WRITE: &str = "write@libc.so.6: python";
/// One that the program calls with the global lock, and without.
const CRC: &str = "crc32@libz*: python";

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("targets/functions.py")
}

/// Returns whether a Python is of a version whose structures are known, with one lock for all threads.
fn is_known(python: &Path) -> bool {
    let says = "import sys, sysconfig; free = sysconfig.get_config_var('Py_GIL_DISABLED'); \
                print(sys.version_info[:2] in [(3, 11), (3, 12), (3, 13)] and not free)";
    run(Command::new(python).args(["-c", says]), LIMIT)
        .is_ok_and(|finished| finished.stdout == "True\n")
}

/// Returns the system's Python, and those of pyenv.
fn pythons() -> Vec<PathBuf> {
    let versions = std::env::home_dir().unwrap_or_default().join(".pyenv/versions");
    let others = std::fs::read_dir(versions).into_iter().flatten().flatten();
    let others = others.map(|entry| entry.path().join("bin/python3"));
    let all = std::iter::once(PathBuf::from("/usr/bin/python3")).chain(others);
    all.filter(|python| python.exists() && is_known(python)).collect()
}

/// The same, unless there is none.
fn some_pythons() -> Result<Vec<PathBuf>, String> {
    let found = pythons();
    if found.is_empty() {
        Err("there is no Python 3.11, 3.12 or 3.13".to_owned())
    } else {
        Ok(found)
    }
}

/// Returns the calls of a function with each value of this name.
fn calls(report: &Report, function: &str, value: &str) -> BTreeMap<String, u64> {
    let index = report.functions().position(|of| of.name() == function).expect("a function");
    let tables = report.0["values"].as_array().expect("values");
    let of = tables.iter().filter(|of| of["function"] == index && of["name"] == value);
    let rows = of.flat_map(|of| of["rows"].as_array().expect("rows"));
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    rows.map(|row| (text(&row["value"]), row["calls"].as_u64().expect("calls"))).collect()
}

fn counts(expected: &[(&str, u64)]) -> BTreeMap<String, u64> {
    expected.iter().map(|(value, calls)| ((*value).to_owned(), *calls)).collect()
}

/// The calls of `write` that the program makes once it goes on.
const WRITES: [(&str, u64); 3] =
    [("Srv.hash", 31), ("Srv.größe", 17), ("outer.<locals>.inner", 16)];

/// Starts the program, which waits for a line.
fn started(python: &Path, arguments: &[&str]) -> (Running, ChildStdin) {
    let mut command = Command::new(python);
    command.arg(script()).args(arguments);
    let (target, input, output) = Running::start_piped(&mut command).expect("starts");
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).expect("reads");
    assert_eq!(line, "ready\n");
    (target, input)
}

/// Attaches to the program, lets it go on, and returns the report.
fn attached(env: &Env, python: &Path, options: &[&str], arguments: &[&str]) -> Report {
    let (target, mut input) = started(python, arguments);
    let traced = Trace::attach(env, target.pid()).expect("ctrace");
    let traced = traced.args(["--view", "values"]).args(options.iter().copied());
    let traced = traced.start().expect("starts");
    // Breakpoints in libc may be those of another test.
    traced.wait_until_tracing().expect("it traces");
    input.write_all(b"\n").expect("it reads");
    assert_eq!(target.wait(LIMIT).expect("ends").shell_code(), 0);
    let traced = traced.wait().and_then(|traced| traced.expect_code(0)).expect("a trace");
    let report = traced.report().expect("a report");
    report.check_lossless().expect("no losses");
    Report(report.0.clone())
}

#[test]
fn calls_are_told_apart_by_the_python_function_around_them() {
    let env = or_skip!(gate::live(Link::Session));
    for python in or_skip!(some_pythons()) {
        let report = attached(&env, &python, &["--arg", WRITE, "--arg", CRC], &[]);
        assert_eq!(calls(&report, "write", "python"), counts(&WRITES), "{}", python.display());
        let of_crc = counts(&[("checked", 23), ("released", 7)]);
        assert_eq!(calls(&report, "crc32", "python"), of_crc, "{}", python.display());
    }
}

#[test]
fn a_function_has_its_file_and_its_line() {
    let env = or_skip!(gate::live(Link::Session));
    let asked = "write@libc.so.6: python.file, at=python.line, 0:i32";
    for python in or_skip!(some_pythons()) {
        let report = attached(&env, &python, &["--arg", asked], &[]);
        let file = script().display().to_string();
        let shown = match file.len() {
            ..=64 => file,
            length => format!("…{}", &file[length - 60..]),
        };
        assert_eq!(calls(&report, "write", "python.file"), counts(&[(&shown, 64)]));
        let source = std::fs::read_to_string(script()).expect("the script");
        let line = |start: &str| {
            let at = source.lines().position(|line| line.trim_start().starts_with(start));
            (at.expect("it is there") + 1).to_string()
        };
        let [hash, size, inner] = ["def hash", "def größe", "def inner"].map(line);
        let expected = counts(&[(&hash, 31), (&size, 17), (&inner, 16)]);
        assert_eq!(calls(&report, "write", "at"), expected, "{}", python.display());
    }
}

#[test]
fn children_have_their_functions() {
    let env = or_skip!(gate::live(Link::Session));
    for python in or_skip!(some_pythons()) {
        let report = attached(&env, &python, &["--follow", "--arg", WRITE], &["fork"]);
        let expected = counts(&[("Srv.hash", 34), WRITES[1], WRITES[2]]);
        let mut found = calls(&report, "write", "python");
        // Some versions warn of forks.
        found.remove("<module>");
        assert_eq!(found, expected, "{}", python.display());
    }
}

#[test]
fn calls_that_are_counted_in_the_kernel_are_told_apart() {
    let env = or_skip!(gate::live(Link::Session));
    let python = or_skip!(some_pythons()).swap_remove(0);
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut command = Command::new(&env.ctrace);
    command.args(["run", "--aggregate", "-f", "write@libc.so.6", "--arg", WRITE]);
    command.args(["--by", "write: python", "--format", "json", "-o"]).arg(file.path());
    let finished = run(command.arg("--").arg(&python).arg(script()), LIMIT).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let text = std::fs::read_to_string(file.path()).expect("reports");
    let parts = text.lines().skip(1).map(|line| {
        let part = Report::parse(line).expect("a report");
        let name = part.0["part"]["calls"]["value"].as_str().unwrap_or("none").to_owned();
        (name, part.expect("write").expect("it is there").calls())
    });
    let mut found: BTreeMap<_, _> = parts.collect();
    // `print` of the module.
    found.remove("<module>");
    assert_eq!(found, counts(&WRITES));
}

#[test]
fn a_launched_program_has_its_functions() {
    let env = or_skip!(gate::live(Link::Session));
    for python in or_skip!(some_pythons()) {
        let script = script();
        let words = [script.to_str().expect("UTF-8")];
        let traced = Trace::run(&env)
            .expect("ctrace")
            .args(["--view", "values", "--arg", WRITE])
            .program(&python, words)
            .finish()
            .and_then(|traced| traced.expect_code(0))
            .expect("a trace");
        let mut found = calls(traced.report().expect("a report"), "write", "python");
        // `print` of the module.
        found.remove("<module>");
        assert_eq!(found, counts(&WRITES), "{}", python.display());
    }
}

#[test]
fn a_program_without_an_interpreter_is_told() {
    let env = or_skip!(gate::live(Link::Session));
    let mut trace = Command::new(&env.ctrace);
    trace.args(["run", "--arg", WRITE, "--", "/bin/true"]);
    let finished = run(&mut trace, LIMIT).expect("runs");
    assert_eq!(finished.shell_code(), 125, "{}", finished.stderr);
    let told =
        "no Python interpreter is in this process: none of its objects has the symbol `_PyRuntime`";
    assert!(finished.stderr.contains(told), "{}", finished.stderr);
}
