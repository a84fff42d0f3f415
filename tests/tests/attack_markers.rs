//! Programs lie with their marker memory: their cost to ctrace is bounded, and signals and the time
//! limit still work.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::look::wait_until;
use ctrace_tests::probes::wait_until_armed;
use ctrace_tests::process::Running;
use ctrace_tests::targets::program;
use ctrace_tests::trace::Trace;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use std::process::Command;
use std::time::Duration;

/// Time limit against hangs, for busy machines as well.
const LIMIT: Duration = Duration::from_secs(25);

fn start(env: &Env, source: &str, arguments: &[&str]) -> Running {
    let path = env.targets.get(&program(source)).expect("builds");
    Running::start_ready(Command::new(path).args(arguments)).expect("starts")
}

fn attach(env: &Env, target: &Running, arguments: &[&str]) -> Trace {
    let trace = Trace::attach(env, target.pid()).expect("a folder");
    trace.args(["-m", "work"]).args(arguments.iter().copied()).limit(LIMIT)
}

/// Returns a limit of lost events: the CPUs cannot write more in this time.
fn can_be_lost(seconds: u64) -> u64 {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    seconds * processors * 1_100_000_000
}

#[test]
fn forged_buffers_end_with_the_time_and_tell_no_nonsense() {
    let env = or_skip!(gate::live(Link::Session));
    for what in ["flush", "register", "both"] {
        let target = start(&env, "marks_forge.c", &[what, "2"]);
        // The rings fill soon: batches are dropped, and their counters may or may not be believed.
        let trace = attach(&env, &target, &["-d", "2", "--ring-size", "256KiB"]);
        let traced = trace.finish().expect("it ends").expect_code(0).expect("well");
        let report = traced.report().expect("a report");
        let lost = report.loss("events");
        assert!(lost < can_be_lost(LIMIT.as_secs()), "{what}: {lost} events lost");
        if what != "register" {
            report.expect_note(&["cannot be right", "not known"]).expect(what);
        }
    }
}

#[test]
fn a_signal_is_heard_while_buffers_are_forged() {
    let env = or_skip!(gate::live(Link::Session));
    let target = start(&env, "marks_forge.c", &["both", "2"]);
    let started = attach(&env, &target, &["--ring-size", "256KiB"]).start().expect("starts");
    let path = env.targets.get(&program("marks_forge.c")).expect("it is built");
    wait_until_armed(target.pid(), &path).expect("armed");
    std::thread::sleep(Duration::from_millis(1500));
    started.running.signal(Signal::INT).expect("it runs");
    started.wait().and_then(|traced| traced.expect_code(0)).expect("it ends well");
}

/// The page of a buffer is never there: its reader hangs until it is killed.
#[test]
fn a_buffer_that_never_answers_ends_nothing() {
    let env = or_skip!(gate::live(Link::Session));
    let target = start(&env, "marks_stuck.c", &[]);
    let trace = attach(&env, &target, &["-d", "3"]);
    let traced = trace.finish().expect("it ends").expect_code(0).expect("well");
    let report = traced.report().expect("a report");
    report.expect_note(&["did not answer", "not known"]).expect("the report says so");
    assert!(report.loss("decode_errors") > 0, "it is marked");
    // Full buffers still arrive.
    let calls = report.expect("work").expect("it is traced").calls();
    assert!(calls >= 252, "{calls} calls");
}

/// The memory is slow, as on a slow disk. The buffers never fill, and looks bring their events.
#[test]
fn one_late_answer_costs_nothing() {
    let env = or_skip!(gate::live(Link::Session));
    let target = start(&env, "marks_stuck.c", &["1500", "1"]);
    let trace = attach(&env, &target, &["-d", "4"]);
    let traced = trace.finish().expect("it ends").expect_code(0).expect("well");
    let report = traced.report().expect("a report");
    assert_eq!(report.loss("decode_errors"), 0);
    report.expect_note(&["did not answer"]).expect_err("nothing is to be said");
    let calls = report.expect("work").expect("it is traced").calls();
    assert!(calls > 20, "{calls} calls of fifty a second");
}

#[test]
fn who_answers_again_is_looked_at_again() {
    let env = or_skip!(gate::live(Link::Session));
    let target = start(&env, "marks_stuck.c", &["4000", "1"]);
    let trace = attach(&env, &target, &["-d", "10"]);
    let traced = trace.finish().expect("it ends").expect_code(0).expect("well");
    let report = traced.report().expect("a report");
    report.expect_note(&["did not answer", "twice in a row", "not known"]).expect("it is told");
    // No buffer became full.
    let calls = report.expect("work").expect("it is traced").calls();
    assert!(calls > 20, "{calls} calls of fifty a second");
}

#[test]
fn sigterm_is_heard_while_a_buffer_does_not_answer() {
    let env = or_skip!(gate::live(Link::Session));
    let target = start(&env, "marks_stuck.c", &[]);
    let started = attach(&env, &target, &[]).start().expect("starts");
    let path = env.targets.get(&program("marks_stuck.c")).expect("it is built");
    wait_until_armed(target.pid(), &path).expect("armed");
    let ctrace = started.running.pid();
    wait_until("ctrace reads the buffer", || ctrace_tests::look::has_thread(ctrace, "patience"))
        .expect("it does");
    std::thread::sleep(Duration::from_millis(300));
    started.running.signal(Signal::TERM).expect("it runs");
    started.wait().and_then(|traced| traced.expect_code(0)).expect("it ends well");
}
