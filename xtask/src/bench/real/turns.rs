//! Lets contenders take turns on one load, in rotating order, so that a slow minute of the machine
//! hits all of them. Medians count.

use super::tracers::{Seen, Tracer};
use crate::bench::watch;
use anyhow::{Context, Result};
use std::path::PathBuf;

const ROUNDS: usize = 5;

/// A load on one program.
pub(super) struct Load {
    pub name: &'static str,
    pub rate: Rate,
    /// The file that has the functions.
    pub program: PathBuf,
    pub functions: &'static [&'static str],
    /// Starts a new process for a turn.
    pub start: Box<dyn Fn() -> Result<Started>>,
}

/// The way to show a load's rate.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rate {
    /// Units of work in a second, and the word for one of them.
    PerSecond(&'static str),
    /// Seconds of a run.
    Seconds,
}

impl Rate {
    pub(super) fn shown(self, rates: &[(&str, f64)]) -> String {
        let figure = |(name, rate): &(&str, f64)| match self {
            Rate::PerSecond(_) => format!("{name} {rate:.0}"),
            Rate::Seconds => format!("{name} {:.2}", 1.0 / rate),
        };
        let figures = rates.iter().map(figure).collect::<Vec<_>>().join(", ");
        match self {
            Rate::PerSecond(unit) => format!("{figures} {unit}s/s"),
            Rate::Seconds => format!("{figures} s"),
        }
    }

    /// Returns the part of the rate that is lost, or the time that is added to a run.
    pub(super) fn slowdown(self, untraced: f64, traced: f64) -> f64 {
        match self {
            Rate::PerSecond(_) => 1.0 - traced / untraced,
            Rate::Seconds => untraced / traced - 1.0,
        }
    }

    pub(super) fn unit(self) -> &'static str {
        match self {
            Rate::PerSecond(unit) => unit,
            Rate::Seconds => "run",
        }
    }
}

/// A process that waits for its load. Dropping `work` ends it.
pub(super) struct Started {
    /// The process to trace.
    pub pid: u32,
    pub work: Box<dyn FnMut() -> Result<Work>>,
}

/// Work that was done.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub units: f64,
    pub seconds: f64,
    /// The text that the load printed.
    pub printed: String,
}

/// All turns of one contender.
#[derive(Debug, Default)]
pub(super) struct Turns {
    pub work: Vec<Work>,
    /// The process's CPU time for a unit of work, in nanoseconds.
    pub processor: Vec<f64>,
    seen: Vec<Seen>,
}

/// Lets nobody and the tracers take turns. The result has nobody's turns first.
pub(super) fn race(load: &Load, tracers: &[Tracer]) -> Result<Vec<Turns>> {
    let contenders: Vec<Option<Tracer>> =
        std::iter::once(None).chain(tracers.iter().copied().map(Some)).collect();
    let mut all: Vec<Turns> = contenders.iter().map(|_| Turns::default()).collect();
    for round in 0..ROUNDS {
        for turn in 0..contenders.len() {
            let index = (round + turn) % contenders.len();
            let name = contenders[index].map_or("untraced", Tracer::name);
            let work = take(load, contenders[index], &mut all[index])
                .with_context(|| format!("{}, {name}, round {}", load.name, round + 1))?;
            eprintln!("  {}: {}", load.name, load.rate.shown(&[(name, work.rate())]));
        }
    }
    Ok(all)
}

fn take(load: &Load, tracer: Option<Tracer>, turns: &mut Turns) -> Result<Work> {
    let mut started = (load.start)()?;
    let tracing = tracer.map(|tracer| tracer.attach(load, started.pid)).transpose()?;
    let before = watch::threads_time(started.pid)?;
    let work = (started.work)()?;
    let used = watch::threads_time(started.pid)? - before;
    turns.seen.extend(tracing.map(|tracing| tracing.end(load)).transpose()?);
    turns.processor.push(used as f64 / work.units);
    turns.work.push(work.clone());
    Ok(work)
}

impl Work {
    fn rate(&self) -> f64 {
        self.units / self.seconds
    }
}

impl Turns {
    pub(super) fn rate(&self) -> f64 {
        median(self.work.iter().map(Work::rate).collect())
    }

    /// Returns the calls of a function in each turn.
    pub(super) fn calls_of(&self, function: usize) -> Vec<u64> {
        self.seen.iter().map(|seen| seen.calls[function]).collect()
    }

    /// Returns each function's calls in a unit of work.
    pub(super) fn calls(&self, functions: usize) -> Vec<f64> {
        let units: f64 = self.work.iter().map(|work| work.units).sum();
        (0..functions).map(|i| self.calls_of(i).iter().sum::<u64>() as f64 / units).collect()
    }

    /// Describes what ctrace did not see.
    pub(super) fn gaps(&self, functions: &[&str]) -> String {
        let untimed = |i: &usize| self.seen.iter().any(|seen| seen.untimed[*i] > 0);
        let untimed: Vec<&str> =
            (0..functions.len()).filter(untimed).map(|i| functions[i]).collect();
        let untimed = match &untimed[..] {
            [] => "all calls with a duration".to_owned(),
            names => format!("no duration for calls of {}", names.join(", ")),
        };
        let lost: u64 = self.seen.iter().map(|seen| seen.lost).sum();
        format!("{untimed}, {lost} events lost")
    }
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_turn_does_not_count() {
        let work = |seconds| Work { units: 12.0, seconds, printed: String::new() };
        let work = [3.0, 2.0, 60.0].map(work).into();
        let turns = Turns { work, ..Turns::default() };
        assert_eq!(turns.rate(), 4.0);
        assert_eq!(Rate::PerSecond("request").slowdown(8.0, 6.0), 0.25);
        assert_eq!(Rate::Seconds.slowdown(1.0 / 2.0, 1.0 / 3.0), 0.5);
        assert_eq!(Rate::Seconds.shown(&[("a", 0.5), ("b", 0.4)]), "a 2.00, b 2.50 s");
    }
}
