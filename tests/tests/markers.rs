//! Tests markers with special surroundings: another tracer, other roots and namespaces, another C
//! library. The table of checks (`kernel.rs`) has the rest.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::look::{self, has_thread, wait_until};
use ctrace_tests::probes::changed_bytes;
use ctrace_tests::serve::Server;
use ctrace_tests::targets::{Build, program};
use ctrace_tests::tools::{bpftrace::Bpftrace, has};
use ctrace_tests::trace::{Started, Trace};
use ctrace_tests::truth::Truth;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use std::process::Command;

fn attach(env: &Env, server: &mut Server, pid: i32) -> Started {
    let started = Trace::attach(env, pid)
        .and_then(|trace| trace.args(["-m", "alpha"]).start())
        .expect("ctrace starts");
    server.wait_for_semaphores(|name| u64::from(name == "alpha")).expect("alpha is on");
    let ctrace = started.running.pid();
    wait_until("ctrace waits", || has_thread(ctrace, "target")).expect("for the target's end");
    started
}

/// Checks that the report has this many calls of `alpha`, all timed, and nothing else.
fn end(started: Started, calls: u64) {
    started.running.signal(Signal::INT).expect("ctrace runs");
    let traced = started.wait().and_then(|traced| traced.expect_code(0)).expect("ends well");
    let report = traced.report().expect("a report");
    Truth::parse(&format!("calls alpha {calls}")).check_scopes(report).expect("all calls");
    assert_eq!(report.functions().count(), 1);
}

/// Another tracer probes the very place where events come out, and a function of the program.
#[test]
fn beside_bpftrace() {
    let env = or_skip!(gate::live(Link::Session));
    or_skip!(has("bpftrace"));
    for link in [Link::Session, Link::Multi, Link::Perf] {
        let env = Env { link, ..env.clone() };
        let path = Server::path(&env).expect("builds");
        let mut server = Server::start(&env).expect("starts");
        let pid = server.pid();
        let before = attach(&env, &mut server, pid);
        let own = changed_bytes(pid, &path).expect("memory");
        // The first and the last one change memory; ctrace has changed that of the middle one.
        let probes = format!(
            "uprobe:{0}:main {{ @main = count(); }} \
             usdt:{0}:ctrace:flush {{ @flushes = count(); }} \
             uprobe:{0}:worked {{ @worked = count(); }}",
            path.display()
        );
        let armed =
            || changed_bytes(pid, &path).is_ok_and(|changed| changed.len() >= own.len() + 2);
        let bpftrace = Bpftrace::attach(pid, &probes, armed).expect("bpftrace starts");
        server.call("alpha", 126 * 10).expect("calls");
        assert_eq!(server.ask("work 100").expect("works"), "worked 100");
        end(before, 126 * 10);
        // The next one comes while bpftrace is there.
        let after = attach(&env, &mut server, pid);
        server.call("alpha", 126 * 5).expect("calls");
        end(after, 126 * 5);
        let counted = bpftrace.end().expect("bpftrace ends");
        // A buffer holds 252 calls, or half as many if they take long.
        let flushes = counted["@flushes"].as_u64().unwrap_or(0);
        assert!((126 * 15 / 252..=15).contains(&flushes), "{counted}");
        assert_eq!(counted["@worked"], 100, "{counted}");
        server.end().expect("undisturbed");
    }
}

/// Its path does not exist outside.
#[test]
fn in_a_chroot() {
    let env = or_skip!(gate::live(Link::Session));
    or_skip!(has("chroot"));
    let build = program("marks_serve.c").flags(["-O2", "-static-pie"]);
    let path = env.targets.get(&build).expect("builds");
    let root = tempfile::tempdir().expect("a folder");
    ctrace_tests::install::install(
        &std::fs::read(path).expect("read"),
        &root.path().join("inside"),
    );
    let mut server =
        Server::start_as(Command::new("chroot").arg(root.path()).arg("/inside")).expect("starts");
    server.call("alpha", 5).expect("it runs");
    let pid = server.pid();
    let started = attach(&env, &mut server, pid);
    server.call("alpha", 1234).expect("calls");
    end(started, 1234);
    server.wait_for_semaphores(|_| 0).expect("off");
    server.end().expect("undisturbed");
}

/// Its buffers hold the thread ids of its own namespace.
#[test]
fn in_namespaces_of_its_own() {
    let env = or_skip!(gate::live(Link::Session));
    or_skip!(has("unshare"));
    let path = Server::path(&env).expect("builds");
    let folder = tempfile::tempdir().expect("a folder");
    let script = format!(
        "mount -t tmpfs none {0} && cp {1} {0}/contained && exec {0}/contained",
        folder.path().display(),
        path.display()
    );
    let mut unshare = Command::new("unshare");
    unshare.args([
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--mount",
        "sh",
        "-c",
        &script,
    ]);
    let mut server = Server::start_as(&mut unshare).expect("starts");
    server.call("alpha", 5).expect("it runs");
    let [target] = look::children(server.pid())[..] else { panic!("one child") };
    assert!(!folder.path().join("contained").exists(), "the mount is to be the container's own");
    // The second one finds a buffer by the thread's id inside.
    for calls in [100, 777, 3] {
        let started = attach(&env, &mut server, target);
        server.call("alpha", calls).expect("calls");
        end(started, calls);
    }
    server.wait_for_semaphores(|_| 0).expect("off");
    server.end().expect("undisturbed");
}

fn with_musl(flags: &[&str]) -> Build {
    program("marks_flow.c").flags(flags.iter().copied()).compiler("musl-gcc")
}

#[test]
fn with_musl_as_the_c_library() {
    let env = or_skip!(gate::live(Link::Session));
    or_skip!(has("musl-gcc"));
    for flags in [&["-O2", "-static"][..], &["-O2", "-static-pie"], &["-O1", "-static", "-no-pie"]]
    {
        let path = env.targets.get(&with_musl(flags)).expect("builds");
        let traced = Trace::run(&env)
            .and_then(|trace| trace.program(&path, ["100"]).finish()?.expect_code(0))
            .expect("runs");
        let truth = Truth::parse(&traced.finished.stdout);
        truth.check_scopes(traced.report().expect("a report")).expect("all calls");
    }
}

/// Names that the file does not have come with the calls: each is a row of its own.
#[test]
fn with_names_that_are_known_only_at_run_time() {
    let env = or_skip!(gate::live(Link::Session));
    for (compiler, flags) in [("g++", "-O0"), ("g++", "-O2"), ("clang++", "-O2")] {
        if let Err(why) = has(compiler) {
            eprintln!("skipped {compiler}: {why}");
            continue;
        }
        let build = program("marks_named.cpp").flags(["-std=c++17", flags]).compiler(compiler);
        let path = env.targets.get(&build).expect("builds");
        let traced = Trace::run(&env)
            .and_then(|trace| {
                let trace = trace.args(["--follow"]).program(&path, ["2000", "500"]);
                trace.finish()?.expect_code(0)
            })
            .expect("runs");
        let truth = Truth::parse(&traced.finished.stdout);
        assert!(truth.calls.len() > 30, "{:?}", truth.calls);
        truth.check_scopes(traced.report().expect("a report")).expect("all calls of each name");
    }
}

/// Waits are functions that ctrace adds itself. They take no numbers from scopes.
#[test]
fn with_waits_told_apart() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("marks_flow.c").flags(["-O2"])).expect("builds");
    let traced = Trace::run(&env)
        .and_then(|trace| trace.args(["--cpu"]).program(&path, ["100"]).finish()?.expect_code(0))
        .expect("runs");
    let truth = Truth::parse(&traced.finished.stdout);
    truth.check_calls(traced.report().expect("a report")).expect("all calls");
}
