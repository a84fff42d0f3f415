//! `--follow` over a server that forks for each request.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::install::install;
use ctrace_tests::look::{private_memory, wait_until};
use ctrace_tests::probes::wait_until_armed;
use ctrace_tests::process::{Running, run};
use ctrace_tests::recorded::Recorded;
use ctrace_tests::report::Report;
use ctrace_tests::targets::program;
use ctrace_tests::trace::Trace;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{ChildStdin, Command};
use std::time::Duration;

/// Forks `children`, each with `calls` and so much other work. Returns the report under a limit.
fn under_limit(env: &Env, children: &str, calls: &str, microseconds: &str, limit: &str) -> Report {
    let path = env.targets.get(&program("forks.c")).expect("builds");
    let traced = Trace::run(env)
        .expect("starts")
        .function("work")
        .args(["--follow", "--max-slowdown", limit])
        .program(&path, [children, calls, microseconds])
        .finish()
        .and_then(|traced| traced.expect_code(0))
        .expect("runs");
    assert_eq!(traced.finished.stdout, "ok\n");
    Report(traced.report().expect("reports").0.clone())
}

/// The CPU time of children that lived for milliseconds counts, too.
#[test]
fn a_slowdown_is_that_of_all_processes() {
    let env = or_skip!(gate::live(Link::Session));
    // Seconds of CPU time, nearly all of it the cost of probes.
    let slowed = under_limit(&env, "3000", "5000", "0", "20%");
    slowed.expect_note(&["stopped early", "--max-slowdown"]).expect("it is stopped");
    assert!(slowed.expect("work").expect("seen").calls() < 15_000_000);
    // The same children with much else to do: the probes cost a few percent.
    let busy = under_limit(&env, "200", "100", "20000", "50%");
    assert_eq!(busy.expect("work").expect("seen").calls(), 20_000);
    assert!(busy.expect_note(&["stopped early"]).is_err(), "{}", busy.0["notes"]);
}

/// A pattern that matches in no program is an error at the end, and no file is left.
#[test]
fn nothing_that_matches_is_an_error() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("forks.c")).expect("builds");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("out");
    for subcommand in ["run", "record"] {
        let mut command = Command::new(&env.ctrace);
        command.args([subcommand, "--follow", "-f", "no_such_*", "-o"]).arg(&file);
        command.arg("--").arg(&path).args(["2", "3", "0"]);
        let finished = run(&mut command, Duration::from_secs(60)).expect("ends");
        assert_eq!((finished.shell_code(), &*finished.stdout), (125, "ok\n"), "{subcommand}");
        let last = finished.stderr.lines().last().expect("a line");
        assert!(last.contains("nothing was traced") && last.contains("`no_such_*`"), "{last}");
        assert!(!file.exists(), "{subcommand} leaves a file");
    }
}

/// Starts processes that wait for the end of their input, which is returned.
fn workers(path: &Path) -> (Running, ChildStdin) {
    let (running, input, output) = Running::start_piped(&mut Command::new(path)).expect("starts");
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    (running, input)
}

/// A child that runs already when the trace begins is traced as well, and so are its own children.
#[test]
fn children_of_before_are_traced() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("workers.c")).expect("builds");
    let (parent, input) = workers(&path);
    let trace = Trace::attach(&env, parent.pid()).expect("starts").function("work");
    let started = trace.arg("--follow").start().expect("starts");
    wait_until_armed(parent.pid(), &path).expect("armed");
    drop(input);
    let traced = started.wait().and_then(|traced| traced.expect_code(0)).expect("traces");
    let report = traced.report().expect("a report");
    assert_eq!(report.expect("work").expect("seen").calls(), 50 + 100 + 200 + 300 + 400);
    assert_eq!(report.0["threads"].as_array().map(Vec::len), Some(5));
    report.check_lossless().expect("nothing is lost");
    let told = "traced along with it: 4 processes that ran already";
    assert!(traced.finished.stderr.contains(told), "{}", traced.finished.stderr);
}

/// Processes that have nothing to do with each other make one report.
#[test]
fn several_processes_are_traced_together() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("workers.c")).expect("builds");
    let [(first, one), (second, two)] = [workers(&path), workers(&path)];
    let trace = Trace::attach(&env, first.pid()).expect("starts").arg(&second.pid().to_string());
    let started = trace.function("work").start().expect("starts");
    wait_until_armed(first.pid(), &path).expect("armed");
    drop(one);
    first.wait(Duration::from_secs(60)).expect("ends");
    drop(two);
    let traced = started.wait().and_then(|traced| traced.expect_code(0)).expect("traces");
    let report = traced.report().expect("a report");
    assert_eq!(report.expect("work").expect("seen").calls(), 2 * 1_050);
    assert_eq!(report.0["threads"].as_array().map(Vec::len), Some(10));
    report.check_lossless().expect("nothing is lost");
}

/// Returns the report of a recording, and those of its parts.
fn reports_by(recorded: &Recorded, by: &str) -> Vec<Report> {
    let finished = recorded.by(by).expect("ends");
    finished.stdout.lines().map(|line| Report::parse(line).expect("a report")).collect()
}

/// A recording of several processes has a report for each, that with the most calls first.
#[test]
fn each_process_has_a_report_of_its_own() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("workers.c")).expect("builds");
    let [(first, one), (second, two)] = [workers(&path), workers(&path)];
    let pids = [first.pid(), second.pid()];
    let mut recorded =
        Recorded::new(&env, ["work"]).expect("a folder").args(["-p", &pids[1].to_string()]);
    let recording = recorded.start(pids[0]).expect("starts");
    pids.iter().for_each(|pid| wait_until_armed(*pid, &path).expect("armed"));
    drop((one, two));
    first.wait(Duration::from_secs(60)).expect("ends");
    second.wait(Duration::from_secs(60)).expect("ends");
    let finished = recording.wait(Duration::from_secs(60)).expect("ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let calls = |report: &Report| report.expect("work").expect("recorded").calls();
    let of_processes = reports_by(&recorded, "process");
    let [whole, parts @ ..] = &of_processes[..] else { panic!("no report") };
    assert_eq!((calls(whole), &whole.0["part"]), (2_100, &Value::Null));
    let each: Vec<u64> = parts.iter().map(calls).collect();
    assert_eq!(each, [400, 400, 300, 300, 200, 200, 100, 100, 50, 50]);
    let last = parts[8..].iter().map(|part| part.0["part"]["pid"].as_i64().expect("a number"));
    assert_eq!(last.collect::<BTreeSet<_>>(), pids.map(i64::from).into());
    assert_eq!(parts[0].0["threads"].as_array().map(Vec::len), Some(1));
    // A process has the name of its program, whatever its threads are called.
    let program = path.file_name().and_then(OsStr::to_str).expect("a name");
    assert!(parts.iter().all(|part| part.0["part"]["name"] == program), "{program}");
    let of_programs = reports_by(&recorded, "exe");
    let [_, only] = &of_programs[..] else { panic!("they run one program") };
    let part = (calls(only), &only.0["part"]["processes"], &only.0["part"]["name"]);
    assert_eq!(part, (2_100, &10.into(), &program.into()));
    let of_names = reports_by(&recorded, "name");
    let [_, of_workers, of_parents] = &of_names[..] else { panic!("they have two names") };
    assert_eq!((calls(of_workers), &of_workers.0["part"]["name"]), (2_000, &"shelf".into()));
    assert_eq!((calls(of_parents), &of_parents.0["part"]["pid"]), (100, &Value::Null));
}

/// A program that is executed during the trace has its whole name, of which the kernel keeps 15 bytes.
#[test]
fn an_executed_program_has_its_whole_name() {
    let env = or_skip!(gate::live(Link::Session));
    let built = env.targets.get(&program("workers.c")).expect("builds");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a-shop-with-a-long-name");
    std::fs::copy(built, &path).expect("copied");
    let mut recorded = Recorded::new(&env, ["work"]).expect("a folder").args(["--follow"]);
    let finished = recorded.program(&path, &[]).expect("ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let reports = reports_by(&recorded, "process");
    let names: Vec<_> = reports[1..].iter().map(|part| &part.0["part"]["name"]).collect();
    assert_eq!(names, ["a-shop-with-a-long-name"; 5]);
    let reports = reports_by(&recorded, "exe");
    let programs: Vec<_> = reports[1..].iter().map(|part| &part.0["part"]).collect();
    assert_eq!(programs, [&json!({"name": "a-shop-with-a-long-name", "processes": 5})]);
}

/// A daemon is traced to its end, and ctrace ends with the exit code of the program that it started.
#[test]
fn a_daemon_is_followed_to_its_end() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("daemonize.c")).expect("builds");
    let folder = tempfile::tempdir().expect("a folder");
    let done = folder.path().join("done");
    let done = done.to_str().expect("path is text");
    let traced = |options: &[&str]| {
        let trace = Trace::run(&env).expect("starts").function("work");
        let trace = trace.args(options.iter().copied()).program(&path, ["7", "3", done]);
        trace.finish().and_then(|traced| traced.expect_code(3)).expect("runs")
    };
    let followed = traced(&["--follow"]);
    let report = followed.report().expect("a report");
    assert_eq!(report.expect("work").expect("selected").ends(), (7, 7, 0, 0));
    report.expect_note(&["were followed on"]).expect("it is told");
    // Without --follow the trace ends with the first process.
    let alone = traced(&[]);
    assert_eq!(alone.report().expect("a report").expect("work").expect("selected").calls(), 0);
}

/// Ctrl-C and `kill` end the trace of a daemon that goes on.
#[test]
fn a_signal_ends_the_trace_of_what_is_left() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("daemonize.c")).expect("builds");
    let folder = tempfile::tempdir().expect("a folder");
    for signal in [Signal::INT, Signal::TERM] {
        let done = folder.path().join(format!("done-{signal:?}"));
        let words = ["5", "4", done.to_str().expect("path is text"), "300"];
        let trace = Trace::run(&env).expect("starts").function("work").args(["--follow"]);
        let started = trace.program(&path, words).start().expect("starts");
        wait_until("the daemon has worked", || done.exists()).expect("it works");
        started.running.signal(signal).expect("ctrace runs");
        let traced = started.wait().and_then(|traced| traced.expect_code(4)).expect("ends");
        let daemon = traced.finished.stdout.trim().parse().ok();
        let daemon = daemon.and_then(rustix::process::Pid::from_raw).expect("a process");
        rustix::process::kill_process(daemon, Signal::KILL).expect("it goes on");
        let report = traced.report().expect("a report");
        assert_eq!(report.expect("work").expect("selected").calls(), 5);
    }
}

/// A script that only starts the program that is meant.
#[test]
fn what_a_wrapper_starts_is_traced() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("daemonize.c")).expect("builds");
    let path = path.to_str().expect("path is text");
    let folder = tempfile::tempdir().expect("a folder");
    let (script, done) = (folder.path().join("wrapper.sh"), folder.path().join("done"));
    install(b"#!/bin/sh\n\"$@\"\nexit 6\n", &script);
    let traced = |function: &str, options: &[&str]| {
        let trace = Trace::run(&env).expect("starts").function(function);
        let trace = trace.args(options.iter().copied());
        let words = [path, "8", "0", done.to_str().expect("path is text"), "1"];
        trace.program(&script, words).finish().expect("runs")
    };
    for (options, is_told) in [(&[][..], true), (&["--follow"], false)] {
        let followed = traced("work", options).expect_code(6).expect("runs");
        let report = followed.report().expect("a report");
        assert_eq!(report.expect("work").expect("found later").calls(), 8);
        let told =
            followed.finished.stderr.contains("wrapper.sh is a script: what it starts is traced");
        assert_eq!(told, is_told, "{}", followed.finished.stderr);
    }
    let nothing = traced("no_such_work", &[]).expect_code(125).expect("runs").finished.stderr;
    assert!(nothing.contains("nothing was traced"), "{nothing}");
    // The program itself is what is asked for: what it starts is not traced.
    let waited = traced("work", &["--wait"]).expect_code(125).expect("runs").finished.stderr;
    assert!(waited.contains("because of --wait"), "{waited}");
    assert!(waited.contains("not traced; --follow traces them too"), "{waited}");
    // A pattern that matches in the shell, too.
    let trace = Trace::run(&env).expect("starts").function("write@libc*");
    let alone = trace.program(&script, ["sleep", "1"]).finish().expect("runs");
    let note = alone.report().expect("a report").expect_note(&["child processes ran", "/sleep"]);
    note.expect("it is told");
}

/// A plugin that the program opens has all that is asked for.
#[test]
fn a_library_that_comes_later_is_awaited() {
    let env = or_skip!(gate::live(Link::Session));
    let [library, path] =
        ["libplug.c", "dl.c"].map(|name| env.targets.get(&program(name)).expect("builds"));
    let library = library.to_str().expect("path is text");
    let traced = |options: &[&str], library: &str| {
        let trace = Trace::run(&env).expect("starts").function("plug_*@libplug*");
        let trace = trace.args(options.iter().copied());
        trace.program(&path, [library, "50"]).finish().expect("runs")
    };
    let nowhere = "/nowhere/libplug.so";
    let refused = traced(&[], nowhere).expect_code(125).expect("it is not there").finished.stderr;
    assert!(refused.contains("--wait awaits libraries"), "{refused}");
    let waited = traced(&["--wait"], library).expect_code(0).expect("traces");
    let told = "because of --wait, the libraries that it loads";
    assert!(waited.finished.stderr.contains(told), "{}", waited.finished.stderr);
    let report = waited.report().expect("a report");
    for name in ["plug_work", "plug_inner"] {
        assert_eq!(report.expect(name).expect("seen").calls(), 50, "{name}");
    }
    let never = traced(&["--wait"], nowhere).expect_code(125).expect("ends");
    assert!(never.finished.stderr.contains("nothing was traced"), "{}", never.finished.stderr);
}

/// Links for followed children are in all processes of the file. Those that are not traced keep
/// their return addresses.
#[test]
fn other_processes_get_no_return_probes() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("own_return.c")).expect("builds");
    let start = || Running::start_ready(&mut Command::new(&path)).expect("starts");
    let (traced, other) = (start(), start());
    let started = Trace::attach(&env, traced.pid())
        .and_then(|trace| trace.function("work").args(["--follow"]).start())
        .expect("starts");
    wait_until_armed(other.pid(), &path).expect("armed there, too");
    for (target, foreign) in [(other, 0), (traced, 100)] {
        target.signal(Signal::USR1).expect("waits");
        let finished = target.wait(Duration::from_secs(60)).expect("ends");
        let counts = format!("calls work 100\ncalls foreign {foreign}\n");
        assert!(finished.stdout.ends_with(&counts), "{}", finished.stdout);
    }
    let traced = started.wait().and_then(|traced| traced.expect_code(0)).expect("ends well");
    let report = traced.report().expect("a report");
    assert_eq!(report.expect("work").expect("selected").ends(), (100, 100, 0, 0));
}

/// ctrace's data about a child go with it.
#[test]
fn memory_does_not_grow_with_every_child() {
    let env = or_skip!(gate::live(Link::Session));
    // A file of its own, because the other test's probes show in all processes of its file.
    let path = env.targets.get(&program("forks.c").flag("-DALONE")).expect("builds");
    for options in [&["--ring-size", "256K"][..], &["--ring-size", "256K", "--follow"]] {
        let target = Running::start_ready(Command::new(&path).args(["2000", "1", "0", "wait"]))
            .expect("starts");
        let started = Trace::attach(&env, target.pid())
            .and_then(|trace| trace.function("work").args(options.iter().copied()).start())
            .expect("starts");
        wait_until_armed(target.pid(), &path).expect("armed");
        let comm = format!("/proc/{}/comm", target.pid());
        let memory_after = |round: u32| {
            target.signal(Signal::USR1).expect("alive");
            wait_until("the round is over", || {
                let name = std::fs::read_to_string(&comm);
                name.is_ok_and(|name| name.trim() == format!("round {round}"))
            })
            .expect("2,000 children come and go");
            // Events held for order pass meanwhile.
            std::thread::sleep(Duration::from_millis(500));
            private_memory(started.running.pid())
        };
        let first = memory_after(1);
        let last = (2..=4).fold(first, |_, round| memory_after(round));
        let grown = last.saturating_sub(first);
        // The ids of threads that are counted stay: 400 bytes each, and up to twice that while tables
        // and a heap with gaps grow. A page for each child would be 24 MB.
        assert!(grown < 8 << 20, "{options:?}: {grown} bytes more after 6,000 more children");
        target.signal(Signal::TERM).expect("alive");
        target.wait(Duration::from_secs(30)).expect("ends");
        let traced = started.wait().and_then(|traced| traced.expect_code(0)).expect("ends well");
        let report = traced.report().expect("a report");
        let calls = report.expect("work").expect("selected").calls();
        let followed = options.contains(&"--follow");
        assert!(
            if followed { calls + report.loss("events") >= 8000 } else { calls == 0 },
            "{calls}"
        );
    }
}
