//! The numbers of one side for a function or path, and their estimated variation between recordings
//! of the same program.
//!
//! The bootstrap's draws give the variation within recordings. Several recordings of a side, if
//! there are any, give the variation between them, such as that of memory layout or of the state of
//! the machine: each in turn is left out (the jackknife). The larger variation counts.

use super::gather::Stretch;
use super::ladder::Ladder;
use super::metric::Metric;
use super::resample::{Draws, variance};
use crate::function::FunctionInfo;
use crate::report::FunctionReport;
use crate::report::numbers::{Kind, Unit};
use crate::stats::{Summary, Tally};
use crate::units::Nanos;

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

/// A metric of a side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    /// NaN if there is none.
    pub(crate) value: f64,
    /// `None` if there is too little data.
    pub(crate) spread: Option<Spread>,
}

impl Estimate {
    pub(crate) const ABSENT: Self = Self { value: f64::NAN, spread: None };
}

/// The stretches of all recordings of a side, in sequence.
pub(crate) struct Pool<'a> {
    pub(crate) recordings: &'a [Vec<Stretch>],
    /// Seconds of each stretch.
    pub(crate) seconds: &'a [f64],
    pub(crate) draws: &'a Draws,
    /// The scale of the histograms.
    pub(crate) sub_bits: u32,
}

impl Pool<'_> {
    /// Returns an estimate of each metric of a function or a path.
    pub(crate) fn estimates(
        &self,
        slot: usize,
        is_path: bool,
        metrics: &[Metric],
    ) -> Vec<Estimate> {
        let stretches = || self.recordings.iter().flatten();
        let sums: Vec<&Summary> = stretches().map(|stretch| &stretch.sums[slot]).collect();
        let course = Course {
            rows: sums.iter().map(|sums| row(sums)).collect(),
            tallies: sums.iter().map(|sums| sums.tally).collect(),
            seconds: self.seconds,
            ladder: Ladder::new(
                &stretches().map(|stretch| &stretch.histograms[slot]).collect::<Vec<_>>(),
                self.sub_bits,
            ),
        };
        let estimate = |&metric: &Metric| match metric.kind() {
            // Nobody knows the time on a path, which would take unions of its own.
            Kind::OfTime if is_path => Estimate::ABSENT,
            _ => self.estimate(metric, &course),
        };
        metrics.iter().map(estimate).collect()
    }

    fn estimate(&self, metric: Metric, course: &Course<'_>) -> Estimate {
        let measure = course.measure(metric);
        let value = measure.value(&vec![1.0; self.seconds.len()]);
        let spread = course.has_enough(metric).then(|| self.spread(metric, value, &measure));
        Estimate { value, spread: spread.flatten() }
    }

    /// Returns the values without each recording in turn, if there are several.
    fn without_each(&self, measure: &Measure<'_>) -> Vec<f64> {
        if self.recordings.len() < 2 {
            return Vec::new();
        }
        let without = self.draws.recordings.iter().map(|stretches| {
            let mut times = vec![1.0; self.seconds.len()];
            times[stretches.clone()].fill(0.0);
            measure.value(&times)
        });
        without.collect()
    }

    /// Returns the spread of a metric with this value.
    fn spread(&self, metric: Metric, value: f64, measure: &Measure<'_>) -> Option<Spread> {
        let each = |rounds: &[Vec<f64>]| -> Vec<f64> {
            rounds.iter().map(|times| measure.value(times)).collect()
        };
        let rounds = [each(&self.draws.long), each(&self.draws.short), self.without_each(measure)];
        let [long, short, without] =
            rounds.map(|values| values.into_iter().map(f64::ln).collect::<Vec<_>>());
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
        let is_percentile = matches!(metric.kind(), Kind::Percentile(_));
        let rounded_off = if is_percentile { (ROUNDED_OFF / value).powi(2) } else { 0.0 };
        let is_told = variance_of_all.is_finite() && freedom >= 1.0;
        is_told.then_some(Spread {
            variance: variance_of_all * seconds,
            rounded_off,
            freedom,
            seconds,
        })
    }
}

/// Returns the row of a stretch, by which the registry of numbers knows its sums.
fn row(sums: &Summary) -> FunctionReport {
    let mut row = FunctionReport::new(&FunctionInfo::new("", ""));
    row.render(sums.clone(), Nanos::ZERO);
    row
}

/// A function or a path in each stretch.
struct Course<'a> {
    rows: Vec<FunctionReport>,
    tallies: Vec<Tally>,
    seconds: &'a [f64],
    ladder: Ladder,
}

/// The rule by which a metric follows from stretches that are drawn any number of times.
enum Measure<'a> {
    /// One sum over another: an amount per second, or time per call.
    Ratio { sums: Vec<f64>, over: Vec<f64> },
    /// The duration that this share of the calls does not exceed.
    Percentile(f64, &'a Ladder),
}

impl Measure<'_> {
    /// Returns the metric, each stretch weighted by `times`.
    fn value(&self, times: &[f64]) -> f64 {
        let sum = |amounts: &[f64]| -> f64 {
            amounts.iter().zip(times).map(|(amount, times)| amount * times).sum()
        };
        match self {
            Self::Ratio { sums, over } => sum(sums) / sum(over),
            Self::Percentile(part, ladder) => ladder.quantile(*part, times),
        }
    }
}

impl Course<'_> {
    fn measure(&self, metric: Metric) -> Measure<'_> {
        match metric.kind() {
            Kind::Percentile(permille) => {
                Measure::Percentile(permille as f64 / 1_000.0, &self.ladder)
            }
            // The rounded means of stretches would not do.
            Kind::Mean => {
                Measure::Ratio { sums: self.sums(|t| t.timed_ns), over: self.sums(|t| t.timed) }
            }
            _ => Measure::Ratio { sums: self.amounts(metric), over: self.seconds.to_vec() },
        }
    }

    /// Returns the number of each stretch.
    fn amounts(&self, metric: Metric) -> Vec<f64> {
        let number = metric.number().number();
        self.rows.iter().map(|row| (number.of)(row).real().unwrap_or(f64::NAN)).collect()
    }

    fn sums(&self, of: fn(&Tally) -> u64) -> Vec<f64> {
        self.tallies.iter().map(|tally| of(tally) as f64).collect()
    }

    /// Returns whether enough happened, in enough stretches, for a spread.
    fn has_enough(&self, metric: Metric) -> bool {
        let happened = match (metric.kind(), metric.unit()) {
            (Kind::Mean | Kind::Percentile(_), _) => self.sums(|t| t.timed),
            // Sums of time grow when calls end.
            (Kind::OfCalls, Unit::Time) => self.sums(Tally::ended),
            _ => self.amounts(metric),
        };
        let counted = match metric.kind() {
            Kind::OfTime => f64::INFINITY,
            Kind::Percentile(permille) => {
                let part = permille as f64 / 1_000.0;
                happened.iter().sum::<f64>() * (1.0 - part).min(part)
            }
            _ => happened.iter().sum(),
        };
        // A rounded 0.99 can make the product slightly too small.
        counted >= LEAST_CALLS - 1e-6
            && happened.iter().filter(|amount| **amount > 0.0).count() >= LEAST_STRETCHES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::histogram::{Histogram, HistogramCounter, SUB_BITS};

    /// Makes ten stretches of 0.1 s. Each has calls of 1,000 to 3,000 ns, most of them short, and
    /// some untimed ones.
    fn recording() -> Vec<Stretch> {
        let stretch = |nth: u64| {
            let mut sums = Summary::default();
            let mut histograms = vec![Histogram::default()];
            let durations: Vec<u64> = (1..=2_000).map(|step| 1_000 + step * step / 2_000).collect();
            durations.iter().for_each(|duration| sums.tally.add_timed(*duration, duration / 3));
            (0..20 + nth).for_each(|_| sums.tally.add_untimed(70, 5));
            (sums.active_ns, sums.exclusive_ns) = (9_000 + nth, 4_000 + nth);
            let calls = durations.into_iter().map(|duration| (0, duration));
            HistogramCounter::default().count(&mut histograms, calls);
            Stretch { sums: vec![sums], histograms }
        };
        (0..10).map(stretch).collect()
    }

    /// A new number that can be compared is estimated without an entry here.
    #[test]
    fn every_metric_has_a_value_of_its_own() {
        let (recordings, seconds) = (vec![recording()], [0.1; 10]);
        let draws = Draws::new(&[10], 0);
        let pool =
            Pool { recordings: &recordings, seconds: &seconds, draws: &draws, sub_bits: SUB_BITS };
        let metrics: Vec<Metric> = Metric::all().collect();
        let estimates = pool.estimates(0, false, &metrics);
        for (at, (metric, estimate)) in metrics.iter().zip(&estimates).enumerate() {
            assert!(estimate.value > 0.0 && estimate.spread.is_some(), "{metric:?}");
            for (other, before) in metrics.iter().zip(&estimates[..at]) {
                assert_ne!(estimate.value, before.value, "{metric:?} and {other:?}");
            }
        }
        for (metric, expected) in [
            (Metric::CALLS, 20_245.0),
            (Metric::MEAN, 1_666.7),
            (Metric::EXCLUSIVE, 40_045.0),
            ("untimed".parse().expect("a metric"), 245.0),
            ("a".parse().expect("a metric"), 90_045.0),
            ("p95".parse().expect("a metric"), 2_805.0),
        ] {
            let at = metrics.iter().position(|known| *known == metric).expect("a metric");
            let got = estimates[at].value;
            assert!((got / expected - 1.0).abs() < 1e-3, "{metric:?}: {got}");
        }
    }

    #[test]
    fn a_path_has_no_time_of_its_own() {
        let (recordings, seconds) = (vec![recording()], [0.1; 10]);
        let draws = Draws::new(&[10], 0);
        let pool =
            Pool { recordings: &recordings, seconds: &seconds, draws: &draws, sub_bits: SUB_BITS };
        let [exclusive, total] = [Metric::EXCLUSIVE, Metric::TOTAL]
            .map(|metric| pool.estimates(0, true, &[metric])[0].value);
        assert!(exclusive.is_nan() && total > 0.0, "{exclusive} {total}");
    }
}
