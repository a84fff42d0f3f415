//! The durations of a function by stretch. Percentiles with any weight of each stretch take few
//! steps.

use crate::stats::histogram::{Histogram, log_bounds};

/// Cumulative calls for each used bucket and each stretch.
#[derive(Debug, Default)]
pub(crate) struct Ladder {
    buckets: Vec<usize>,
    /// Counts of all stretches for the first bucket, then for the next.
    up_to: Vec<f64>,
    stretches: usize,
    sub_bits: u32,
}

impl Ladder {
    /// `sub_bits`: the histograms' buckets per octave, as a power of two.
    pub(crate) fn new(histograms: &[&Histogram], sub_bits: u32) -> Self {
        let mut buckets: Vec<usize> =
            histograms.iter().flat_map(|histogram| histogram.buckets()).map(|(b, _)| b).collect();
        buckets.sort_unstable();
        buckets.dedup();
        let stretches = histograms.len();
        let mut up_to = vec![0.0; buckets.len() * stretches];
        for (stretch, histogram) in histograms.iter().enumerate() {
            let (mut used, mut sum) = (histogram.buckets().peekable(), 0.0);
            for (rung, &bucket) in buckets.iter().enumerate() {
                if let Some((_, count)) = used.next_if(|&(used, _)| used == bucket) {
                    sum += count as f64;
                }
                up_to[rung * stretches + stretch] = sum;
            }
        }
        Self { buckets, up_to, stretches, sub_bits }
    }

    /// Returns the calls in this bucket or below, each stretch weighted by `times`.
    fn calls(&self, rung: usize, times: &[f64]) -> f64 {
        let row = &self.up_to[rung * self.stretches..][..self.stretches];
        row.iter().zip(times).map(|(calls, times)| calls * times).sum()
    }

    /// Returns the duration that this share of the calls does not exceed; NaN if there are none.
    ///
    /// Calls are assumed even within their bucket, or within their nanosecond: with a ticking clock
    /// the percentile would otherwise stand still and then jump.
    pub(crate) fn quantile(&self, part: f64, times: &[f64]) -> f64 {
        let Some(top) = self.buckets.len().checked_sub(1) else { return f64::NAN };
        let all = self.calls(top, times);
        if all <= 0.0 {
            return f64::NAN;
        }
        let wanted = part * all;
        let (mut low, mut high) = (0, top);
        while low < high {
            let middle = (low + high) / 2;
            if self.calls(middle, times) < wanted {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let below = if low > 0 { self.calls(low - 1, times) } else { 0.0 };
        let inside = self.calls(low, times) - below;
        let (first, width) = log_bounds(self.buckets[low], self.sub_bits);
        let share = if inside > 0.0 { (wanted - below) / inside } else { 0.5 };
        (first as f64 - 0.5 + width as f64 * share).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::histogram::{HistogramCounter, SUB_BITS};

    #[test]
    fn percentiles_are_those_of_the_calls_drawn() {
        let mut histograms = vec![Histogram::default(); 3];
        let calls = [(0, 10), (0, 20), (0, 20), (1, 40), (1, 100_000)];
        HistogramCounter::default().count(&mut histograms, calls.into_iter());
        let ladder = Ladder::new(&histograms.iter().collect::<Vec<_>>(), SUB_BITS);
        let near = |part, times: [f64; 3], expected: f64| {
            let got = ladder.quantile(part, &times);
            assert!((got - expected).abs() <= 0.5 + expected / 1_000.0, "{got} for {expected}");
        };
        near(0.5, [1.0, 0.0, 0.0], 20.0);
        near(0.3, [1.0, 0.0, 0.0], 10.0);
        near(0.5, [1.0, 1.0, 0.0], 20.0);
        near(0.5, [1.0, 3.0, 7.0], 40.0);
        near(1.0, [1.0, 1.0, 1.0], 100_000.0);
        assert!(ladder.quantile(0.5, &[0.0, 0.0, 1.0]).is_nan());
        assert!(Ladder::default().quantile(0.5, &[]).is_nan());
    }
}
