//! Draws stretches for the bootstrap: the same for every function, and in every run of ctrace.
//!
//! Stretches are drawn not one by one but in runs of neighbours (the circular block bootstrap of
//! Politis and Romano), so that lasting states of the machine vary as in another recording. Short
//! runs underestimate the variance by an amount inversely proportional to their length. So two
//! lengths are drawn, one twice the other, and their difference is added once more.

use std::ops::Range;

/// The number of draws of each length: enough for a variance within some percent.
pub(crate) const ROUNDS: usize = 200;
/// The number of long runs in a recording.
const RUNS: usize = 12;

/// The number of draws of each stretch of each recording of a side.
#[derive(Clone, Debug)]
pub(crate) struct Draws {
    /// By round and stretch, with all recordings in sequence: in long runs, and in runs half as
    /// long.
    pub(crate) long: Vec<Vec<f64>>,
    pub(crate) short: Vec<Vec<f64>>,
    /// The number of long runs in the recordings, less one for each recording.
    pub(crate) freedom: f64,
    /// Factors that correct the variance: each draw varies around its own mean.
    correction: [f64; 2],
    /// The range of stretches of each recording.
    pub(crate) recordings: Vec<Range<usize>>,
}

/// Returns the number of neighbours in a short run.
fn run_length(stretches: usize) -> usize {
    (stretches / (2 * RUNS)).max(1)
}

impl Draws {
    /// Draws runs. `recordings` holds the number of stretches of each.
    pub(crate) fn new(recordings: &[usize], seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut rounds = |times: usize| {
            let round = |_| {
                let each = recordings.iter().map(|&n| draw(n, times * run_length(n), &mut random));
                each.collect::<Vec<_>>().concat()
            };
            (0..ROUNDS).map(round).collect::<Vec<_>>()
        };
        let (long, short) = (rounds(2), rounds(1));
        let runs = |times: usize| {
            let each = recordings.iter().map(|&n| n as f64 / (times * run_length(n)) as f64);
            each.fold((0.0, 0.0), |(all, free), n| (all + n, free + (n - 1.0).max(0.0)))
        };
        let correction = [2, 1].map(|times| {
            let (all, freedom) = runs(times);
            if freedom > 0.0 { all / freedom } else { f64::NAN }
        });
        let mut first = 0;
        let recordings = recordings.iter().map(|n| {
            first += n;
            first - n..first
        });
        let recordings = recordings.collect();
        Self { long, short, freedom: runs(2).1, correction, recordings }
    }

    /// Returns the variance of a number, from its values in the rounds.
    pub(crate) fn variance(&self, long: &[f64], short: &[f64]) -> f64 {
        let long = variance(long) * self.correction[0];
        let short = variance(short) * self.correction[1];
        long.max(2.0 * long - short)
    }
}

/// Returns the population variance.
pub(crate) fn variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
}

fn draw(stretches: usize, length: usize, random: &mut Random) -> Vec<f64> {
    let mut drawn = vec![0.0; stretches];
    let mut left = stretches;
    while left > 0 {
        let first = random.below(stretches);
        for place in 0..length.min(left) {
            drawn[(first + place) % stretches] += 1.0;
        }
        left = left.saturating_sub(length);
    }
    drawn
}

/// The random number generator xorshift64*.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_draws_as_many_as_there_are_from_each_recording() {
        let draws = Draws::new(&[48, 1, 9], 0);
        assert_eq!((draws.long.len(), draws.short.len()), (ROUNDS, ROUNDS));
        assert_eq!(draws.recordings, [0..48, 48..49, 49..58]);
        for round in draws.long.iter().chain(&draws.short) {
            let sums = draws.recordings.iter().map(|part| round[part.clone()].iter().sum::<f64>());
            assert_eq!(sums.collect::<Vec<_>>(), [48.0, 1.0, 9.0]);
        }
        assert_eq!(draws.freedom, 11.0 + 0.0 + 3.5);
        assert_eq!(Draws::new(&[48, 1, 9], 0).long, draws.long);
        assert_ne!(Draws::new(&[48, 1, 9], 1).long, draws.long);
    }

    #[test]
    fn every_stretch_is_drawn_as_often() {
        let draws = Draws::new(&[20], 3);
        let sums = (0..20).map(|at| draws.short.iter().map(|round| round[at]).sum::<f64>());
        for sum in sums {
            assert!((sum / ROUNDS as f64 - 1.0).abs() < 0.3, "{sum}");
        }
    }

    /// The mean's stretches vary by 1 and inherit 0.6 of the one before: 4 / 480.
    #[test]
    fn the_variance_of_what_lasts_is_found() {
        let (mut random, mut mood) = (Random::new(5), 0.0);
        let series: Vec<f64> = (0..480)
            .map(|_| {
                let fresh = (random.next() >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
                mood = 0.6 * mood + fresh * (12.0 * 0.64_f64).sqrt();
                mood
            })
            .collect();
        let draws = Draws::new(&[480], 0);
        let means = |rounds: &[Vec<f64>]| -> Vec<f64> {
            let sum = |times: &Vec<f64>| times.iter().zip(&series).map(|(t, x)| t * x).sum::<f64>();
            rounds.iter().map(|times| sum(times) / 480.0).collect()
        };
        let found = draws.variance(&means(&draws.long), &means(&draws.short)) * 480.0;
        assert!((2.5..6.0).contains(&found), "{found}");
    }
}
