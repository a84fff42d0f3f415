//! Measures ctrace itself: CPU time at 1,000 calls a second, memory with 5,000 functions.

use super::{Row, target, watch};
use crate::paths;
use anyhow::Result;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const WATCHED: Duration = Duration::from_secs(10);

pub(super) fn run() -> Result<Vec<Row>> {
    Ok(vec![processor()?, memory()?])
}

fn attach(pid: u32, glob: &str) -> Result<target::Running> {
    let mut command = Command::new(paths::ctrace());
    command.args(["attach", &pid.to_string(), "-f", glob]).stdin(Stdio::null());
    Ok(target::Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?))
}

fn processor() -> Result<Row> {
    let program = target::compile("spin.c")?;
    let process = target::start(&program, &["60", "1000"])?;
    let text = watch::Text::of(process.0.id(), &program)?;
    let mut tracer = attach(process.0.id(), "step")?;
    text.until(Instant::now(), Some(&mut tracer.0), |changed| changed > 0)?;
    std::thread::sleep(Duration::from_secs(1));
    let (start, before) = (Instant::now(), watch::cpu_time(tracer.0.id())?);
    std::thread::sleep(WATCHED);
    let used = watch::cpu_time(tracer.0.id())? - before;
    let share = used.as_secs_f64() / start.elapsed().as_secs_f64() * 100.0;
    watch::interrupt(tracer.0.id())?;
    tracer.0.wait()?;
    Ok(Row::new("ctrace's own CPU time at 1,000 calls/s", format!("{share:.2} % of a core"))
        .goal("under 1 %", share < 1.0))
}

fn memory() -> Result<Row> {
    let program = target::many(5000)?;
    let process = target::start(&program, &["300"])?;
    let text = watch::Text::of(process.0.id(), &program)?;
    let mut tracer = attach(process.0.id(), "f*")?;
    text.until(Instant::now(), Some(&mut tracer.0), |changed| changed > 4900)?;
    std::thread::sleep(Duration::from_secs(1));
    let (all, rings) = watch::resident(tracer.0.id())?;
    watch::interrupt(tracer.0.id())?;
    tracer.0.wait()?;
    let own = all.saturating_sub(rings) / 1024;
    Ok(Row::new(
        "ctrace resident with 5,000 functions",
        format!("{own} MiB, and {} MiB of rings touched", rings / 1024),
    )
    .goal("under 64 MiB besides rings", own < 64))
}
