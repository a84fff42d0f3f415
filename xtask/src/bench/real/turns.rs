//! Lets contenders take turns on one load, in rotating order, so that a slow minute of the machine
//! hits all of them. Medians count.

use super::tracers::{Seen, Tracer};
use crate::bench::{Row, watch};
use anyhow::{Context, Result};
use std::path::PathBuf;

const ROUNDS: usize = 1;

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
    /// The process's CPU time for a unit of work, in nanoseconds.
    processor: Vec<f64>,
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
    Ok(vec![speed, processor(load, &rates, &turns), counts(load, &tracers, &turns)])
}

/// Shows what the rate hides where the client is the slower one: the process's own CPU time.
fn processor(load: &Load, names: &[(&str, f64)], turns: &[Turns]) -> Row {
    let times: Vec<f64> =
        turns.iter().map(|turns| median(turns.processor.clone()) / 1000.0).collect();
    let figures = names.iter().zip(&times).map(|((name, _), time)| format!("{name} {time:.1}"));
    let mut measured = format!("{} µs", figures.collect::<Vec<_>>().join(", "));
    if let [untraced, bpftrace, ctrace] = times[..] {
        let (theirs, ours) = (bpftrace - untraced, ctrace - untraced);
        measured += &format!("; bpftrace adds {theirs:.1}, ctrace {ours:.1}");
        if theirs > NOISE * untraced {
            measured += &format!(", {:.2} times that", ours / theirs);
        }
    }
    Row::new(format!("{}, the process's CPU time for a {}", load.name, load.rate.unit()), measured)
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
    let gaps = traced.last().map(|turns| turns.gaps(load.functions)).unwrap_or_default();
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
        let work = [3.0, 2.0, 60.0].map(work).into();
        let turns = Turns { work, ..Turns::default() };
        assert_eq!(turns.rate(), 4.0);
        assert_eq!(Rate::PerSecond("request").slowdown(8.0, 6.0), 0.25);
        assert_eq!(Rate::Seconds.slowdown(1.0 / 2.0, 1.0 / 3.0), 0.5);
        assert_eq!(Rate::Seconds.shown(&[("a", 0.5), ("b", 0.4)]), "a 2.00, b 2.50 s");
    }
}
