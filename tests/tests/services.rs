//! Whole services: all processes of a user, and those that come later.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::install::install;
use ctrace_tests::probes::wait_until_armed;
use ctrace_tests::process::{Running, run};
use ctrace_tests::report::Report;
use ctrace_tests::targets::program;
use ctrace_tests::trace::{Started, Trace};
use ctrace_tests::{gate, or_skip};
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command};
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(60);
/// Calls of all five processes of the target `workers`.
const CALLS: u64 = 1_050;
/// A user without an account, that no other test has.
const UID: &str = "3999981";

/// A program in a folder of its own that every user can reach.
fn workers(env: &Env) -> (TempDir, PathBuf) {
    let built = env.targets.get(&program("workers.c")).expect("builds");
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("chmod");
    let path = folder.path().join("workers");
    install(&fs::read(built).expect("built"), &path);
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("chmod");
    (folder, path)
}

/// Starts the processes, which wait for the end of their input.
fn start(command: &mut Command) -> (Running, ChildStdin) {
    let (running, input, output) = Running::start_piped(command).expect("starts");
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    (running, input)
}

/// The same with the rights of a user.
fn start_as(user: &str, path: &Path) -> (Running, ChildStdin) {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", user, "--clear-groups"]).arg(path);
    start(&mut command)
}

/// Returns the report when ctrace has ended by itself.
fn report_of(started: Started) -> Report {
    let traced = started.wait().and_then(|traced| traced.expect_code(0)).expect("traces");
    Report(traced.report().expect("a report").0.clone())
}

/// Returns the processes that called something.
fn pids(report: &Report) -> BTreeSet<i64> {
    let threads = report.0["threads"].as_array().expect("a list").iter();
    threads.map(|thread| thread["pid"].as_i64().expect("a number")).collect()
}

/// All processes of a user are traced, and with another choice those that are in both.
#[test]
fn processes_of_a_user() {
    let env = or_skip!(gate::live(Link::Session));
    let [(_one, path), (_two, other_path)] = [workers(&env), workers(&env)];
    let exe = path.to_str().expect("text");
    for (options, of_both) in [(&[][..], true), (&["--exe", exe], false)] {
        let (first, input) = start_as(UID, &path);
        let (second, other_input) = start_as(UID, &other_path);
        let (roots, root_input) = start(&mut Command::new(&path));
        let trace = Trace::choosing(&env).expect("starts").args(["--user", UID]);
        let started = trace.args(options.iter().copied()).function("work").start().expect("starts");
        wait_until_armed(first.pid(), &path).expect("armed");
        drop((input, other_input, root_input));
        let pids_of = [&first, &second, &roots].map(|it| i64::from(it.pid()));
        for process in [first, second, roots] {
            process.wait(LIMIT).expect("ends");
        }
        let report = report_of(started);
        let seen = report.expect("work").expect("seen").calls();
        assert_eq!(seen, if of_both { 2 * CALLS } else { CALLS }, "{options:?}");
        let expected = [true, of_both, false];
        assert_eq!(pids_of.map(|pid| pids(&report).contains(&pid)), expected, "{options:?}");
    }
}

/// Each refusal is a line that says what to do.
#[test]
fn a_user_that_chooses_nothing() {
    let env = or_skip!(gate::live(Link::Perf));
    let said = |arguments: &[&str]| {
        let finished = run(Command::new(&env.ctrace).args(arguments), LIMIT).expect("ends");
        assert_eq!(finished.shell_code(), 125, "{arguments:?}");
        assert_eq!(finished.stderr.lines().count(), 1, "{}", finished.stderr);
        finished.stderr
    };
    for subcommand in ["attach", "record", "trace"] {
        let nobody = said(&[subcommand, "--user", "3999982", "-f", "x"]);
        assert!(nobody.contains("no process is of the user 3999982"), "{nobody}");
        let unknown = said(&[subcommand, "--user", "no-such-user", "-f", "x"]);
        assert!(unknown.contains("there is no user `no-such-user`"), "{unknown}");
        let both = said(&[subcommand, "--user", "root", "-p", "1", "-f", "x"]);
        assert!(both.contains("leave it out where a PID or a name is given"), "{both}");
    }
}
