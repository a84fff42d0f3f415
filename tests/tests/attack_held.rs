//! A command held at the start of its programs goes on, whatever becomes of ctrace.
//! `CTRACE_ATTACK_ROUNDS` and `CTRACE_ATTACK_SEED` work as in attack_guard.rs.

use anyhow::{Context, Result, ensure};
use ctrace_tests::attack::{Random, rounds};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::look;
use ctrace_tests::process::Running;
use ctrace_tests::report::Report;
use ctrace_tests::targets::program;
use ctrace_tests::truth::Truth;
use ctrace_tests::{gate, or_skip};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

/// A shell script that executes itself repeatedly, through env(1) every other time.
const CHAIN: &str = "[ $1 -lt 1 ] && exit 7
[ $(($1 % 2)) = 0 ] && exec sh $0 $(($1 - 1))
exec env sh $0 $(($1 - 1))
";

/// Attacks ctrace while the command executes one program after the other.
fn attack_rounds(usual: u32, round: impl Fn(&Env, &Path, &mut Random) -> Result<()>) {
    let env = or_skip!(gate::live(Link::Session));
    let mut random = Random::new();
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("chain");
    std::fs::write(&script, CHAIN).expect("writes");
    for number in 0..rounds(usual) {
        if let Err(error) = round(&env, &script, &mut random) {
            panic!("round {number}: {error:#}");
        }
    }
}

/// Starts ctrace with a command that is a chain of programs.
fn start(env: &Env, script: &Path, programs: u32, options: &[&str]) -> Result<(Running, i32)> {
    let mut command = Command::new(&env.ctrace);
    command.args(["run", "-f", "main", "-f", "malloc"]).args(options).args(["--", "/bin/sh"]);
    command.arg(script).arg(programs.to_string()).stdout(Stdio::null());
    let ctrace = Running::start(&mut command)?;
    let shell = std::fs::canonicalize("/bin/sh")?;
    let pid = look::child_running(ctrace.pid(), &shell)?;
    Ok((ctrace, pid))
}

/// Waits for the command's end, and kills it after a time limit.
fn expect_end(pid: i32) -> Result<()> {
    let ended = look::wait_until("the command ends", || look::has_ended(pid));
    if ended.is_err() {
        let stopped = look::is_stopped(pid);
        kill_process(Pid::from_raw(pid).context("a process")?, Signal::KILL)?;
        return ended.with_context(|| format!("stopped: {stopped}"));
    }
    Ok(())
}

#[test]
fn a_chain_of_programs_goes_on_when_ctrace_is_killed() {
    attack_rounds(6, |env, script, random| {
        let (ctrace, pid) = start(env, script, 200, &[])?;
        random.sleep_up_to(Duration::from_millis(1500));
        // It may be over.
        let _ = ctrace.signal(Signal::KILL);
        ctrace.wait(LIMIT)?;
        expect_end(pid)
    });
}

/// Only the guard continues a command held then. A note tells that.
#[test]
fn a_chain_of_programs_goes_on_when_ctrace_is_stopped() {
    attack_rounds(2, |env, script, random| {
        let (ctrace, pid) = start(env, script, 400, &[])?;
        random.sleep_up_to(Duration::from_millis(300));
        ensure!(!look::has_ended(pid), "the command has ended before the attack");
        ctrace.signal(Signal::STOP)?;
        let ended = expect_end(pid);
        ctrace.signal(Signal::CONT)?;
        let finished = ctrace.wait(LIMIT)?;
        ended.with_context(|| finished.stderr.clone())?;
        ensure!(finished.shell_code() == 7, "exit code {}", finished.shell_code());
        let told = "the command was not held at the start of ";
        let lines = finished.stderr.lines().filter(|line| line.contains(told)).count();
        ensure!(lines == 1, "{lines} notes: {}", finished.stderr);
        Ok(())
    });
}

/// Returns how many programs remain: the last word of the command line.
fn programs_left(pid: i32) -> Option<u32> {
    let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).ok()?;
    line.trim_end_matches('\0').rsplit('\0').next()?.parse().ok()
}

/// ctrace's loop waits for a reader and does not continue the command.
#[test]
fn a_chain_of_programs_goes_on_when_nobody_reads_the_reports() {
    /// By then the command was held in vain for long enough.
    const AFTERWARDS: Duration = Duration::from_secs(8);
    attack_rounds(1, |env, script, _| {
        let path = script.with_file_name("reports");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut pipe: File = rustix::fs::open(&path, flags, Mode::empty())?.into();
        let options = ["--interval", "1", "-o", path.to_str().context("text")?];
        let (ctrace, pid) = start(env, script, 1_000_000, &options)?;
        while pipe.write(&[b'\n'; 4096]).is_ok() {}
        while pipe.write(b"\n").is_ok() {}
        sleep(AFTERWARDS);
        let mut left = None;
        let at_first = look::wait_until("the command is looked at", || {
            left = programs_left(pid);
            left.is_some()
        });
        let went_on = at_first.and_then(|()| {
            look::wait_until("the command executes other programs", || {
                programs_left(pid).is_some_and(|now| Some(now) < left)
            })
        });
        let stopped = look::is_stopped(pid);
        kill_process(Pid::from_raw(pid).context("a process")?, Signal::KILL)?;
        let reading = std::thread::spawn(move || {
            let mut seen = Vec::new();
            while !seen.ends_with(b"THE END\n") {
                let mut part = [0; 4096];
                match pipe.read(&mut part) {
                    Ok(bytes) => seen.extend_from_slice(&part[..bytes]),
                    Err(_) => sleep(Duration::from_millis(5)),
                }
            }
            String::from_utf8_lossy(&seen).into_owned()
        });
        let finished = ctrace.wait(LIMIT);
        fs::OpenOptions::new().write(true).open(&path)?.write_all(b"THE END\n")?;
        let seen = reading.join().ok().context("it reads")?;
        fs::remove_file(&path)?;
        went_on.with_context(|| format!("stopped: {stopped}"))?;
        let finished = finished?;
        ensure!(finished.shell_code() == 137, "exit code {}", finished.shell_code());
        ensure!(seen.contains("the command was not held at the start of "), "{seen}");
        Ok(())
    });
}

/// Anyone in the session can send the signal. ctrace is stopped meanwhile, so that the signal comes
/// before the probes.
#[test]
fn a_continue_signal_of_others_does_not_start_the_command() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("counts.c")).expect("builds");
    let counts = std::fs::canonicalize(path).expect("there");
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report.json");
    let attacked = (0..20).find_map(|_| {
        let mut command = Command::new(&env.ctrace);
        command.arg("run");
        for functions in ["leaf", "p?ng", "descend", "tail_*"] {
            command.args(["-f", functions]);
        }
        command.args(["--format", "json", "-o"]).arg(&report).arg("--");
        let ctrace = Running::start(command.arg(&counts).arg("10")).expect("ctrace");
        let own = std::fs::canonicalize(&env.ctrace).expect("there");
        let waits = |pid: i32| look::runs(pid, &own) && is_our_child(pid);
        let child = loop {
            if let Some(child) = look::children(ctrace.pid()).into_iter().find(|pid| waits(*pid)) {
                break child;
            }
            assert!(!look::has_ended(ctrace.pid()), "no child was seen");
        };
        ctrace.signal(Signal::STOP).expect("alive");
        look::wait_until("ctrace stops", || look::is_stopped(ctrace.pid())).expect("it stops");
        // It may have been told to start just before.
        std::thread::sleep(Duration::from_millis(100));
        waits(child).then_some((ctrace, child))
    });
    let (ctrace, child) = attacked.expect("ctrace is stopped before it starts the command");
    for _ in 0..100 {
        kill_process(Pid::from_raw(child).expect("a process"), Signal::CONT).expect("it waits");
        std::thread::sleep(Duration::from_millis(2));
        assert!(!look::runs(child, &counts) && !look::has_ended(child), "the command began");
    }
    ctrace.signal(Signal::CONT).expect("alive");
    let finished = ctrace.wait(LIMIT).expect("ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let report = std::fs::read_to_string(&report).expect("a report");
    let report = Report::parse(&report).expect("a report");
    Truth::parse(&finished.stdout).check_calls(&report).expect("all calls");
    report.check_lossless().expect("no losses");
}

fn is_our_child(pid: i32) -> bool {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    words.split(|byte| *byte == 0).nth(1) == Some(b"__exec")
}

/// A command held at the start of a later program can be continued by others. A note tells that.
#[test]
fn who_is_continued_by_others_is_told() {
    attack_rounds(2, |env, script, _| {
        let (ctrace, pid) = start(env, script, 200, &[])?;
        ctrace.signal(Signal::STOP)?;
        // The programs hold it while the heartbeat is young.
        look::wait_until("the command is held", || look::is_stopped(pid))?;
        kill_process(Pid::from_raw(pid).context("a process")?, Signal::CONT)?;
        look::wait_until("it goes on", || !look::is_stopped(pid))?;
        ctrace.signal(Signal::CONT)?;
        let finished = ctrace.wait(LIMIT)?;
        ensure!(finished.shell_code() == 7, "exit code {}", finished.shell_code());
        let told = "the command was not held at the start of ";
        ensure!(finished.stderr.contains(told), "no note: {}", finished.stderr);
        Ok(())
    });
}
