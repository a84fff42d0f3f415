//! Tests that locks of a program without markers are followed, on the running kernel.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::probes::wait_until_armed;
use ctrace_tests::process::Running;
use ctrace_tests::recorded::Recorded;
use ctrace_tests::report::Report;
use ctrace_tests::targets::program;
use ctrace_tests::tools::has;
use ctrace_tests::trace::Trace;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

fn target(env: &Env) -> PathBuf {
    env.targets.get(&program("locks.c").flag("-pthread")).expect("builds")
}

/// Returns the number behind a word that the target has printed.
#[track_caller]
fn told(stdout: &str, word: &str) -> u64 {
    let line = stdout.lines().find_map(|line| line.strip_prefix(&format!("{word} ")));
    line.expect("a line").parse().expect("a number")
}

#[track_caller]
fn lock<'a>(report: &'a Report, name: &str) -> &'a Value {
    let locks = report.0["locks"]["locks"].as_array().expect("locks");
    let found = locks.iter().find(|lock| lock["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is not among {locks:#?}"))
}

/// Returns the caller with the longest time, and the number and the sum of its times.
fn longest<'a>(lock: &'a Value, count: &str, time: &str) -> (&'a str, u64, u64) {
    let callers = lock["callers"].as_array().expect("callers");
    let number = |caller: &Value, key: &str| caller[key].as_u64().expect("a number");
    let longest = callers.iter().max_by_key(|caller| number(caller, time)).expect("a caller");
    let name = longest["name"].as_str().expect("a name");
    (name, number(longest, count), number(longest, time))
}

/// Checks the locks of the target against what it has printed.
#[track_caller]
fn check(report: &Report, stdout: &str) {
    check_unnested(report, stdout);
    let nested = lock(report, "nested_lock");
    assert_eq!((&nested["nested"], &nested["recursive"]), (&14.into(), &true.into()));
    assert_eq!(nested["holds"], 7);
}

/// Checks what does not take the type of a mutex.
#[track_caller]
fn check_unnested(report: &Report, stdout: &str) {
    report.check_schema().expect("as the schema says");
    report.check_lossless().expect("no losses");
    assert_eq!(report.0["locks"]["lossy_stretches"], 0);
    for name in ["held_lock", "alone_lock", "nested_lock", "table_lock", "queue_lock"] {
        let lock = lock(report, name);
        assert_eq!(lock["acquisitions"], told(stdout, name), "{lock:#}");
        assert_eq!((&lock["unknown_holds"], &lock["open_holds"]), (&0.into(), &0.into()), "{name}");
    }
    let held = lock(report, "held_lock");
    assert_eq!((&held["contended"], &held["refused"]), (&5.into(), &5.into()), "{held:#}");
    assert_eq!(held["holds"], 10);
    let (waiter, waits, wait_ns) = longest(held, "waits", "wait_ns");
    assert_eq!((waiter, waits, Some(wait_ns)), ("waiter", 5, held["wait_ns"].as_u64()));
    let (holder, blocked, blocked_ns) = longest(held, "blocked", "blocked_ns");
    assert_eq!((holder, blocked), ("holder", 5));
    // Nearly all of the wait is the sleep of the holder.
    assert!(blocked_ns <= wait_ns && blocked_ns * 2 > wait_ns, "{blocked_ns} of {wait_ns}");
    let alone = lock(report, "alone_lock");
    assert_eq!((&alone["contended"], &alone["wait_ns"]), (&0.into(), &0.into()));
    let table = lock(report, "table_lock");
    assert_eq!((&table["kind"], &table["shared"]), (&"rw_lock".into(), &12.into()));
    let queue = lock(report, "queue_lock");
    let conditions = told(stdout, "conditions");
    assert_eq!(
        (&queue["conditions"], &queue["holds"]),
        (&conditions.into(), &(2 + conditions).into())
    );
    let stuck = lock(report, "stuck_lock");
    assert_eq!((&stuck["acquisitions"], &stuck["open_holds"]), (&1.into(), &1.into()), "{stuck:#}");
    assert_eq!((&stuck["open_waits"], &stuck["contended"]), (&1.into(), &0.into()), "{stuck:#}");
    // Its thread ended with the process, unseen.
    assert_eq!(stuck["open_wait_max_ns"], Value::Null);
}

/// A function of the program itself takes the lock, and one of libc releases it.
#[test]
fn functions_of_libc_are_followed_beside_those_of_the_program() {
    let env = or_skip!(gate::live(Link::Session));
    let program = env.targets.get(&program("locks_own.c").flag("-pthread"));
    let traced = Trace::run(&env)
        .expect("starts")
        .args(["--locks"])
        .program(&program.expect("builds"), [])
        .finish()
        .and_then(|traced| traced.expect_code(0))
        .expect("runs");
    let report = traced.report().expect("reports");
    report.check_lossless().expect("no losses");
    let lock = lock(report, "wrapped_lock");
    assert_eq!(lock["acquisitions"], told(&traced.finished.stdout, "wrapped_lock"), "{lock:#}");
    assert_eq!((&lock["holds"], &lock["nested"]), (&lock["acquisitions"], &0.into()));
    assert_eq!((&lock["refused"], &lock["unknown_holds"]), (&4.into(), &0.into()));
}

/// Callers are traced functions around the calls, or the functions that return addresses lie in.
#[test]
fn waits_and_holds_are_those_of_the_program() {
    let env = or_skip!(gate::live(Link::Session));
    // Another view, or values of other functions, leave no lock out.
    let others = [&["--view", "threads"][..], &["--arg", "waiter: 0:i32"]];
    for (functions, others) in
        [&[][..], &["waiter", "holder", "waits_for_ever"]].into_iter().zip(others)
    {
        let traced = Trace::run(&env)
            .expect("starts")
            .functions(functions.iter().copied())
            .args(["--locks"])
            .args(others.iter().copied())
            .program(&target(&env), [])
            .finish()
            .and_then(|traced| traced.expect_code(0))
            .expect("runs");
        check(traced.report().expect("reports"), &traced.finished.stdout);
    }
}

/// The C library is part of the program, and does not tell which mutexes are recursive.
#[test]
fn locks_of_musl_are_followed() {
    let env = or_skip!(gate::live(Link::Session));
    or_skip!(has("musl-gcc"));
    let build = program("locks.c").flags(["-O2", "-static", "-pthread"]).compiler("musl-gcc");
    let traced = Trace::run(&env)
        .expect("starts")
        .args(["--locks"])
        .program(&env.targets.get(&build).expect("builds"), [])
        .finish()
        .and_then(|traced| traced.expect_code(0))
        .expect("runs");
    let report = traced.report().expect("reports");
    check_unnested(report, &traced.finished.stdout);
    let nested = lock(report, "nested_lock");
    assert_eq!((&nested["nested"], &nested["recursive"]), (&14.into(), &false.into()));
}

/// The lock and the code that takes it are in a library that the program opens while it is traced.
#[test]
fn locks_of_a_library_that_comes_late_have_names() {
    let env = or_skip!(gate::live(Link::Session));
    let library = env.targets.get(&program("liblocks.c")).expect("builds");
    let path = env.targets.get(&program("dl.c")).expect("builds");
    let target = Running::start_ready(Command::new(&path).arg(&library).args(["50", "late"]))
        .expect("starts");
    let started = Trace::attach(&env, target.pid())
        .and_then(|trace| {
            trace.functions(["host_work", "plug_*@liblocks*"]).args(["--locks"]).start()
        })
        .expect("traces");
    wait_until_armed(target.pid(), &path).expect("armed");
    target.signal(Signal::USR1).expect("runs");
    wait_until_armed(target.pid(), &library).expect("armed");
    target.signal(Signal::USR1).expect("runs");
    let finished = target.wait(Duration::from_secs(30)).expect("ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let traced = started.wait().and_then(|traced| traced.expect_code(0)).expect("reports");
    let lock = lock(traced.report().expect("a report"), "plug_lock@liblocks.so");
    assert_eq!((&lock["acquisitions"], &lock["holds"]), (&50.into(), &50.into()), "{lock:#}");
}

/// The child has the memory map of its parent, until it executes a program.
#[test]
fn locks_have_names_in_children_and_in_what_they_execute() {
    let env = or_skip!(gate::live(Link::Session));
    for flags in [&["-O1", "-pthread"][..], &["-O1", "-pthread", "-no-pie"]] {
        let build = program("locks_exec.c").flags(flags.iter().copied());
        let traced = Trace::run(&env)
            .expect("starts")
            .args(["--locks", "--follow"])
            .program(&env.targets.get(&build).expect("builds"), [])
            .finish()
            .and_then(|traced| traced.expect_code(0))
            .expect("runs");
        let report = traced.report().expect("reports");
        report.check_lossless().expect("no losses");
        let acquisitions = |name: &str| &lock(report, name)["acquisitions"];
        for name in ["parent_lock", "child_lock", "last_lock"] {
            assert_eq!(acquisitions(name), told(&traced.finished.stdout, name), "{flags:?}");
        }
        let pids =
            ["parent_lock", "child_lock", "last_lock"].map(|name| &lock(report, name)["pid"]);
        assert!(pids[0] != pids[1] && pids[1] == pids[2], "{pids:?}");
    }
}

#[test]
fn a_recording_has_the_same_locks() {
    let env = or_skip!(gate::live(Link::Session));
    let mut recorded = Recorded::new(&env, []).expect("a folder").args(["--locks"]);
    let finished = recorded.program(&target(&env), &[]).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let report = recorded.report(&["--view", "locks"]).expect("a report");
    check(&report, &finished.stdout);
    // Whatever functions are chosen.
    let report =
        recorded.report(&["--view", "locks", "-f", "pthread_cond_wait"]).expect("a report");
    check(&report, &finished.stdout);
    let shown = |options: &[&str]| {
        let mut report = Command::new(&env.ctrace);
        let report = report.args(["report", "--view", "locks"]).args(options).arg(&recorded.file);
        let output = report.output().expect("runs");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let table = shown(&[]);
    assert!(table.contains("Who waits") && table.contains("held_lock"), "{table}");
    let csv = shown(&["--format", "csv"]);
    let row = csv.lines().find(|line| line.starts_with("held_lock,")).expect("a row");
    assert!(row.contains(",waiter,") && row.contains(",holder,"), "{row}");
}

/// Without the ends of all calls nobody knows who holds a lock.
#[test]
fn what_would_leave_out_calls_is_refused() {
    let env = or_skip!(gate::live(Link::Session));
    let target = target(&env);
    for (options, told) in [
        (&["--budget", "5"][..], "leave out --budget"),
        (&["--min-duration", "1ms"], "leave out --min-duration"),
        (&["--depth", "2"], "leave out --depth"),
        (&["--interval", "1"], "leave out --interval"),
        (&["--where", "pthread_mutex_lock: 0:u64 == 4096"], "leave out --where for lock"),
        (&["-x", "*trylock"], "leave out -x for lock"),
    ] {
        let mut run = Command::new(&env.ctrace);
        let run = run.args(["run", "--locks"]).args(options).arg("--").arg(&target).output();
        let run = run.expect("runs");
        let stderr = String::from_utf8_lossy(&run.stderr);
        assert!(!run.status.success() && stderr.contains(told), "{stderr}");
    }
}

/// Neither a message nor a sum is a lock.
#[test]
fn commands_without_locks_refuse_to_follow_them() {
    let env = or_skip!(gate::live(Link::Session));
    for command in ["log", "top"] {
        let asked =
            Command::new(&env.ctrace).args([command, "--locks", "--"]).arg(target(&env)).output();
        let asked = asked.expect("runs");
        let stderr = String::from_utf8_lossy(&asked.stderr);
        assert!(
            !asked.status.success() && stderr.contains("--locks is not for this command"),
            "{stderr}"
        );
    }
}

/// Rust's own locks are none of libc, and the report says what shows them.
#[test]
fn a_rust_program_gets_another_way_than_libc() {
    let env = or_skip!(gate::live(Link::Session));
    let rust = env.targets.get(&program("panic.rs").flags(["-O"])).expect("builds");
    let said = |target: &PathBuf| {
        let run = Command::new(&env.ctrace).args(["run", "--locks", "--"]).arg(target).output();
        let run = run.expect("runs");
        // Lines are wrapped at words.
        let text = String::from_utf8_lossy(&run.stderr) + String::from_utf8_lossy(&run.stdout);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let told = said(&rust);
    assert!(told.contains("Rust's standard library use futexes without libc"), "{told}");
    assert!(told.contains("--cpu shows how long each function was blocked on futexes"), "{told}");
    let other = said(&target(&env));
    assert!(other.contains("held_lock") && !other.contains("Rust"), "{other}");
}
