//! Compares the contenders' turns: rows of the table.

use super::tracers::Tracer;
use super::turns::{Load, Turns, median, race};
use crate::bench::Row;
use anyhow::Result;

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
    let times: Vec<f64> = turns.iter().map(|turns| median(turns.processor.clone())).collect();
    let (unit, scale) = if times[0] < 1e6 { ("µs", 1e3) } else { ("s", 1e9) };
    let times: Vec<f64> = times.into_iter().map(|time| time / scale).collect();
    let figures = names.iter().zip(&times).map(|((name, _), time)| format!("{name} {time:.2}"));
    let mut measured = format!("{} {unit}", figures.collect::<Vec<_>>().join(", "));
    if let [untraced, bpftrace, ctrace] = times[..] {
        let (theirs, ours) = (bpftrace - untraced, ctrace - untraced);
        measured += &format!("; bpftrace adds {theirs:.2}, ctrace {ours:.2}");
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
}
