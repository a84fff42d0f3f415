//! Attaches to and detaches from running programs, many times and under load.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::look;
use ctrace_tests::probes::{changed_bytes, wait_until_armed};
use ctrace_tests::process::Running;
use ctrace_tests::targets::program;
use ctrace_tests::trace::Trace;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
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
    for round in 0..20 {
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
