//! Random moments for attacks, and a target that shows whether it was harmed.

use crate::env::Env;
use crate::look;
use crate::probes::changed_bytes;
use crate::process::Running;
use crate::targets::program;
use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The number of times that a slow target is measured.
const LOOKS: u32 = 5;
/// Another ctrace asks the kernel for all links and so holds each for an instant. It removes the
/// probes of a link that is closed meanwhile.
const HELD_BY_OTHERS: Duration = Duration::from_secs(5);

/// Returns the number of rounds of an attack: `CTRACE_ATTACK_ROUNDS`, or the default.
pub fn rounds(usual: u32) -> u32 {
    let asked = std::env::var("CTRACE_ATTACK_ROUNDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Random numbers. The seed is printed, and taken from `CTRACE_ATTACK_SEED`.
pub struct Random(u64);

impl Random {
    pub fn new() -> Random {
        let given = std::env::var("CTRACE_ATTACK_SEED").ok().and_then(|text| text.parse().ok());
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let seed = given.unwrap_or(now.as_nanos() as u64);
        println!("CTRACE_ATTACK_SEED={seed}");
        Random(seed)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (x ^ x >> 31) % limit
    }

    pub fn sleep_up_to(&mut self, longest: Duration) {
        sleep(Duration::from_nanos(self.below(longest.as_nanos() as u64 + 1)));
    }
}

impl Default for Random {
    fn default() -> Self {
        Random::new()
    }
}

/// `many`: 20,000 functions, and a counter of its progress per CPU time.
pub struct Victim {
    pub pid: i32,
    pub path: PathBuf,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Victim {
    /// Copies the program into this folder. Otherwise probes in all processes of a file would meet
    /// those of other tests.
    pub fn copy(env: &Env, folder: &Path) -> Result<PathBuf> {
        let (original, copy) = (env.targets.get(&program("many.c"))?, folder.join("many"));
        // Another process copies: if other tests inherited a descriptor to write to, the copy could
        // not be executed.
        let copied = Command::new("cp").arg(original).arg(&copy).status()?;
        ensure!(copied.success(), "it is not copied");
        Ok(copy)
    }

    /// Starts it by `command`, as its process or as its child.
    pub fn start(command: &mut Command, path: &Path, is_child: bool) -> Result<(Running, Victim)> {
        let (running, input, output) = Running::start_piped(command)?;
        let mut output = BufReader::new(output);
        let mut line = String::new();
        output.read_line(&mut line)?;
        if line != "ready\n" {
            let ended = running.wait(Duration::from_secs(60))?;
            bail!("it did not start: {line}{}, exit {}", ended.stderr, ended.shell_code());
        }
        let pid = match is_child {
            true => look::child_running(running.pid(), path)?,
            false => running.pid(),
        };
        let victim = Victim { pid, path: path.to_owned(), input, output };
        Ok((running, victim))
    }

    /// Returns calls per microsecond of CPU time.
    pub fn speed(&mut self) -> Result<f64> {
        let (calls, cpu) = self.look()?;
        let begun = Instant::now();
        loop {
            sleep(Duration::from_millis(60));
            let (calls_now, cpu_now) = self.look()?;
            if cpu_now > cpu {
                return Ok((calls_now - calls) as f64 * 1e3 / (cpu_now - cpu) as f64);
            }
            // A busy machine lets it run late.
            ensure!(begun.elapsed() < Duration::from_secs(10), "it did not run");
        }
    }

    fn look(&mut self) -> Result<(u64, u64)> {
        self.input.write_all(b"\n")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let (calls, cpu) = line.trim().split_once(' ').context("two numbers")?;
        Ok((calls.parse()?, cpu.parse()?))
    }

    /// Returns the number of places where its code differs from its file.
    pub fn changed(&self) -> Result<usize> {
        Ok(changed_bytes(self.pid, &self.path)?.len())
    }

    /// Waits for the first probe, when others are about to follow.
    pub fn wait_until_arming(&self, goes_on: impl FnMut() -> bool) -> Result<()> {
        self.wait_for_probes(1, goes_on)
    }

    /// Waits for this number of probes.
    pub fn wait_until_armed(&self, places: usize) -> Result<()> {
        self.wait_for_probes(places, || true)
    }

    /// Waits for this number of probes while `goes_on` holds. Two tests that arm and disarm ten
    /// thousand places each delay each other for a while.
    pub fn wait_for_probes(&self, places: usize, mut goes_on: impl FnMut() -> bool) -> Result<()> {
        let begun = Instant::now();
        let limit = Duration::from_secs(200);
        loop {
            let changed = self.changed()?;
            if changed >= places {
                return Ok(());
            }
            ensure!(goes_on(), "it ended with {changed} of {places} probes");
            ensure!(begun.elapsed() < limit, "{changed} of {places} probes after {limit:?}");
            if places > 1 {
                sleep(Duration::from_millis(20));
            }
        }
    }

    /// Checks that its code equals its file, and that it runs as fast as before.
    pub fn expect_unharmed(&mut self, speed_before: f64) -> Result<()> {
        let mut changed = self.changed()?;
        let begun = Instant::now();
        while changed > 0 && begun.elapsed() < HELD_BY_OTHERS {
            sleep(Duration::from_millis(20));
            changed = self.changed()?;
        }
        ensure!(changed == 0, "{changed} breakpoints are left in process {}", self.pid);
        // A busy host takes a virtual CPU away at times. What stays slow is the probes' fault.
        let mut speed = 0.0;
        for _ in 0..LOOKS {
            speed = self.speed()?;
            if speed > speed_before * 0.4 {
                break;
            }
        }
        ensure!(
            speed > speed_before * 0.4,
            "{speed_before:.1} calls per µs before, now {speed:.1}"
        );
        ensure!(!look::is_stopped(self.pid), "it is stopped");
        Ok(())
    }

    /// Like [`Self::expect_unharmed`], as soon as all probes are gone.
    pub fn expect_recovery(&mut self, speed_before: f64) -> Result<()> {
        let gone = look::wait_until("all probes are gone", || {
            self.changed().is_ok_and(|changed| changed == 0)
        });
        gone.and(self.expect_unharmed(speed_before))
    }

    /// Ends it, even as an orphan.
    pub fn end(self) {
        if let Some(pid) = Pid::from_raw(self.pid) {
            // It may be gone.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
