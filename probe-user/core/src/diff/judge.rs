//! Compares the two sides: the change of each number, its interval, and the verdict.
//!
//! Among a hundred unchanged functions, five would be called changed at 95 %. So intervals are
//! widened by the number of judged functions (Bonferroni): with 95 % certainty *none* of them is
//! falsely called changed. Methods that find more, such as Benjamini and Hochberg's, promise only a
//! low share of false ones, and only for independent functions, which callers and callees are not.

use super::gather::{Cells, Stretch};
use super::metric::{ABSENT, Metric, Values};
use super::resample::Draws;
use super::spread::{Estimate, Pool};
use super::survey::Chosen;
use super::verdict::Verdict;
use super::{Options, student};
use rayon::prelude::*;

/// Certainty that nothing is falsely called changed.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// The files of one side.
pub(crate) enum Side {
    Recordings {
        recordings: Vec<Vec<Stretch>>,
        seconds: Vec<f64>,
        draws: Draws,
    },
    /// Indexed by slot.
    Report(Vec<Option<Values>>),
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
        let lengths: Vec<usize> = recordings.iter().map(Vec::len).collect();
        Self::Recordings { recordings, seconds, draws: Draws::new(&lengths, seed) }
    }

    pub(crate) fn stretches(&self) -> usize {
        match self {
            Self::Recordings { seconds, .. } => seconds.len(),
            Self::Report(_) => 0,
        }
    }

    fn estimate(&self, slot: usize) -> Estimate {
        match self {
            Self::Recordings { recordings, seconds, draws } => {
                Pool { recordings, seconds, draws }.estimate(slot)
            }
            Self::Report(values) => Estimate {
                values: values[slot].unwrap_or(ABSENT),
                spreads: [const { None }; Metric::ALL.len()],
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

/// Indexed by slot and metric.
pub(crate) type Verdicts = Vec<[Judged; Metric::ALL.len()]>;

/// The difference of two logarithms.
#[derive(Clone, Copy)]
struct Difference {
    value: f64,
    error: f64,
    freedom: u32,
}

pub(crate) fn judge(sides: &[Side; 2], chosen: &Chosen, options: &Options) -> Verdicts {
    let is_judged = sides.iter().all(|side| matches!(side, Side::Recordings { .. }));
    let estimates: Vec<_> = (0..chosen.slots())
        .into_par_iter()
        .map(|slot| {
            let [old, new] = sides.each_ref().map(|side| side.estimate(slot));
            let differences = Metric::ALL.map(|metric| Difference::of(metric, &old, &new));
            ([old.values, new.values], differences)
        })
        .collect();
    let (functions, paths) = estimates.split_at(chosen.functions.len());
    let mut verdicts = Vec::with_capacity(estimates.len());
    for family in [functions, paths] {
        let judged = Metric::ALL.map(|metric| {
            let judged = |(_, differences): &&([Values; 2], [Option<Difference>; 8])| {
                differences[metric.index()].is_some()
            };
            family.iter().filter(judged).count().max(1)
        });
        verdicts.extend(family.iter().map(|([old, new], differences)| {
            Metric::ALL.map(|metric| {
                let at = metric.index();
                let chance = (1.0 - CONFIDENCE) / judged[at] as f64;
                let interval = differences[at].as_ref().map(|d| d.interval(chance));
                let verdict = match interval {
                    Some((low, high)) => Verdict::of(metric, low, high, options.margin / 100.0),
                    None if is_judged => Verdict::TooFew,
                    None => Verdict::Unjudged,
                };
                Judged { old: old[at], new: new[at], interval, verdict }
            })
        }));
    }
    verdicts
}

impl Difference {
    /// Both sides get the larger spread of the two, because a rare burst may have happened in only
    /// one of them.
    fn of(metric: Metric, old: &Estimate, new: &Estimate) -> Option<Self> {
        let at = metric.index();
        let value = (new.values[at] / old.values[at]).ln();
        let (old, new) = (old.spreads[at]?, new.spreads[at]?);
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
