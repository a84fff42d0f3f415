//! Measures the error rate of comparisons: two recordings of the same random process are called
//! different at most as often as promised, and a real change is found.

use super::gather::{Cells, Stretch};
use super::judge::{Judged, Side, Verdicts, judge};
use super::metric::Metric;
use super::resample::Random;
use super::survey::Chosen;
use super::verdict::Verdict;
use crate::stats::Summary;
use crate::stats::histogram::{Histogram, HistogramCounter};
use crate::units::FuncId;
use rayon::prelude::*;
use std::collections::BTreeMap;

const FUNCTIONS: usize = 6;
const SEEDS: u64 = 200;

/// The model of a program and its machine.
#[derive(Clone, Copy)]
struct Process {
    /// The share of a stretch's state of the machine that the next one inherits.
    inherits: f64,
    /// The standard deviation of these states, on a logarithmic scale.
    moods: f64,
    /// The share of stretches with a disturbance.
    bursts: f64,
    /// The standard deviation between recordings.
    between: f64,
    /// The factor by which calls of the first function are longer.
    slower: f64,
    recordings: usize,
    /// The number of stretches in each recording.
    stretches: usize,
}

const STEADY: Process = Process {
    inherits: 0.0,
    moods: 0.05,
    bursts: 0.0,
    between: 0.0,
    slower: 1.0,
    recordings: 1,
    stretches: 48,
};
const RESTLESS: Process = Process { bursts: 0.05, ..STEADY };

impl Random {
    /// Returns a uniform number from 0 to 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a nearly normal number: the sum of four uniform ones, which are parts of one draw.
    fn normal(&mut self) -> f64 {
        let draw = self.next();
        let part = |bits: u32| f64::from((draw >> bits) as u16) / 65_536.0;
        (part(0) + part(16) + part(32) + part(48) - 2.0) * 3.0_f64.sqrt()
    }
}

impl Process {
    fn side(&self, seed: u64) -> Side {
        let mut random = Random::new(seed);
        let recordings = (0..self.recordings).map(|_| self.recording(&mut random));
        Side::new(recordings.collect(), seed % 2)
    }

    fn recording(&self, random: &mut Random) -> Cells {
        let run = (self.between * random.normal()).exp();
        let mut mood = random.normal();
        let fresh = (1.0 - self.inherits * self.inherits).sqrt();
        let stretches = (0..self.stretches).map(|_| {
            mood = self.inherits * mood + fresh * random.normal();
            let burst = if random.share() < self.bursts { 1.5 } else { 1.0 };
            self.stretch(random, run * burst * (self.moods * mood).exp())
        });
        Cells::Recording { seconds: 0.1, stretches: stretches.collect() }
    }

    fn stretch(&self, random: &mut Random, mood: f64) -> Stretch {
        let mut sums = vec![Summary::default(); FUNCTIONS];
        let mut histograms = vec![Histogram::default(); FUNCTIONS];
        let mut durations = Vec::new();
        for (function, sums) in sums.iter_mut().enumerate() {
            let slower = if function == 0 { self.slower } else { 1.0 };
            let calls = 20 + (random.share() * 20.0) as u64;
            for _ in 0..calls {
                let duration = 10_000.0 * mood * slower * (0.3 * random.normal()).exp();
                let duration = duration as u64;
                durations.push((function, duration));
                sums.tally.add_timed(duration, duration);
                sums.active_ns += duration;
                sums.exclusive_ns += duration;
            }
        }
        HistogramCounter::default().count(&mut histograms, durations.into_iter());
        Stretch { sums, histograms }
    }
}

fn compare(old: Process, new: Process, seed: u64) -> Verdicts {
    let chosen = Chosen {
        functions: (0..FUNCTIONS as u32).map(FuncId).collect(),
        paths: Vec::new(),
        slot_of_function: Vec::new(),
        slot_of_path: Vec::new(),
        functions_left_out: 0,
        paths_left_out: 0,
    };
    let sides = [old.side(2 * seed), new.side(2 * seed + 1)];
    judge(&sides, &chosen, Metric::all().collect(), 1.0)
}

/// Returns, by metric, the number of comparisons with a significant change of any function.
fn alarms(process: Process) -> BTreeMap<&'static str, u64> {
    let compared: Vec<Verdicts> =
        (0..SEEDS).into_par_iter().map(|seed| compare(process, process, seed)).collect();
    let alarms = Metric::all().enumerate().map(|(at, metric)| {
        let is_changed = |judged: &Vec<Judged>| judged[at].verdict.is_significant();
        let changed = compared.iter().filter(|all| all.judged.iter().any(is_changed));
        (metric.name(), changed.count() as u64)
    });
    alarms.collect()
}

#[track_caller]
fn check_alarms(process: Process) {
    let alarms = alarms(process);
    let most = (SEEDS as f64 * (1.0 - super::judge::CONFIDENCE)) as u64;
    assert!(alarms.values().all(|&alarms| alarms <= most), "{alarms:?} of {SEEDS}");
}

#[test]
fn noise_is_seldom_called_a_change() {
    check_alarms(STEADY);
    check_alarms(RESTLESS);
}

#[test]
fn moods_that_last_are_noise_as_well() {
    check_alarms(Process { inherits: 0.6, moods: 0.1, ..RESTLESS });
}

#[test]
fn what_differs_from_run_to_run_is_noise_where_there_are_several() {
    check_alarms(Process { between: 0.05, recordings: 4, stretches: 12, ..RESTLESS });
}

/// A single recording hides the difference between runs, which is why several are requested.
#[test]
fn what_differs_from_run_to_run_deceives_where_there_is_one() {
    let alarms = alarms(Process { between: 0.05, ..STEADY });
    assert!(alarms["p50"] > SEEDS / 10, "{alarms:?}");
}

#[test]
fn a_change_of_a_tenth_is_found() {
    for process in [STEADY, Process { recordings: 5, between: 0.02, stretches: 24, ..STEADY }] {
        let found = (0..SEEDS).into_par_iter().filter(|&seed| {
            let verdicts = compare(process, Process { slower: 1.1, ..process }, seed);
            let p50 = verdicts.metrics.iter().position(|metric| *metric == Metric::P50);
            verdicts.judged[0][p50.expect("a usual one")].verdict == Verdict::Slower
        });
        let found = found.count() as u64;
        assert!(found >= SEEDS * 17 / 20, "{found} of {SEEDS}");
    }
}
