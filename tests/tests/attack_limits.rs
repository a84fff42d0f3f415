//! Limits ctrace's files, stack, memory and threads, and traces programs that take too long. Each
//! ends in a line, never in a crash, and leaves nothing in a target.

use ctrace_tests::crowd::Crowd;
use ctrace_tests::env::{Env, Link};
use ctrace_tests::look::{has_thread, wait_until};
use ctrace_tests::probes::{changed_bytes, wait_until_armed};
use ctrace_tests::process::{Finished, Running, run};
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);
/// ctrace's exit status for its own failures.
const OWN: i32 = 125;

/// Makes a folder with a program and a recording of it.
fn folder(env: &Env) -> TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    let calls = env.targets.get(&program("calls.c")).expect("targets build");
    symlink(calls, dir.path().join("calls")).expect("a link");
    let recorded = limited(env, dir.path(), "true", "record -o t.ctrace -f * -- ./calls");
    assert_eq!(recorded.shell_code(), 0, "{}", recorded.stderr);
    dir
}

/// Runs `ctrace ARGUMENTS` under a limit of the shell.
fn limited(env: &Env, dir: &Path, limit: &str, arguments: &str) -> Finished {
    let mut command = Command::new("sh");
    // `noglob` protects the patterns.
    command.arg("-c").arg(format!("set -f; {limit}; exec \"$0\" {arguments}"));
    command.arg(&env.ctrace).current_dir(dir).env_remove("RUST_BACKTRACE");
    run(&mut command, LIMIT).expect("sh runs")
}

/// Checks the last line of a failure.
fn check_line(finished: &Finished, of: &str) {
    let (code, told) = (finished.shell_code(), &finished.stdout);
    let shown = format!("{of}: exit {code}\n{}\n{told}", finished.stderr);
    assert_eq!(code, OWN, "{shown}");
    assert!(finished.stderr.lines().last().is_some_and(|l| l.starts_with("ctrace:")), "{shown}");
    assert!(!finished.stderr.contains("a mistake in ctrace"), "{shown}");
    assert!(!finished.stderr.contains("memory allocation of"), "{shown}");
}

#[test]
fn files_that_may_not_grow_are_an_error() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = folder(&env);
    for arguments in [
        "report t.ctrace > out",
        "report t.ctrace --format json > out",
        "export t.ctrace --format csv -o out",
        "export t.ctrace --format perfetto > out",
        "list ./calls > out",
        "doctor > out",
        "run -f * -o out -- ./calls > /dev/null",
        "run -f * --format json -o out -- ./calls > /dev/null",
        "record -o new.ctrace -f * -- ./calls > /dev/null",
    ] {
        let finished = limited(&env, dir.path(), "ulimit -f 0", arguments);
        check_line(&finished, arguments);
        assert!(finished.stderr.contains("File too large"), "{arguments}: {}", finished.stderr);
        assert_eq!(finished.stderr.lines().count(), 1, "{arguments}: {}", finished.stderr);
    }
}

/// Returns the signals that a command ignores, except the C library's own.
fn ignored(status: &str) -> Option<u64> {
    let mask = status.strip_prefix("SigIgn:")?.trim();
    Some(u64::from_str_radix(mask, 16).ok()? & ((1 << 31) - 1))
}

#[test]
fn the_command_gets_its_own_disposition_back() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = folder(&env);
    const STATUS: &str = "grep SigIgn: /proc/self/status";
    for limit in ["true", "trap '' XFSZ", "trap '' PIPE CHLD"] {
        let mut direct = Command::new("sh");
        direct.arg("-c").arg(format!("set -f; {limit}; exec {STATUS}"));
        let direct = ignored(&run(&mut direct, LIMIT).expect("sh runs").stdout);
        let traced = limited(&env, dir.path(), limit, &format!("run -f write -o out -- {STATUS}"));
        assert!(direct.is_some(), "{limit}");
        assert_eq!(ignored(&traced.stdout), direct, "{limit}: {}", traced.stderr);
    }
}

#[test]
fn a_small_stack_is_enough() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = folder(&env);
    for kilobytes in [256, 512, 1024] {
        for arguments in [
            "--version",
            "list ./calls",
            "report t.ctrace",
            "doctor",
            "export t.ctrace --format speedscope",
            "run -f * -- ./calls",
        ] {
            let limit = format!("ulimit -s {kilobytes}");
            let finished = limited(&env, dir.path(), &limit, arguments);
            assert_eq!(finished.shell_code(), 0, "{limit} {arguments}: {}", finished.stderr);
        }
    }
}

/// Whatever is refused, ctrace works or ends with a line.
#[test]
fn little_memory_ends_in_a_line() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = folder(&env);
    let commands = [
        "list ./calls",
        "report t.ctrace",
        "export t.ctrace --format parquet -o out.parquet",
        "doctor",
    ];
    for arguments in commands {
        let enough = (0..12).find(|step| {
            // From too little for anything up to 1.6 GiB.
            let limit = format!("ulimit -v {}", 20_000_u32 * 3_u32.pow(*step) / 2_u32.pow(*step));
            let finished = limited(&env, dir.path(), &limit, arguments);
            let is_enough = finished.shell_code() == 0;
            // If the program does not fit, the kernel or the loader ends it.
            let is_loaded = || limited(&env, dir.path(), &limit, "--version").shell_code() <= OWN;
            if !is_enough && is_loaded() {
                check_line(&finished, &format!("{limit} {arguments}"));
            }
            is_enough
        });
        assert!(enough.is_some_and(|step| step > 0), "{arguments}: {enough:?}");
    }
}

/// Starts a target. Returns its file and the process.
fn spin(env: &Env, arguments: &[&str]) -> (PathBuf, Running) {
    let file = env.targets.get(&program("spin.c")).expect("targets build");
    let running = Running::start_ready(Command::new(&file).args(arguments)).expect("runs");
    (file, running)
}

/// Waits until no breakpoint is left in a target that runs on.
fn check_unharmed(mut spin: Running, file: &Path) {
    let is_clean = || changed_bytes(spin.pid(), file).is_ok_and(|changed| changed.is_empty());
    wait_until("no breakpoint is left", is_clean).expect("none");
    assert!(spin.is_running());
    spin.signal(Signal::TERM).expect("runs");
    let finished = spin.wait(LIMIT).expect("ends");
    assert!(finished.stdout.contains("ok "), "{}{}", finished.stdout, finished.stderr);
}

/// Wherever memory ends, no process stays stopped, and no breakpoint stays.
#[test]
fn little_memory_for_a_trace_leaves_nothing() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = folder(&env);
    let (file, spin) = spin(&env, &["0", "500"]);
    let attach = format!("attach {} -f * -d 1", spin.pid());
    // Below, the kernel or the dynamic linker has no room for the program itself.
    let begins = |kilobytes: &u32| {
        let finished = limited(&env, dir.path(), &format!("ulimit -v {kilobytes}"), "--version");
        ![127, 139].contains(&finished.shell_code())
    };
    let least = (40_000..200_000).step_by(4_000).find(begins).expect("it begins somewhere");
    for kilobytes in (least..=least + 140_000).step_by(20_000) {
        let limit = format!("ulimit -v {kilobytes}");
        // A command left stopped would keep the outputs open.
        for arguments in ["run -f * -- ./calls", &attach] {
            let finished = limited(&env, dir.path(), &limit, arguments);
            if finished.shell_code() != 0 {
                check_line(&finished, &format!("{limit} {arguments}"));
            }
        }
    }
    check_unharmed(spin, &file);
}

/// A watchdog's abort is no lack of memory.
#[test]
fn an_abort_is_not_told_as_lack_of_memory() {
    let env = or_skip!(gate::live(Link::Session));
    let (file, spin) = spin(&env, &["0", "500"]);
    let mut command = Command::new("prlimit");
    command.arg("--core=0").arg(&env.ctrace).args(["attach", &spin.pid().to_string(), "-f", "*"]);
    let ctrace = Running::start(&mut command).expect("runs");
    wait_until_armed(spin.pid(), &file).expect("armed");
    ctrace.signal(Signal::ABORT).expect("runs");
    let finished = ctrace.wait(LIMIT).expect("ends");
    assert_eq!(finished.shell_code(), 128 + Signal::ABORT.as_raw(), "{}", finished.stderr);
    let said = finished.stderr.lines().filter(|line| !line.contains("; Ctrl-C ends"));
    assert_eq!(said.collect::<String>(), "");
    check_unharmed(spin, &file);
}

/// Removing probes needs no thread: neither at the end nor for a budget, which does it all the
/// time.
#[test]
fn without_room_for_a_thread_probes_go_all_the_same() {
    let env = or_skip!(gate::live(Link::Session));
    for (arguments, rate) in [("-f *", "500"), ("-f * --budget 1%", "0")] {
        let crowd = or_skip!(Crowd::new());
        let (file, spin) = spin(&env, &["0", rate]);
        let attach = format!("{} attach {} {arguments}", env.ctrace.display(), spin.pid());
        let mut ctrace = Running::start(&mut crowd.enter(&attach)).expect("runs");
        // The last thread of a session waits for the end of the target.
        wait_until("it traces", || has_thread(ctrace.pid(), "target")).expect("traces");
        crowd.close().expect("a limit");
        // The time of some windows of the budget.
        std::thread::sleep(Duration::from_secs(2));
        assert!(ctrace.is_running(), "{arguments}");
        ctrace.signal(Signal::INT).expect("runs");
        let finished = ctrace.wait(LIMIT).expect("ends");
        assert_eq!(finished.shell_code(), 0, "{arguments}: {}", finished.stderr);
        assert!(finished.stdout.contains("step"), "{arguments}: {}", finished.stdout);
        check_unharmed(spin, &file);
    }
}
