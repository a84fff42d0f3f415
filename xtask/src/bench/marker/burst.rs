//! Bursts at full speed beside a process that burns a processor: they have to fit.

use super::{Row, Traced, scopes};
use anyhow::Result;
use std::process::{Child, Command, Stdio};

const RUNS: u64 = 20;

/// Threads and calls of each.
const BURSTS: [(u64, u64); 2] = [(1, 20_000_000), (8, 300_000)];

pub(in crate::bench) fn run() -> Result<Vec<Row>> {
    let program = scopes()?;
    let _burner = Burner::start()?;
    let mut rows = Vec::new();
    for (threads, calls) in BURSTS {
        for on_full in ["drop", "wait"] {
            let arguments = ["burst", &threads.to_string(), &calls.to_string()];
            let (mut whole, mut lost) = (0, 0);
            for _ in 0..RUNS {
                let traced = Traced::run(&program, &arguments, &["--on-full", on_full])?;
                let is_whole = traced.lost()? == 0 && traced.calls()?.1 == threads * calls;
                whole += u64::from(is_whole);
                lost += traced.lost()?;
            }
            let what = format!(
                "{threads} threads, {calls} calls each at full speed, --on-full {on_full}, beside \
                 a process that burns a CPU"
            );
            let measured = format!("{whole} of {RUNS} runs whole, {lost} events lost in all");
            let row = Row::new(what, measured);
            // Whoever does not wait may lose something.
            rows.push(match on_full {
                "wait" => row.goal("nothing lost in any run", whole == RUNS),
                _ => row,
            });
        }
    }
    Ok(rows)
}

/// A process that burns a processor until this is dropped.
struct Burner(Child);

impl Burner {
    fn start() -> Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdin(Stdio::null());
        Ok(Self(command.spawn()?))
    }
}

impl Drop for Burner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
