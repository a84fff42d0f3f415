//! Tells a function whose median rises or falls steadily within a side. Its stretches differ so much then
//! that nearly any change between the sides is noise.

use super::gather::Stretch;
use super::judge::Side;
use super::metric::Metric;
use super::model::{Compared, FunctionDiff};
use super::verdict::Verdict;
use crate::function::qualified;
use crate::report::render::human::{Digits, time};
use crate::stats::histogram::Histogram;
use crate::units::Nanos;

/// The parts of a side that are compared. Eight medians hardly are in order by chance: once in 20,160.
const PARTS: usize = 8;
/// The least number of calls in a part.
const LEAST_CALLS: u64 = 20;
/// The least factor between the first part and the last.
const LEAST_FACTOR: f64 = 1.25;
/// The functions that are named, at most.
const MOST: usize = 3;

/// Returns a sentence for each function that changes steadily within a side and is noise for that reason.
pub(super) fn notes(sides: &[Side; 2], functions: &[FunctionDiff], metric: Metric) -> Vec<String> {
    if metric.is_rate() {
        return Vec::new();
    }
    let is_noise = |compared: &Compared| compared.changes.of(metric).verdict == Verdict::Noise;
    let mut notes = Vec::new();
    for (slot, function) in functions.iter().enumerate().filter(|(_, it)| is_noise(&it.compared)) {
        for (side, name) in sides.iter().zip(["old", "new"]) {
            let Side::Recordings { recordings, .. } = side else { continue };
            let [stretches] = recordings.as_slice() else { continue };
            let Some((first, last)) = drift(stretches, slot) else { continue };
            let moves = if first < last { "rises" } else { "falls" };
            let label = qualified(function.kind, function.group.as_deref(), &function.name);
            notes.push(format!(
                "{label} {moves} steadily within {name}, from {} to {} (p50): compare parts with --time.",
                time(Nanos(first), Digits::Short),
                time(Nanos(last), Digits::Short),
            ));
        }
    }
    notes.truncate(MOST);
    notes
}

/// Returns the medians of the first part and of the last if all between are in order.
fn drift(stretches: &[Stretch], slot: usize) -> Option<(u64, u64)> {
    if stretches.len() < PARTS {
        return None;
    }
    let edge = |part: usize| stretches.len() * part / PARTS;
    let median = |part: usize| {
        let mut all = Histogram::default();
        let of_part = &stretches[edge(part)..edge(part + 1)];
        of_part.iter().for_each(|stretch| all.merge(&stretch.histograms[slot]));
        let calls: u64 = all.buckets().map(|(_, calls)| calls).sum();
        (calls >= LEAST_CALLS).then(|| all.at((calls - 1) / 2))?
    };
    let medians = (0..PARTS).map(median).collect::<Option<Vec<u64>>>()?;
    let (first, last) = (medians[0], medians[PARTS - 1]);
    let pairs = || medians.windows(2);
    let is_steady = pairs().all(|pair| pair[0] < pair[1]) || pairs().all(|pair| pair[0] > pair[1]);
    let factor = first.max(last) as f64 / first.min(last).max(1) as f64;
    (is_steady && factor >= LEAST_FACTOR).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns stretches with 30 calls of each of these durations.
    fn stretches(medians: impl Iterator<Item = u64>) -> Vec<Stretch> {
        let stretch = |median| {
            let mut stretch = Stretch::new(1);
            stretch.histograms[0] = Histogram::of([(median, 30)].into_iter());
            stretch
        };
        medians.map(stretch).collect()
    }

    #[test]
    fn what_rises_or_falls_all_the_time_drifts() {
        let rises = drift(&stretches((0..16).map(|n| 10_000 + 1_000 * n)), 0);
        assert!(rises.is_some_and(|(first, last)| first < last), "{rises:?}");
        let falls = drift(&stretches((0..48).map(|n| 90_000 - 1_000 * n)), 0);
        assert!(falls.is_some_and(|(first, last)| first > last), "{falls:?}");
        // One step, a change back, too small a change, and too few stretches.
        assert_eq!(
            drift(&stretches((0..16).map(|n| if n < 8 { 10_000 } else { 20_000 })), 0),
            None
        );
        assert_eq!(drift(&stretches((0..16).map(|n| 10_000 + 1_000 * (n % 12))), 0), None);
        assert_eq!(drift(&stretches((0..16).map(|n| 100_000 + 1_000 * n)), 0), None);
        assert_eq!(drift(&stretches((0..7).map(|n| 10_000 + 1_000 * n)), 0), None);
    }

    #[test]
    fn few_calls_are_no_drift() {
        let mut few = stretches((0..8).map(|n| 10_000 + 1_000 * n));
        assert!(drift(&few, 0).is_some());
        few[3].histograms[0] = Histogram::of([(13_000, 19)].into_iter());
        assert_eq!(drift(&few, 0), None);
    }
}
