//! Measures a daemon with 20 targets: idle, and at 10,000 calls a second in all, by probes and by
//! scopes. There the cost to the targets counts as well: it is measured with and without the
//! daemon, in turns.

use super::{Row, target, watch};
use crate::paths;
use anyhow::{Result, bail, ensure};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TARGETS: usize = 20;
/// The interval of reports.
const IDLE: Duration = Duration::from_secs(60);
const BUSY: Duration = Duration::from_secs(20);
const TURNS: usize = 3;
/// The time after which the initial reading is over.
const SETTLING: Duration = Duration::from_secs(5);

pub(super) fn run() -> Result<Vec<Row>> {
    let mut rows = vec![idle()?];
    rows.extend(busy("calls", &["5"], "functions = \"request\"")?);
    rows.extend(busy("scopes", &["5", "served"], "markers = \"served\"")?);
    Ok(rows)
}

fn idle() -> Result<Row> {
    let program = target::compile("spin.c")?;
    let _targets = start_all(&program, &["0", "4"])?;
    let daemon = Daemon::start(&program, "functions = \"step\"")?;
    let share = share_over(IDLE, || daemon.time())?;
    Ok(Row::new(format!("daemon with {TARGETS} targets of 4 calls/s"), percent(share))
        .goal("under 0.1 % of a core", share < 0.1))
}

fn busy(what: &str, arguments: &[&str], selection: &str) -> Result<[Row; 3]> {
    let program = target::compile("steady.c")?;
    let targets = start_all(&program, arguments)?;
    let pids: Vec<u32> = targets.iter().map(|target| target.0.id()).collect();
    let theirs = || pids.iter().map(|pid| watch::threads_time(*pid)).sum::<Result<u64>>();
    let (mut own, mut with, mut without) = (0.0, 0.0, 0.0);
    for _ in 0..TURNS {
        without += share_over(BUSY, theirs)? / TURNS as f64;
        let daemon = Daemon::start(&program, selection)?;
        let before = daemon.time()?;
        with += share_over(BUSY, theirs)? / TURNS as f64;
        let taken = (daemon.time()? - before) as f64;
        own += taken / BUSY.as_nanos() as f64 * 100.0 / TURNS as f64;
    }
    let (cost, all) = (with - without, own + with - without);
    let at = format!("at 10,000 {what}/s of {TARGETS} targets");
    Ok([
        Row::new(format!("daemon {at}"), percent(own)).goal("under 1 % of a core", own < 1.0),
        Row::new(
            format!("its targets' part {at}"),
            format!("{}, {:.0} ns each", percent(cost), cost * 1000.0),
        ),
        Row::new(format!("both {at}"), percent(all)).goal("under 1 % of a core", all < 1.0),
    ])
}

fn start_all(program: &Path, arguments: &[&str]) -> Result<Vec<target::Running>> {
    (0..TARGETS).map(|_| target::start(program, arguments)).collect()
}

/// Returns the percentage of a core. `used` returns CPU time in nanoseconds.
fn share_over(stretch: Duration, used: impl Fn() -> Result<u64>) -> Result<f64> {
    let (start, before) = (Instant::now(), used()?);
    std::thread::sleep(stretch);
    let taken = (used()? - before) as f64;
    Ok(taken / start.elapsed().as_nanos() as f64 * 100.0)
}

fn percent(share: f64) -> String {
    format!("{share:.3} % of a core")
}

/// A daemon that traces a function in all that run a program.
struct Daemon {
    process: target::Running,
    dir: TempDir,
}

impl Daemon {
    /// Starts it, and returns a while after all are traced. `selection` is a line of the target.
    fn start(program: &Path, selection: &str) -> Result<Daemon> {
        let dir = tempfile::tempdir()?;
        let (place, program) = (dir.path().display(), program.display());
        let config = format!(
            "[daemon]\nsocket = \"{place}/socket\"\nrecordings = \"{place}/recordings\"\n\
             [metrics]\nlisten = \"127.0.0.1:0\"\n\
             [[target]]\nid = \"bench\"\nexe = \"{program}\"\n{selection}\n\
             max_processes = {TARGETS}\noutput = \"{place}/reports.jsonl\"\n"
        );
        let file = dir.path().join("ctrace.toml");
        std::fs::write(&file, config)?;
        let mut command = Command::new(paths::ctrace());
        command.args(["daemon", "--config"]).arg(file).stdin(Stdio::null());
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let daemon = Daemon { process: target::Running(process), dir };
        for _ in 0..60 {
            std::thread::sleep(Duration::from_millis(500));
            if daemon.traced()? == TARGETS {
                std::thread::sleep(SETTLING);
                return Ok(daemon);
            }
        }
        bail!("the daemon does not trace {TARGETS} processes within 30 s")
    }

    fn traced(&self) -> Result<usize> {
        let mut command = Command::new(paths::ctrace());
        command.args(["ctl", "--json", "--socket"]).arg(self.dir.path().join("socket"));
        let answer = command.arg("targets").output()?;
        Ok(String::from_utf8_lossy(&answer.stdout).matches("\"state\":\"traced\"").count())
    }

    fn time(&self) -> Result<u64> {
        let used = watch::threads_time(self.process.0.id())?;
        ensure!(used > 0, "the daemon is gone");
        Ok(used)
    }
}
