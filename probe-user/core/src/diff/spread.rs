//! The numbers of one side for a function or path, and their estimated variation between recordings
//! of the same program.
//!
//! The bootstrap's draws give the variation within recordings. Several recordings of a side, if
//! there are any, give the variation between them, such as that of memory layout or of the state of
//! the machine: each in turn is left out (the jackknife). The larger variation counts.

use super::gather::{Stretch, Sums};
use super::ladder::Ladder;
use super::metric::{ABSENT, Metric, Values};
use super::resample::{Draws, variance};

/// The least number of calls on either side of a percentile, or in all, for an estimate.
const LEAST_CALLS: f64 = 10.0;
/// The least number of stretches with calls for an estimate.
const LEAST_STRETCHES: usize = 8;
/// The standard deviation of the rounding to whole nanoseconds.
const ROUNDED_OFF: f64 = 0.29;

/// The deviation of a number from its average, on a logarithmic scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    /// For one second of trace; a longer trace has less.
    pub(crate) variance: f64,
    /// The effect of rounding times, which does not shrink with the length of the trace.
    pub(crate) rounded_off: f64,
    pub(crate) freedom: f64,
    pub(crate) seconds: f64,
}

/// The numbers of a side, and their known spread.
#[derive(Clone, Debug)]
pub(crate) struct Estimate {
    pub(crate) values: Values,
    /// The spread by metric; `None` if there is too little data.
    pub(crate) spreads: [Option<Spread>; Metric::ALL.len()],
}

/// The stretches of all recordings of a side, in sequence.
pub(crate) struct Pool<'a> {
    pub(crate) recordings: &'a [Vec<Stretch>],
    /// Seconds of each stretch.
    pub(crate) seconds: &'a [f64],
    pub(crate) draws: &'a Draws,
}

impl Pool<'_> {
    pub(crate) fn estimate(&self, slot: usize) -> Estimate {
        let stretches = || self.recordings.iter().flatten();
        let sums: Vec<Sums> = stretches().map(|stretch| stretch.sums[slot]).collect();
        let ladder =
            Ladder::new(&stretches().map(|stretch| &stretch.histograms[slot]).collect::<Vec<_>>());
        let values = |times: &[f64]| values(&sums, self.seconds, &ladder, times);
        let all = values(&vec![1.0; sums.len()]);
        let enough = Metric::ALL.map(|metric| has_enough(metric, &sums));
        let mut spreads = [const { None }; Metric::ALL.len()];
        if enough.contains(&true) {
            let each = |rounds: &[Vec<f64>]| rounds.iter().map(|times| values(times)).collect();
            let rounds =
                [each(&self.draws.long), each(&self.draws.short), self.without_each(values)];
            for metric in Metric::ALL.into_iter().filter(|metric| enough[metric.index()]) {
                spreads[metric.index()] = self.spread(metric, &all, &rounds);
            }
        }
        Estimate { values: all, spreads }
    }

    /// Returns the values without each recording in turn, if there are several.
    fn without_each(&self, values: impl Fn(&[f64]) -> Values) -> Vec<Values> {
        if self.recordings.len() < 2 {
            return Vec::new();
        }
        let without = self.draws.recordings.iter().map(|stretches| {
            let mut times = vec![1.0; self.seconds.len()];
            times[stretches.clone()].fill(0.0);
            values(&times)
        });
        without.collect()
    }

    /// Returns the spread. `rounds` holds the values in long and short runs, and without each
    /// recording.
    fn spread(&self, metric: Metric, all: &Values, rounds: &[Vec<Values>; 3]) -> Option<Spread> {
        let at = metric.index();
        let [long, short, without] = rounds
            .each_ref()
            .map(|rounds| rounds.iter().map(|values| values[at].ln()).collect::<Vec<f64>>());
        let known = |logs: &[f64]| logs.iter().all(|log| log.is_finite());
        if ![&long, &short, &without].into_iter().all(|logs| known(logs)) {
            return None;
        }
        let (mut variance_of_all, mut freedom) =
            (self.draws.variance(&long, &short), self.draws.freedom);
        if without.len() > 1 {
            let others = without.len() as f64 - 1.0;
            let between = variance(&without) * others;
            if between > variance_of_all || !variance_of_all.is_finite() {
                (variance_of_all, freedom) = (between, others);
            }
        }
        let seconds: f64 = self.seconds.iter().sum();
        let rounded_off = metric.quantile().map_or(0.0, |_| (ROUNDED_OFF / all[at]).powi(2));
        let is_told = variance_of_all.is_finite() && freedom >= 1.0;
        is_told.then_some(Spread {
            variance: variance_of_all * seconds,
            rounded_off,
            freedom,
            seconds,
        })
    }
}

/// Returns the values, each stretch weighted by `times`.
fn values(sums: &[Sums], seconds: &[f64], ladder: &Ladder, times: &[f64]) -> Values {
    let sum = |of: fn(&Sums) -> u64| -> f64 {
        sums.iter().zip(times).map(|(sums, times)| of(sums) as f64 * times).sum()
    };
    let time: f64 = seconds.iter().zip(times).map(|(seconds, times)| seconds * times).sum();
    let mut values = ABSENT;
    for metric in Metric::ALL {
        values[metric.index()] = match metric {
            Metric::Calls => sum(|s| s.calls) / time,
            Metric::P50 | Metric::P90 | Metric::P99 => {
                ladder.quantile(metric.quantile().unwrap_or(f64::NAN), times)
            }
            Metric::Mean => sum(|s| s.timed_ns) / sum(|s| s.timed),
            Metric::Total => sum(|s| s.total_ns) / time,
            Metric::Own => sum(|s| s.self_ns) / time,
            Metric::Exclusive => sum(|s| s.exclusive_ns) / time,
        };
    }
    values
}

fn has_enough(metric: Metric, sums: &[Sums]) -> bool {
    let stretches = |of: fn(&Sums) -> u64| sums.iter().filter(|sums| of(sums) > 0).count();
    let calls = |of: fn(&Sums) -> u64| sums.iter().map(of).sum::<u64>() as f64;
    match metric {
        Metric::Exclusive => stretches(|s| s.exclusive_ns) >= LEAST_STRETCHES,
        Metric::Calls | Metric::Total | Metric::Own => {
            calls(|s| s.calls) >= LEAST_CALLS && stretches(|s| s.calls) >= LEAST_STRETCHES
        }
        Metric::Mean | Metric::P50 | Metric::P90 | Metric::P99 => {
            let beyond = metric.quantile().map_or(1.0, |part| (1.0 - part).min(part));
            // A rounded 0.99 can make the product slightly too small.
            calls(|s| s.timed) * beyond >= LEAST_CALLS - 1e-6
                && stretches(|s| s.timed) >= LEAST_STRETCHES
        }
    }
}
