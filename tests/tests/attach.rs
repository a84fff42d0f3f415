//! Attaches to and detaches from running programs, many times and under load.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::install::install;
use ctrace_tests::look;
use ctrace_tests::probes::{changed_bytes, wait_until_armed};
use ctrace_tests::process::{Running, run};
use ctrace_tests::report::Report;
use ctrace_tests::targets::program;
use ctrace_tests::tmux::{self, Terminal};
use ctrace_tests::trace::Trace;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn spin(env: &Env, arguments: &[&str]) -> Running {
    let path = env.targets.get(&program("spin.c")).expect("spin builds");
    Running::start_ready(Command::new(path).args(arguments)).expect("spin starts")
}

/// Attaches again and again to a process in full run with two threads.
#[test]
fn many_times_in_a_row() {
    let env = or_skip!(gate::live(Link::Session));
    let target = spin(&env, &["0", "0", "2"]);
    for round in 0..12 {
        let traced = Trace::attach(&env, target.pid())
            .and_then(|trace| {
                trace.functions(["step", "mix"]).args(["-d", "0.02"]).finish()?.expect_code(0)
            })
            .unwrap_or_else(|error| panic!("round {round}: {error:#}"));
        let report = traced.report().unwrap_or_else(|error| panic!("round {round}: {error:#}"));
        report.check_sums().unwrap_or_else(|error| panic!("round {round}: {error:#}"));
    }
    let path = env.targets.get(&program("spin.c")).expect("built");
    assert_eq!(changed_bytes(target.pid(), &path).expect("memory"), Vec::<u64>::new());
    target.signal(Signal::TERM).expect("alive");
    let finished = target.wait(Duration::from_secs(60)).expect("ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stdout);
    assert!(finished.stdout.starts_with("ok "), "{}", finished.stdout);
}

/// A function that a thread is in all the time is not told as idle. A function that has only left words
/// on the stack looks the same, so the report says "seems".
#[test]
fn what_runs_already_is_told() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("sleeper.c")).expect("builds");
    let target = Running::start_ready(&mut Command::new(path)).expect("starts");
    let traced = Trace::attach(&env, target.pid()).expect("starts");
    let traced = traced.functions(["main", "wait_for_ever", "returned", "tick", "never"]);
    let traced = traced.args(["-d", "0.5"]).finish().and_then(|it| it.expect_code(0));
    let report = traced.expect("traces").report().expect("a report").clone();
    assert!(report.expect("tick").expect("selected").calls() > 0);
    let running = report.0["target"]["already_running"].as_array().expect("there are some");
    let names: BTreeSet<_> = running.iter().filter_map(|it| it["name"].as_str()).collect();
    assert_eq!(names, ["main", "returned", "wait_for_ever"].into());
}

/// A process by its name, by its program and by `-p`; of several, none is chosen.
#[test]
fn by_name() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = tempfile::tempdir().expect("a folder");
    let name = format!("named-{}", std::process::id());
    let path = folder.path().join(&name);
    let spin = env.targets.get(&program("spin.c")).expect("spin builds");
    install(&std::fs::read(spin).expect("built"), &path);
    let start = || Running::start_ready(Command::new(&path).args(["0", "2000"])).expect("starts");
    let target = start();
    let exe = path.to_str().expect("path is text");
    let pid = target.pid().to_string();
    let attach = |words: &[&str]| {
        let mut command = Command::new(&env.ctrace);
        command.args(["attach", "-f", "step", "-d", "0.2", "--format", "json"]).args(words);
        run(&mut command, Duration::from_secs(60)).expect("ends")
    };
    for words in [&[&*name][..], &["-p", &name], &["--exe", exe], &[exe], &["-p", &pid], &[&pid]] {
        let finished = attach(words);
        assert_eq!(finished.shell_code(), 0, "{words:?}: {}", finished.stderr);
        let report = Report::parse(&finished.stdout).expect("a report");
        assert_eq!(report.0["target"]["pid"], target.pid(), "{words:?}");
        assert!(report.expect("step").expect("selected").calls() > 0, "{words:?}");
    }
    let other = start();
    let finished = attach(&[&name]);
    assert_eq!((finished.shell_code(), &*finished.stdout), (125, ""));
    for pid in [&target, &other].map(|process| process.pid().to_string()) {
        let is_listed = |line: &str| {
            line.contains(&format!(" {pid}  {exe} 0 2000")) && line.contains("(started")
        };
        assert!(finished.stderr.lines().any(is_listed), "{}", finished.stderr);
    }
    let last = finished.stderr.lines().last().expect("a line");
    assert!(last.contains(&format!("2 processes are named `{name}`")), "{last}");
    // A glob means all that it fits.
    let glob = format!("{}/named-*", folder.path().display());
    for words in [&["--exe", &*glob][..], &[&glob], &["-p", &pid, "-p", &other.pid().to_string()]] {
        let finished = attach(words);
        assert_eq!(finished.shell_code(), 0, "{words:?}: {}", finished.stderr);
        assert_eq!(pids(&finished.stdout), [&target, &other].map(Running::pid).into(), "{words:?}");
    }
}

/// Returns the processes that called something.
fn pids(report: &str) -> BTreeSet<i32> {
    let report = Report::parse(report).expect("a report");
    let threads = report.0["threads"].as_array().expect("a list").iter();
    threads.map(|thread| thread["pid"].as_i64().expect("a number") as i32).collect()
}

/// A systemd unit is the control group of that name, wherever it is; its main process is traced. All
/// processes of the group are with `--cgroup`.
#[test]
fn by_unit() {
    let env = or_skip!(gate::live(Link::Session));
    let bases = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"];
    let base = bases.map(Path::new).into_iter().find(|base| base.join("cgroup.procs").exists());
    let base = or_skip!(base.ok_or("no control groups are mounted".to_owned()));
    let group = base.join(format!("ctrace-test-{}.service", std::process::id()));
    or_skip!(std::fs::create_dir(&group).map_err(|error| format!("no control group: {error}")));
    let target = spin(&env, &["0", "2000"]);
    let worker = spin(&env, &["0", "2000"]);
    let enter = |pid: i32| std::fs::write(group.join("cgroup.procs"), pid.to_string());
    enter(target.pid()).expect("it enters");
    let unit = group.file_name().and_then(|name| name.to_str()).expect("text");
    let attach = |words: &[&str]| {
        let mut command = Command::new(&env.ctrace);
        command.args(["attach", "-f", "step", "-d", "0.2", "--format", "json"]).args(words);
        run(&mut command, Duration::from_secs(60)).expect("ends")
    };
    let finished = attach(&[unit]);
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let report = Report::parse(&finished.stdout).expect("a report");
    assert_eq!(report.0["target"]["pid"], target.pid());
    // Neither of two started the other one.
    enter(worker.pid()).expect("it enters");
    let finished = attach(&[unit]);
    assert_eq!(finished.shell_code(), 125, "{}", finished.stderr);
    assert!(finished.stderr.contains("2 processes are in the unit"), "{}", finished.stderr);
    for group in [format!("/{unit}"), "/ctrace-test-*".to_owned()] {
        let finished = attach(&["--cgroup", &group]);
        assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
        let both = [&target, &worker].map(Running::pid).into();
        assert_eq!(pids(&finished.stdout), both, "{}", finished.stderr);
    }
    drop((target, worker));
    std::fs::remove_dir(&group).expect("it is empty");
}

/// A line on the terminal shows the state from the start, and is gone when the report comes.
#[test]
fn a_line_shows_the_state() {
    let env = or_skip!(gate::live(Link::Session));
    or_skip!(tmux::installed());
    let target = spin(&env, &["0", "2000"]);
    let ctrace = env.ctrace.display();
    let attach = format!("{ctrace} attach {} -f step -d 5", target.pid());
    let terminal = Terminal::start(&attach, 100, 40).expect("starts");
    let before = terminal.shows(&[" s of 5 s, ", " calls, none lost"]);
    assert!(!before.contains("step"), "{before}");
    let after = terminal.shows(&["step"]);
    assert!(!after.contains("of 5 s"), "{after}");
    // Where stderr is no terminal, nothing is drawn.
    let piped = format!("{attach} 2>errors; cat errors; echo over");
    let terminal = Terminal::start(&piped, 100, 40).expect("starts");
    let after = terminal.shows(&["step", "over"]);
    assert!(!after.contains("of 5 s"), "{after}");
}

/// Once a command runs, the terminal is its own, also where its output goes to a file: it may ask a
/// question on the terminal and wait for the answer. The window's title shows the state meanwhile.
#[test]
fn no_line_is_drawn_beside_a_command() {
    let env = or_skip!(gate::live(Link::Session));
    or_skip!(tmux::installed());
    let path = env.targets.get(&program("steady.c")).expect("builds");
    let (ctrace, path) = (env.ctrace.display(), path.display());
    let asks = format!("{path} 2 & printf 'a word: ' >/dev/tty; read word </dev/tty; kill \\$!");
    let run = format!("{ctrace} run --follow -f request -- sh -c \"{asks}\"");
    for (run, shown, ends) in [
        (format!("{run} >output"), "a word:", true),
        (format!("{ctrace} run -f request -- {path} 2"), "ready", false),
    ] {
        let named =
            format!("printf '\\033]2;mine\\007'; export TERM=tmux-256color; {run}; echo over");
        let terminal = Terminal::start(&named, 100, 40).expect("starts");
        terminal.shows(&[shown]);
        look::wait_until("the title shows the calls", || {
            let title = terminal.title().expect("tmux");
            title.starts_with("ctrace: ") && title.ends_with(" calls, none lost")
        })
        .expect("a title");
        let screen = terminal.screen().expect("tmux");
        assert_eq!(screen.trim().lines().last(), Some(shown), "{screen}");
        if ends {
            terminal.press(&["x", "Enter"]).expect("an answer");
            terminal.shows(&["over"]);
            assert_eq!(terminal.title().expect("tmux"), "mine");
        }
    }
}

/// Ctrl-C ends it with a report and exit code 0.
#[test]
fn until_interrupted() {
    let env = or_skip!(gate::live(Link::Session));
    let target = spin(&env, &["0", "2000"]);
    // Under nohup(1) the signal is ignored, as it should be.
    let status = std::fs::read_to_string("/proc/self/status").expect("ours");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a mask");
    let ignored = u64::from_str_radix(ignored.trim(), 16).expect("a number");
    let hangup = (ignored & 1 == 0).then_some(Signal::HUP);
    for signal in [Signal::INT].into_iter().chain(hangup) {
        let started = Trace::attach(&env, target.pid())
            .and_then(|trace| trace.functions(["step", "mix"]).start())
            .expect("starts");
        let path = env.targets.get(&program("spin.c")).expect("built");
        wait_until_armed(target.pid(), &path).expect("armed");
        started.running.signal(signal).expect("ctrace runs");
        let traced = started.wait().and_then(|traced| traced.expect_code(0)).expect("ends well");
        assert!(traced.report().expect("a report").expect("step").expect("step").calls() > 0);
    }
}

/// Before the first call can count, Ctrl-C ends ctrace with a line, and with the status that a shell
/// shows.
#[test]
fn interrupted_before_it_traces() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = tempfile::tempdir().expect("a folder");
    let spin = env.targets.get(&program("spin.c")).expect("spin builds");
    let awaited = folder.path().join("awaited");
    install(&std::fs::read(&spin).expect("built"), &awaited);
    let awaited = awaited.to_str().expect("text");
    let interrupted = |ctrace: Running| {
        ctrace.signal(Signal::INT).expect("ctrace runs");
        let finished = ctrace.wait(Duration::from_secs(60)).expect("ends");
        assert_eq!(finished.status.code(), Some(130), "{}", finished.stderr);
        let last = finished.stderr.lines().last();
        let line = "ctrace: ended before tracing began: nothing was traced";
        assert_eq!(last, Some(line), "{}", finished.stderr);
    };
    for subcommand in ["attach", "record", "trace"] {
        let mut command = Command::new(&env.ctrace);
        command.current_dir(folder.path());
        let ctrace = Running::start(command.args([subcommand, "--later", "--exe", awaited]));
        let ctrace = ctrace.expect("starts");
        look::wait_until("it awaits a process", || ctrace.said().contains("is awaited"))
            .unwrap_or_else(|error| panic!("{subcommand}: {error}: {}", ctrace.said()));
        interrupted(ctrace);
    }
    // Its report has no reader, so the program does not begin.
    let fifo = folder.path().join("fifo");
    let made = run(Command::new("mkfifo").arg(&fifo), Duration::from_secs(10)).expect("mkfifo");
    assert_eq!(made.shell_code(), 0, "{}", made.stderr);
    let mut command = Command::new(&env.ctrace);
    command.args(["run", "-f", "step", "-o"]).arg(&fifo).arg("--").arg(&spin).args(["0", "0"]);
    let ctrace = Running::start(&mut command).expect("starts");
    look::wait_until("it handles the signal", || look::catches(ctrace.pid(), Signal::INT))
        .expect("it does");
    interrupted(ctrace);
}

/// Where stderr is no terminal, one line says that the trace has begun.
#[test]
fn a_line_tells_that_it_has_begun() {
    let env = or_skip!(gate::live(Link::Session));
    let target = spin(&env, &["0", "2000"]);
    let folder = tempfile::tempdir().expect("a folder");
    let pid = target.pid().to_string();
    let path = env.targets.get(&program("spin.c")).expect("built");
    let name = path.file_name().and_then(|name| name.to_str()).expect("text");
    let said = |subcommand: &str, options: &[&str]| {
        let mut command = Command::new(&env.ctrace);
        command
            .current_dir(folder.path())
            .args([subcommand, "-p", &pid, "-d", "0.2"])
            .args(options);
        let finished = run(&mut command, Duration::from_secs(60)).expect("ends");
        assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
        finished.stderr
    };
    for (subcommand, options, functions) in [
        ("attach", &["-f", "step"][..], "1 function"),
        ("record", &["-f", "step", "-f", "mix"], "2 functions"),
    ] {
        let said = said(subcommand, options);
        let line =
            format!("ctrace: tracing {name} (pid {pid}), {functions} for 200 ms; Ctrl-C ends");
        assert_eq!(said.lines().filter(|it| *it == line).count(), 1, "{line}: {said}");
    }
    let lines = said("trace", &["-f", "mix"]);
    assert!(!lines.contains("; Ctrl-C ends"), "{lines}");
}

/// `run` forwards SIGTERM to the target and exits as it did.
#[test]
fn run_forwards_signals() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("spin.c")).expect("builds");
    let started = Trace::run(&env)
        .and_then(|trace| trace.functions(["step", "mix"]).program(&path, ["0", "1000"]).start())
        .expect("starts");
    let target = look::child_running(started.running.pid(), &path).expect("it runs");
    look::wait_until("the target handles the signal", || look::catches(target, Signal::TERM))
        .expect("it does");
    started.running.signal(Signal::TERM).expect("ctrace runs");
    let traced = started.wait().and_then(|traced| traced.expect_code(0)).expect("ends well");
    assert!(traced.finished.stdout.contains("\nok "), "{}", traced.finished.stdout);
    assert!(traced.report().expect("a report").expect("step").expect("step").calls() > 0);
}

/// A killed ctrace takes its probes along even during a traced call with other calls inside: the
/// kernel must not wait for that call.
#[test]
fn a_killed_run_under_an_open_call() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("longcall.c")).expect("builds");
    let started = Trace::run(&env)
        .and_then(|trace| trace.function("*").program(&path, []).start())
        .expect("starts");
    let target = look::child_running(started.running.pid(), &path).expect("the target runs");
    // Well into the open call.
    std::thread::sleep(Duration::from_secs(1));
    assert_ne!(changed_bytes(target, &path).expect("memory"), Vec::<u64>::new());
    started.running.signal(Signal::KILL).expect("ctrace runs");
    let left = (0..100).find(|_| {
        std::thread::sleep(Duration::from_millis(50));
        changed_bytes(target, &path).is_ok_and(|left| left.is_empty())
    });
    let pid = rustix::process::Pid::from_raw(target).expect("a process");
    rustix::process::kill_process(pid, Signal::TERM).expect("the target is alive");
    assert!(left.is_some(), "the probes were still there after five seconds");
}
