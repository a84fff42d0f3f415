//! Lets contenders take turns on one load, in rotating order, so that a slow minute of the machine
//! hits all of them. Medians count.

use super::tracers::{Seen, Tracer};
use crate::bench::Row;
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

/// How to show a load's rate.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rate {
    /// Units of work in a second, and the word for one of them.
    PerSecond(&'static str),
    /// Seconds of a run.
    Seconds,
}

impl Rate {
    fn shown(self, rates: &[(&str, f64)]) -> String {
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
    fn slowdown(self, untraced: f64, traced: f64) -> f64 {
        match self {
            Rate::PerSecond(_) => 1.0 - traced / untraced,
            Rate::Seconds => untraced / traced - 1.0,
        }
    }

    fn unit(self) -> &'static str {
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
    /// What the load printed.
    pub printed: String,
}

/// All turns of one contender.
#[derive(Debug, Default)]
pub(super) struct Turns {
    pub work: Vec<Work>,
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
            let (work, seen) = turn_of(load, contenders[index])
                .with_context(|| format!("{}, {name}, round {}", load.name, round + 1))?;
            eprintln!("  {}: {}", load.name, load.rate.shown(&[(name, work.rate())]));
            all[index].work.push(work);
            all[index].seen.extend(seen);
        }
    }
    Ok(all)
}

fn turn_of(load: &Load, tracer: Option<Tracer>) -> Result<(Work, Option<Seen>)> {
    let mut started = (load.start)()?;
    let tracing = tracer.map(|tracer| tracer.attach(load, started.pid)).transpose()?;
    let work = (started.work)()?;
    let seen = tracing.map(|tracing| tracing.end(load)).transpose()?;
    Ok((work, seen))
}

impl Work {
    fn rate(&self) -> f64 {
        self.units / self.seconds
    }
}

impl Turns {
    fn rate(&self) -> f64 {
        median(self.work.iter().map(Work::rate).collect())
    }

    /// Returns the calls of a function in each turn.
    pub(super) fn calls_of(&self, function: usize) -> Vec<u64> {
        self.seen.iter().map(|seen| seen.calls[function]).collect()
    }

    /// Returns each function's calls in a unit of work.
    fn calls(&self, functions: usize) -> Vec<f64> {
        let units: f64 = self.work.iter().map(|work| work.units).sum();
        (0..functions).map(|i| self.calls_of(i).iter().sum::<u64>() as f64 / units).collect()
    }

    /// Describes what ctrace did not see.
    pub(super) fn gaps(&self) -> String {
        let sum = |of: fn(&Seen) -> u64| self.seen.iter().map(of).sum::<u64>();
        format!("{} calls without a duration, {} events lost", sum(|s| s.untimed), sum(|s| s.lost))
    }
}

pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The goal: the part of bpftrace's slowdown that ctrace's may have.
const GOAL: f64 = 0.8;
/// A smaller slowdown than this is noise, and nothing is compared with it.
const NOISE: f64 = 0.01;

/// Races ctrace against bpftrace.
pub(super) fn rows(load: &Load) -> Result<Vec<Row>> {
    let tracers: Vec<Tracer> =
        [Tracer::Bpftrace, Tracer::Ctrace].into_iter().filter(|tracer| tracer.is_there()).collect();
    let turns = race(load, &tracers)?;
    let names = std::iter::once("untraced").chain(tracers.iter().map(|tracer| tracer.name()));
    let rates: Vec<(&str, f64)> = names.zip(turns.iter().map(Turns::rate)).collect();
    let [(_, untraced), bpftrace @ .., (_, ctrace)] = &rates[..] else { return Ok(Vec::new()) };
    let slowdown = |rate| load.rate.slowdown(*untraced, rate);
    let mut measured = format!("{}; slower by", load.rate.shown(&rates));
    let ours = slowdown(*ctrace);
    let speed = match bpftrace {
        [(_, bpftrace), ..] => {
            let theirs = slowdown(*bpftrace);
            measured += &format!(" {:.1} % and {:.1} %", theirs * 100.0, ours * 100.0);
            if theirs < NOISE {
                Row::new(load.name, measured + ": nothing to compare with")
            } else {
                let measured = format!("{measured}, {:.2} times bpftrace's", ours / theirs);
                let goal = format!("at most {GOAL} times bpftrace's slowdown");
                Row::new(load.name, measured).goal(&goal, ours <= GOAL * theirs)
            }
        }
        [] => Row::new(load.name, format!("{measured} {:.1} %", ours * 100.0)),
    };
    Ok(vec![speed, counts(load, &tracers, &turns)])
}

/// Compares the counts of each function.
fn counts(load: &Load, tracers: &[Tracer], turns: &[Turns]) -> Row {
    let traced = &turns[1..];
    let calls: Vec<Vec<f64>> =
        traced.iter().map(|turns| turns.calls(load.functions.len())).collect();
    let sums: Vec<String> = tracers
        .iter()
        .zip(&calls)
        .map(|(tracer, calls)| format!("{} {}", tracer.name(), digits(calls.iter().sum())))
        .collect();
    let gaps = traced.last().map(Turns::gaps).unwrap_or_default();
    let mut measured = format!("{}; ctrace: {gaps}", sums.join(", "));
    let never: Vec<&str> = idle(load.functions, &calls);
    if !never.is_empty() {
        measured += &format!("; never called: {}", never.join(", "));
    }
    let row =
        |measured| Row::new(format!("{}, calls in a {}", load.name, load.rate.unit()), measured);
    let [theirs, ours] = &calls[..] else { return row(measured) };
    let apart = apart(load.functions, theirs, ours);
    let agree = apart.is_empty();
    if !agree {
        measured += &format!("; they differ in {}", apart.join(", "));
    }
    row(measured).goal("each function's counts agree within 0.1 %", agree)
}

fn idle<'a>(functions: &[&'a str], calls: &[Vec<f64>]) -> Vec<&'a str> {
    let is_idle = |i: usize| calls.iter().all(|calls| calls[i] == 0.0);
    functions.iter().enumerate().filter(|(i, _)| is_idle(*i)).map(|(_, name)| *name).collect()
}

/// Names the functions whose counts differ, and both counts.
fn apart(functions: &[&str], theirs: &[f64], ours: &[f64]) -> Vec<String> {
    let all = functions.iter().zip(theirs.iter().zip(ours));
    all.filter(|(_, (theirs, ours))| (**theirs - **ours).abs() > 0.001 * theirs.max(**ours))
        .map(|(name, (theirs, ours))| {
            format!("{name} (bpftrace {}, ctrace {})", digits(*theirs), digits(*ours))
        })
        .collect()
}

fn digits(number: f64) -> String {
    let places = if number < 1000.0 { 3 } else { 0 };
    format!("{number:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_agree_within_a_thousandth() {
        let functions = ["near", "far", "missing", "none"];
        let apart = apart(&functions, &[2000.0, 2000.0, 4.0, 0.0], &[2001.9, 2003.0, 0.0, 0.0]);
        assert_eq!(
            apart,
            ["far (bpftrace 2000, ctrace 2003)", "missing (bpftrace 4.000, ctrace 0.000)"]
        );
        assert_eq!(
            idle(&functions, &[vec![1.0, 2.0, 0.0, 0.0], vec![1.0, 2.0, 3.0, 0.0]]),
            ["none"]
        );
    }

    #[test]
    fn one_slow_turn_does_not_count() {
        let work = |seconds| Work { units: 12.0, seconds, printed: String::new() };
        let turns = Turns { work: [3.0, 2.0, 60.0].map(work).into(), seen: Vec::new() };
        assert_eq!(turns.rate(), 4.0);
        assert_eq!(Rate::PerSecond("request").slowdown(8.0, 6.0), 0.25);
        assert_eq!(Rate::Seconds.slowdown(1.0 / 2.0, 1.0 / 3.0), 0.5);
        assert_eq!(Rate::Seconds.shown(&[("a", 0.5), ("b", 0.4)]), "a 2.00, b 2.50 s");
    }
}
