//! Checks the daemon's reaction to a clock change. The clock is that of the whole machine, so this
//! runs only on a machine without other users.

use crate::daemon::{Daemon, calls, check_reports, folder, reports};
use crate::env::Env;
use crate::targets::program;
use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, Timespec, clock_gettime, clock_settime};
use std::collections::HashSet;
use std::time::Duration;

const TARGETS: &str = "[[target]]\nid = \"spin\"\nexe = \"DIR/spin\"\nfunctions = \"step\"\n\
                       interval = \"1s\"\n";
const DAY: i64 = 86_400;

/// Steps of the clock change no interval. `from` and `to` show them.
pub(super) fn clock_steps(env: &Env) -> Result<()> {
    let dir = folder(env, &[("spin", &program("spin.c"))])?;
    let daemon = Daemon::start(env, dir, TARGETS)?;
    let target = daemon.target("spin", &["0", "20"])?;
    daemon.wait_until_traced(target.pid())?;
    for days in [10, -20, 10] {
        std::thread::sleep(Duration::from_millis(2500));
        step(days * DAY)?;
    }
    std::thread::sleep(Duration::from_millis(2500));
    let (finished, _dir) = daemon.end()?;
    ensure!(finished.shell_code() == 0, "{}", finished.stderr);
    let all = reports(&finished.stdout)?;
    check_reports(&all)?;
    let (_, whole) = all.split_last().context("reports")?;
    ensure!(whole.len() >= 8, "{} reports", whole.len());
    for report in whole {
        let number = |key: &str| report[key].as_u64().context("a number");
        let length = number("end_ns")? - number("start_ns")?;
        ensure!(length == 1_000_000_000, "an interval of {length} ns");
        ensure!(calls(report, "step") > 0, "no calls: {report}");
    }
    let day =
        |report: &serde_json::Value| report["daemon"]["to"].as_str().map(|to| to[..10].into());
    let days: HashSet<Option<String>> = all.iter().map(day).collect();
    ensure!(days.len() >= 3 && !days.contains(&None), "the days {days:?}");
    Ok(())
}

fn step(seconds: i64) -> Result<()> {
    let now = clock_gettime(ClockId::Realtime);
    let then = Timespec { tv_sec: now.tv_sec + seconds, ..now };
    clock_settime(ClockId::Realtime, then).context("the clock cannot be set")
}
