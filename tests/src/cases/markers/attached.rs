//! ctrace attaches and detaches, alone or beside another, while the process has buffers already.

use crate::env::{Env, Link};
use crate::look::{has_thread, wait_until};
use crate::serve::Server;
use crate::trace::{Started, Trace};
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;

/// Attaches. All calls from here on count.
fn attached(
    env: &Env,
    server: &mut Server,
    options: &[&str],
    semaphores: impl Fn(&str) -> u64,
) -> Result<Started> {
    let started = Trace::attach(env, server.pid())?.args(options.iter().copied()).start()?;
    server.wait_for_semaphores(semaphores).with_context(|| options.join(" "))?;
    let pid = started.running.pid();
    // This is the last thread that it starts.
    wait_until("ctrace waits for the target's end", || has_thread(pid, "target"))?;
    Ok(started)
}

/// Ends it. Its report must have exactly these scopes with these calls.
fn check(started: Started, expected: &[(&str, u64)]) -> Result<()> {
    started.running.signal(Signal::INT)?;
    let traced = started.wait()?.expect_code(0)?;
    let report = traced.report()?;
    let mut seen = Vec::new();
    for scope in report.functions() {
        let (calls, timed, _, _) = scope.ends();
        let headless = scope.integer("headless")?;
        ensure!((calls, 0) == (timed, headless), "not all timed: {}", scope.0);
        seen.push((scope.name(), calls));
    }
    seen.sort_unstable();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    ensure!(seen == expected, "scopes are {seen:?}\n{}", report.losses());
    report.check_sums()?;
    report.check_lossless()
}

const NAMED: [&str; 3] = ["-m", "alpha", "-mdelta"];

fn named(name: &str) -> u64 {
    u64::from(["alpha", "delta"].contains(&name))
}

/// The second ctrace finds buffers with events of the first one's time, and sees only its own.
pub(crate) fn markers_attached_again(env: &Env) -> Result<()> {
    let mut server = Server::start(env)?;
    for calls in [100, 30, 500, 1, 251, 0, 126] {
        server.call("alpha", 40)?;
        let started = attached(env, &mut server, &NAMED, named)?;
        server.call("alpha", calls)?;
        server.call("beta", 10)?;
        server.call("delta", calls / 2)?;
        check(started, &[("alpha", calls), ("delta", calls / 2)])
            .with_context(|| format!("{calls} calls"))?;
        server.wait_for_semaphores(|_| 0)?;
        server.call("delta", 40)?;
    }
    server.end().map(drop)
}

/// Attaches to a process in full run.
pub(crate) fn markers_attached_often(env: &Env) -> Result<()> {
    const THREADS: u64 = 3;
    // A perf link takes a tenth of a second or more to close, and a round on an emulated CPU takes
    // seconds.
    let rounds = if env.link == Link::Perf || env.slower > 1 { 8 } else { 50 };
    let mut server = Server::start(env)?;
    server.spin(THREADS)?;
    let mut seen = 0;
    for round in 0..rounds {
        let traced = Trace::attach(env, server.pid())?
            .args(["-m", "turn", "-m", "half", "-d", "0.02"])
            .finish()?
            .expect_code(0)?;
        let report = traced.report()?;
        report.check_sums().and_then(|()| report.check_nearly_in_order()).context(round)?;
        for name in ["turn", "half"] {
            let scope = report.expect(name)?;
            let (calls, timed, untimed, open) = scope.ends();
            let headless = scope.integer("headless")?;
            seen += timed;
            // A call that began before the start or did not end at the end: one for each thread.
            ensure!(
                untimed == 0 && open <= THREADS && headless <= THREADS,
                "{name} in round {round}: {calls} calls, {untimed} untimed, {open} open, \
                 {headless} headless"
            );
        }
    }
    ensure!(seen > 0, "not one call was seen");
    server.wait_for_semaphores(|_| 0)?;
    let turns = server.stop()?;
    ensure!(turns * 2 >= seen, "{seen} scopes seen in {turns} turns of two");
    server.end().map(drop)
}

/// The kernel switches off the scopes of a killed ctrace, and the next one begins anew.
pub(crate) fn markers_of_a_killed_ctrace(env: &Env) -> Result<()> {
    let mut server = Server::start(env)?;
    for _ in 0..3 {
        let started = attached(env, &mut server, &NAMED, named)?;
        server.call("alpha", 333)?;
        started.running.signal(Signal::KILL)?;
        let _ = started.wait()?;
        server.wait_for_semaphores(|_| 0)?;
        server.call("alpha", 20)?;
    }
    let started = attached(env, &mut server, &NAMED, named)?;
    server.call("alpha", 7)?;
    check(started, &[("alpha", 7), ("delta", 0)])?;
    server.end().map(drop)
}

/// Only the chosen scopes are on.
pub(crate) fn markers_chosen(env: &Env) -> Result<()> {
    type Chosen = fn(&str) -> bool;
    let many: Chosen = |name| name.starts_with('m');
    let few: &[(&[&str], Chosen)] = &[
        (&["-m", "alpha"], |name| name == "alpha"),
        (&["-m", "prod/*"], |name| ["alpha", "beta"].contains(&name)),
        (&["-m", "prod/*", "-x", "alpha"], |name| name == "beta"),
        (&["-m", "dev/*", "-m", "delta"], |name| ["gamma", "delta"].contains(&name)),
        (&["-m", "m07", "-m", "m42", "-m", "m99"], |name| ["m07", "m42", "m99"].contains(&name)),
        (&["-x", "m??", "-x", "[th]*"], |name| ["alpha", "beta", "gamma", "delta"].contains(&name)),
    ];
    let all: &[(&[&str], Chosen)] = &[(&[], |_| true), (&["-m", "many/*"], many)];
    let mut server = Server::start(env)?;
    let names: Vec<String> = server.semaphores()?.into_keys().collect();
    let lists = if env.link == Link::Perf { vec![few] } else { vec![few, all] };
    for (options, chosen) in lists.into_iter().flatten() {
        let started = attached(env, &mut server, options, |name| u64::from(chosen(name)))?;
        let called = [("alpha", 11), ("beta", 12), ("gamma", 13), ("delta", 14), ("m42", 15)];
        for (name, calls) in called {
            server.call(name, calls)?;
        }
        let calls = |name: &str| called.iter().find(|(n, _)| *n == name).map_or(0, |(_, c)| *c);
        let expected: Vec<(&str, u64)> =
            names.iter().filter(|name| chosen(name)).map(|name| (&**name, calls(name))).collect();
        check(started, &expected).with_context(|| options.join(" "))?;
    }
    server.wait_for_semaphores(|_| 0)?;
    server.end().map(drop)
}

/// Two sessions trace one process, each with its own scopes and a common one.
pub(crate) fn markers_chosen_by_two(env: &Env) -> Result<()> {
    let mut server = Server::start(env)?;
    for _ in 0..3 {
        let first = attached(env, &mut server, &["-m", "alpha", "-m", "gamma"], |name| {
            u64::from(["alpha", "gamma"].contains(&name))
        })?;
        server.call("alpha", 100)?;
        // The kernel raises a semaphore once per place, however many links it has.
        let second = attached(env, &mut server, &["-m", "gamma", "-m", "delta"], |name| {
            u64::from(["alpha", "gamma", "delta"].contains(&name))
        })?;
        for (name, calls) in [("alpha", 200), ("gamma", 301), ("delta", 402), ("beta", 9)] {
            server.call(name, calls)?;
        }
        check(first, &[("alpha", 300), ("gamma", 301)]).context("the first")?;
        server.wait_for_semaphores(|name| u64::from(["gamma", "delta"].contains(&name)))?;
        server.call("alpha", 50)?;
        server.call("gamma", 50)?;
        check(second, &[("gamma", 351), ("delta", 402)]).context("the second")?;
        server.wait_for_semaphores(|_| 0)?;
    }
    server.end().map(drop)
}
