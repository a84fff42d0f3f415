//! Whole services: all processes of a user, those that come later, and reports by control group.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::install::install;
use ctrace_tests::later::{interrupt, joins, pids, report_of, start, wait_for};
use ctrace_tests::look::wait_until;
use ctrace_tests::probes::wait_until_armed;
use ctrace_tests::process::{Running, run};
use ctrace_tests::recorded::Recorded;
use ctrace_tests::report::Report;
use ctrace_tests::targets::program;
use ctrace_tests::trace::{Started, Trace};
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use serde_json::json;
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
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
/// That of a test beside it, which would find the first one's processes, too.
const OTHER_UID: &str = "3999984";

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

/// The same with the rights of a user.
fn start_as(user: &str, path: &Path) -> (Running, ChildStdin) {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", user, "--clear-groups"]).arg(path);
    start(&mut command)
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
        if of_both {
            wait_until_armed(second.pid(), &other_path).expect("armed");
        }
        drop((input, other_input, root_input));
        let pids_of = [&first, &second, &roots].map(|it| i64::from(it.pid()));
        for process in [first, second, roots] {
            process.wait(LIMIT).expect("ends");
        }
        let report = report_of(started);
        // Each file has a function of this name.
        let functions = report.0["functions"].as_array().expect("a list").iter();
        let seen: u64 = functions.filter_map(|function| function["calls"].as_u64()).sum();
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

/// Processes that others start while the trace runs are in it, with all that they start, also when the
/// first one has ended long ago.
#[test]
fn processes_that_come_later_join() {
    let env = or_skip!(gate::live(Link::Session));
    let [(_one, path), (_two, other_path)] = [workers(&env), workers(&env)];
    let exe = path.to_str().expect("text");
    let folder = path.parent().and_then(Path::to_str).expect("text");
    for chosen in [exe.to_owned(), format!("{folder}/*")] {
        let (first, input) = start(&mut Command::new(&path));
        let trace = Trace::choosing(&env).expect("starts").args(["--later", "--exe", &chosen]);
        let started = trace.function("work").start().expect("starts");
        wait_until_armed(first.pid(), &path).expect("armed");
        drop(input);
        let mut expected = BTreeSet::from([i64::from(first.pid())]);
        first.wait(LIMIT).expect("ends");
        for _ in 0..2 {
            let (later, input) = start(&mut Command::new(&path));
            let (other, other_input) = start(&mut Command::new(&other_path));
            joins(&started, &later);
            drop((input, other_input));
            expected.insert(i64::from(later.pid()));
            later.wait(LIMIT).expect("ends");
            other.wait(LIMIT).expect("ends");
        }
        let report = interrupt(started);
        assert_eq!(report.expect("work").expect("seen").calls(), 3 * CALLS, "{chosen}");
        assert!(pids(&report).is_superset(&expected), "{chosen}");
        report.check_lossless().expect("nothing is lost");
        report.expect_note(&["2 processes joined after the start"]).expect("it is told");
        report.expect_note(&["others were traced on, and awaited"]).expect("it is told");
    }
}

/// The kernel itself admits processes that are like one that it knows. So those that call at once and end
/// soon are complete.
#[test]
fn short_processes_lose_nothing() {
    let env = or_skip!(gate::live(Link::Session));
    let (_folder, path) = workers(&env);
    let exe = path.to_str().expect("text");
    for (options, user) in [(["--exe", exe], None), (["--user", OTHER_UID], Some(OTHER_UID))] {
        let begin =
            || user.map_or_else(|| start(&mut Command::new(&path)), |user| start_as(user, &path));
        let (first, input) = begin();
        let trace = Trace::choosing(&env).expect("starts").arg("--later").args(options);
        let started = trace.function("work").start().expect("starts");
        wait_until_armed(first.pid(), &path).expect("armed");
        drop(input);
        first.wait(LIMIT).expect("ends");
        for _ in 0..20 {
            let (short, input) = begin();
            drop(input);
            short.wait(LIMIT).expect("ends");
        }
        let report = interrupt(started);
        assert_eq!(report.expect("work").expect("seen").calls(), 21 * CALLS, "{options:?}");
        report.expect_note(&["20 processes joined after the start"]).expect("it is told");
        report.check_lossless().expect("nothing is lost");
    }
}

/// Starts to trace a program that does not run yet.
fn awaits_the_first(env: &Env, exe: &str) -> Started {
    let trace = Trace::choosing(env).expect("starts").args(["--later", "--exe", exe]);
    let started = trace.function("work").start().expect("starts");
    wait_for(&started, "the first is awaited");
    started
}

/// Where none is there, the first one is awaited; a recording and its lines have those that join.
#[test]
fn the_first_process_is_awaited() {
    let env = or_skip!(gate::live(Link::Session));
    let (_folder, path) = workers(&env);
    let exe = path.to_str().expect("text");
    let started = awaits_the_first(&env, exe);
    let (first, input) = start(&mut Command::new(&path));
    wait_until_armed(first.pid(), &path).expect("armed");
    let (second, other_input) = start(&mut Command::new(&path));
    joins(&started, &second);
    drop((input, other_input));
    first.wait(LIMIT).expect("ends");
    second.wait(LIMIT).expect("ends");
    let report = interrupt(started);
    assert_eq!(report.expect("work").expect("seen").calls(), 2 * CALLS);
    report.expect_note(&["1 process joined after the start"]).expect("it is told");
    // Nobody comes.
    let trace = Trace::choosing(&env).expect("starts").args(["--later", "--exe", exe, "-d", "0.3"]);
    let finished =
        trace.function("work").finish().and_then(|it| it.expect_code(125)).expect("ends");
    let said = &finished.finished.stderr;
    assert!(said.contains("nothing was traced, as no process came"), "{said}");
    let mut command = Command::new(&env.ctrace);
    command.args(["attach", "--later", "-f", "x", "-p", "1"]);
    let refused = run(&mut command, LIMIT).expect("ends");
    assert!(refused.stderr.contains("leave out PIDs"), "{}", refused.stderr);
}

/// Where the first processes end at once, others are awaited.
#[test]
fn first_processes_that_end_at_once() {
    let env = or_skip!(gate::live(Link::Session));
    let (_folder, path) = workers(&env);
    let exe = path.to_str().expect("text");
    let started = awaits_the_first(&env, exe);
    for _ in 0..30 {
        let (short, input) = start(&mut Command::new(&path));
        drop(input);
        short.wait(LIMIT).expect("ends");
    }
    let (last, input) = start(&mut Command::new(&path));
    let told = ["has come: ", "joins: "].map(|how| format!("process {} {how}", last.pid()));
    let is_told = || told.iter().any(|told| started.running.said().contains(told));
    wait_until("the last one is traced", is_told)
        .unwrap_or_else(|error| panic!("{error}: {}", started.running.said()));
    wait_until_armed(last.pid(), &path).expect("armed");
    drop(input);
    let pid = i64::from(last.pid());
    last.wait(LIMIT).expect("ends");
    let report = interrupt(started);
    assert!(report.expect("work").expect("seen").calls() >= CALLS);
    assert!(pids(&report).contains(&pid));
}

/// A control group that is removed when it is empty.
struct Group(PathBuf);

impl Group {
    fn new(name: &str) -> Result<Self, String> {
        let bases = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"];
        let mut bases = bases.map(Path::new).into_iter();
        let base = bases.find(|base| base.join("cgroup.procs").exists());
        let base = base.ok_or("no control groups are mounted")?;
        let folder = base.join(format!("ctrace-{name}-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| format!("no control group: {error}"))?;
        Ok(Self(folder))
    }

    /// Returns its path as the kernel tells it.
    fn path(&self) -> String {
        format!("/{}", self.0.file_name().and_then(|name| name.to_str()).expect("text"))
    }

    fn enter(&self, process: &Running) {
        let pid = process.pid().to_string();
        fs::write(self.0.join("cgroup.procs"), pid).expect("it enters");
    }

    /// Starts the processes inside.
    fn start(&self, path: &Path) -> (Running, ChildStdin) {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$1\""]).arg(&self.0).arg(path);
        start(&mut command)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Where a test failed, it may not be empty.
        let _ = fs::remove_dir(&self.0);
    }
}

/// A process that enters a control group without starting a program is found by a look at all.
#[test]
fn a_process_that_enters_a_group_joins() {
    let env = or_skip!(gate::live(Link::Session));
    let group = or_skip!(Group::new("later"));
    let (_folder, path) = workers(&env);
    let [(first, one), (second, two), (outside, three)] =
        [0; 3].map(|_| start(&mut Command::new(&path)));
    group.enter(&first);
    let options = ["--later", "--cgroup", &group.path()];
    let trace = Trace::choosing(&env).expect("starts").args(options);
    let started = trace.function("work").start().expect("starts");
    wait_until_armed(first.pid(), &path).expect("armed");
    group.enter(&second);
    joins(&started, &second);
    drop((one, two, three));
    for process in [first, second, outside] {
        process.wait(LIMIT).expect("ends");
    }
    let report = interrupt(started);
    // What the second one had started before it entered joins with it.
    assert_eq!(report.expect("work").expect("seen").calls(), 2 * CALLS);
    report.expect_note(&["1 process joined after the start"]).expect("it is told");
}

/// A report for each control group has all processes of it; a process that joins has the group that it
/// came in.
#[test]
fn each_control_group_has_a_report() {
    let env = or_skip!(gate::live(Link::Session));
    let [one, two] = [or_skip!(Group::new("one")), or_skip!(Group::new("two"))];
    let (_folder, path) = workers(&env);
    let [first, second] = [one.start(&path), one.start(&path)];
    let options = ["--later", "--exe", path.to_str().expect("text")];
    let mut recorded = Recorded::new(&env, ["work"]).expect("a folder").args(options);
    let recording = recorded.start_chosen().expect("starts");
    wait_until_armed(first.0.pid(), &path).expect("armed");
    let third = two.start(&path);
    let joins = format!("process {} joins: ", third.0.pid());
    wait_until("the third joins", || recording.said().contains(&joins)).expect("it does");
    for (process, input) in [first, second, third] {
        drop(input);
        process.wait(LIMIT).expect("ends");
    }
    recording.signal(Signal::INT).expect("ctrace runs");
    let finished = recording.wait(LIMIT).expect("ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let lines = recorded.by("cgroup").expect("ends").stdout;
    let reports: Vec<Report> =
        lines.lines().map(|line| Report::parse(line).expect("a report")).collect();
    let calls = |report: &Report| report.expect("work").expect("recorded").calls();
    assert_eq!(reports.iter().map(calls).collect::<Vec<_>>(), [3 * CALLS, 2 * CALLS, CALLS]);
    let parts: Vec<_> = reports[1..].iter().map(|part| &part.0["part"]).collect();
    let part = |group: &Group, processes: u64| json!({ "name": group.path(), "processes": processes, "is_cgroup": true });
    assert_eq!(parts, [&part(&one, 10), &part(&two, 5)]);
    reports.iter().try_for_each(Report::check_schema).expect("as documented");
}
