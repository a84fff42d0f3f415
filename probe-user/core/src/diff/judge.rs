//! Compares the two sides: the change of each number, its interval, and the verdict.
//!
//! Among a hundred unchanged functions, five would be called changed at 95 %. So intervals are
//! widened by the number of judged functions (Bonferroni): with 95 % certainty *none* of them is
//! falsely called changed. Methods that find more, such as Benjamini and Hochberg's, promise only a
//! low share of false ones, and only for independent functions, which callers and callees are not.

use super::gather::{Cells, Stretch};
use super::metric::Metric;
use super::resample::Draws;
use super::spread::{Estimate, Pool};
use super::student;
use super::survey::Chosen;
use super::verdict::Verdict;
use crate::stats::histogram::SUB_BITS;
use rayon::prelude::*;

/// Certainty that nothing is falsely called changed.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// The files of one side.
pub(crate) enum Side {
    Recordings {
        recordings: Vec<Vec<Stretch>>,
        seconds: Vec<f64>,
        draws: Draws,
        /// The scale of the histograms.
        sub_bits: u32,
    },
    /// The metrics of each slot.
    Report(Vec<Option<Vec<f64>>>),
}

impl Side {
    pub(crate) fn new(files: Vec<Cells>, seed: u64) -> Self {
        let (mut recordings, mut seconds) = (Vec::new(), Vec::new());
        for file in files {
            match file {
                Cells::Recording { seconds: each, stretches } => {
                    seconds.extend(stretches.iter().map(|_| each));
                    recordings.push(stretches);
                }
                Cells::Report(values) => return Self::Report(values),
            }
        }
        Self::of_stretches(recordings, seconds, seed, SUB_BITS)
    }

    /// Makes a side of stretches, whose histograms have two to the power of `sub_bits` buckets per octave.
    pub(crate) fn of_stretches(
        recordings: Vec<Vec<Stretch>>,
        seconds: Vec<f64>,
        seed: u64,
        sub_bits: u32,
    ) -> Self {
        let lengths: Vec<usize> = recordings.iter().map(Vec::len).collect();
        Self::Recordings { recordings, seconds, draws: Draws::new(&lengths, seed), sub_bits }
    }

    pub(crate) fn stretches(&self) -> usize {
        match self {
            Self::Recordings { seconds, .. } => seconds.len(),
            Self::Report(_) => 0,
        }
    }

    /// Returns an estimate of each metric.
    fn estimates(&self, slot: usize, is_path: bool, metrics: &[Metric]) -> Vec<Estimate> {
        match self {
            Self::Recordings { recordings, seconds, draws, sub_bits } => {
                Pool { recordings, seconds, draws, sub_bits: *sub_bits }
                    .estimates(slot, is_path, metrics)
            }
            Self::Report(values) => match &values[slot] {
                Some(values) => {
                    values.iter().map(|&value| Estimate { value, spread: None }).collect()
                }
                None => vec![Estimate::ABSENT; metrics.len()],
            },
        }
    }
}

/// A number on both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Judged {
    pub(crate) old: f64,
    pub(crate) new: f64,
    /// The bounds of new divided by old.
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) verdict: Verdict,
}

/// The metrics of each slot.
pub(crate) struct Verdicts {
    pub(crate) metrics: Vec<Metric>,
    /// Indexed by slot; in the order of the metrics.
    pub(crate) judged: Vec<Vec<Judged>>,
}

/// The difference of two logarithms.
#[derive(Clone, Copy)]
struct Difference {
    value: f64,
    error: f64,
    freedom: u32,
}

/// `margin`: the percentage of change that does not matter.
pub(crate) fn judge(
    sides: &[Side; 2],
    chosen: &Chosen,
    metrics: Vec<Metric>,
    margin: f64,
) -> Verdicts {
    let is_judged = sides.iter().all(|side| matches!(side, Side::Recordings { .. }));
    let estimates: Vec<Vec<[Estimate; 2]>> = (0..chosen.slots())
        .into_par_iter()
        .map(|slot| {
            let is_path = slot >= chosen.functions.len();
            let [old, new] = sides.each_ref().map(|side| side.estimates(slot, is_path, &metrics));
            old.into_iter().zip(new).map(|(old, new)| [old, new]).collect()
        })
        .collect();
    let (functions, paths) = estimates.split_at(chosen.functions.len());
    let mut judged = Vec::with_capacity(estimates.len());
    for family in [functions, paths] {
        let chances: Vec<f64> = (0..metrics.len())
            .map(|at| {
                let is_told = |row: &&Vec<[Estimate; 2]>| Difference::of(&row[at]).is_some();
                (1.0 - CONFIDENCE) / family.iter().filter(is_told).count().max(1) as f64
            })
            .collect();
        judged.extend(family.iter().map(|row| {
            let of_metric = |((sides, &metric), &chance): ((&[Estimate; 2], &Metric), &f64)| {
                let interval = Difference::of(sides).map(|d| d.interval(chance));
                let verdict = match interval {
                    Some((low, high)) => Verdict::of(metric, low, high, margin / 100.0),
                    None if is_judged => Verdict::TooFew,
                    None => Verdict::Unjudged,
                };
                Judged { old: sides[0].value, new: sides[1].value, interval, verdict }
            };
            row.iter().zip(&metrics).zip(&chances).map(of_metric).collect()
        }));
    }
    Verdicts { metrics, judged }
}

impl Difference {
    /// Both sides get the larger spread of the two, because a rare burst may have happened in only
    /// one of them.
    fn of([old, new]: &[Estimate; 2]) -> Option<Self> {
        let value = (new.value / old.value).ln();
        let (old, new) = (old.spread?, new.spread?);
        let variance = old.variance.max(new.variance);
        let error = variance / old.seconds + variance / new.seconds;
        Some(Self {
            value,
            error: (error + old.rounded_off + new.rounded_off).sqrt(),
            freedom: (old.freedom + new.freedom) as u32,
        })
        .filter(|difference| difference.value.is_finite())
    }

    /// Returns an interval of new divided by old. The true value is outside with this chance.
    fn interval(&self, chance: f64) -> (f64, f64) {
        let reach = student::quantile(chance, self.freedom) * self.error;
        ((self.value - reach).exp(), (self.value + reach).exp())
    }
}
