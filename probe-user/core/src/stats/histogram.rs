//! A log-linear histogram of durations that keeps only the buckets it uses.
//!
//! An octave has 512 buckets, so the middle of a bucket is within 0.1 % of everything in it.
//! Durations arrive in bulk, when the spool is folded. So a sorted list of the used buckets
//! suffices. It takes 8 bytes per bucket, and thousands of functions fit in a few megabytes.

use crate::report::Distribution;
use crate::units::Nanos;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Buckets per octave, as a power of two.
pub(crate) const SUB_BITS: u32 = 9;
/// Values in the first two octaves' worth have a bucket each; every later octave adds 512.
const BUCKETS: usize = (64 - SUB_BITS as usize + 1) << SUB_BITS;
const COUNT_BITS: u32 = 48;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// In ascending order: a bucket's number, above `COUNT_BITS` bits of its count.
    used: Vec<u64>,
}

#[inline]
pub(crate) fn bucket_of(duration: u64) -> usize {
    log_bucket(duration, SUB_BITS)
}

/// Returns the least duration of a bucket, and the number of durations.
pub(crate) fn bounds_of(bucket: usize) -> (u64, u64) {
    log_bounds(bucket, SUB_BITS)
}

/// Returns the bucket of a duration if an octave has two to the power of `sub_bits` buckets. The
/// edges of a coarse scale are also edges of a finer one.
#[inline]
pub(crate) fn log_bucket(duration: u64, sub_bits: u32) -> usize {
    let bits = u64::BITS - duration.leading_zeros();
    let octave = bits.saturating_sub(sub_bits + 1);
    ((octave as usize) << sub_bits) + (duration >> octave) as usize
}

/// Returns the least duration of such a bucket, and the number of durations.
pub(crate) fn log_bounds(bucket: usize, sub_bits: u32) -> (u64, u64) {
    let octave = (bucket >> sub_bits).saturating_sub(1);
    (((bucket - (octave << sub_bits)) as u64) << octave, 1 << octave)
}

/// Returns the middle of a bucket.
pub(crate) fn value_of(bucket: usize) -> u64 {
    let (low, width) = bounds_of(bucket);
    low + (width >> 1)
}

impl Histogram {
    /// Returns the histogram of calls of these durations, ascending, with their numbers.
    pub(crate) fn of(calls: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut used: Vec<u64> = Vec::new();
        for (duration, count) in calls {
            let bucket = (bucket_of(duration) as u64) << COUNT_BITS;
            match used.last_mut() {
                Some(last) if *last & !COUNT_MASK == bucket => *last += count,
                _ => used.push(bucket | count),
            }
        }
        Self { used }
    }

    /// Returns a histogram of these buckets, ascending, on whatever scale they are.
    #[cfg(feature = "parquet")]
    pub(crate) fn of_buckets(buckets: impl Iterator<Item = (usize, u64)>) -> Self {
        let packed =
            |(bucket, count): (usize, u64)| (bucket as u64) << COUNT_BITS | count.min(COUNT_MASK);
        Self { used: buckets.map(packed).collect() }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if other.used.len() < self.used.len() / FEW {
            let new = self.add_known(&other.used);
            self.merge_all(&new);
        } else {
            self.merge_all(&other.used);
        }
    }

    /// Adds the counts of buckets that it has. Returns the others.
    fn add_known(&mut self, counts: &[u64]) -> Vec<u64> {
        let (mut new, mut rest) = (Vec::new(), self.used.as_mut_slice());
        for count in counts {
            let bucket = count & !COUNT_MASK;
            let place = rest.partition_point(|used| *used < bucket);
            rest = &mut rest[place..];
            match rest.first_mut() {
                Some(known) if *known & !COUNT_MASK == bucket => *known += count & COUNT_MASK,
                _ => new.push(*count),
            }
        }
        new
    }

    fn merge_all(&mut self, counts: &[u64]) {
        if counts.is_empty() {
            return;
        }
        let mut merged = Vec::with_capacity(self.used.len() + counts.len());
        let (mut a, mut b) = (self.used.as_slice(), counts);
        while let ([x, rest_a @ ..], [y, rest_b @ ..]) = (a, b) {
            match (x >> COUNT_BITS).cmp(&(y >> COUNT_BITS)) {
                Ordering::Less => {
                    merged.push(*x);
                    a = rest_a;
                }
                Ordering::Greater => {
                    merged.push(*y);
                    b = rest_b;
                }
                Ordering::Equal => {
                    merged.push(x + (y & COUNT_MASK));
                    (a, b) = (rest_a, rest_b);
                }
            }
        }
        merged.extend(a.iter().chain(b));
        merged.shrink_to_fit();
        self.used = merged;
    }

    /// Returns the histogram without the durations of an earlier one, which this one includes.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let mut before = earlier.used.iter().peekable();
        let used = self.used.iter().filter_map(|used| {
            let bucket = used >> COUNT_BITS;
            while before.next_if(|before| *before >> COUNT_BITS < bucket).is_some() {}
            let less = before.next_if(|before| *before >> COUNT_BITS == bucket);
            let left =
                (used & COUNT_MASK).saturating_sub(less.map_or(0, |before| before & COUNT_MASK));
            (left > 0).then_some(bucket << COUNT_BITS | left)
        });
        Self { used: used.collect() }
    }

    /// Returns bounds on the shortest and the longest duration of its calls.
    pub(crate) fn bounds(&self) -> Option<(u64, u64)> {
        let [first, last] = [self.used.first()?, self.used.last()?]
            .map(|used| bounds_of((used >> COUNT_BITS) as usize));
        Some((first.0, last.0.saturating_add(last.1 - 1)))
    }

    /// Returns durations within 0.1 %, ascending, and the number of calls of each.
    pub fn durations(&self) -> impl Iterator<Item = (Nanos, u64)> {
        self.buckets().map(|(bucket, count)| (Nanos(value_of(bucket)), count))
    }

    /// Returns the used buckets with their counts, ascending.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (usize, u64)> {
        self.used.iter().map(|used| ((used >> COUNT_BITS) as usize, used & COUNT_MASK))
    }

    /// Returns two to the power of `sub_bits` buckets per octave, from the first to the last with a
    /// call.
    pub(crate) fn distribution(&self, sub_bits: u32) -> Distribution {
        let mut counts = BTreeMap::<usize, u64>::new();
        for (bucket, count) in self.buckets() {
            *counts.entry(log_bucket(bounds_of(bucket).0, sub_bits)).or_default() += count;
        }
        let (Some((&first, _)), Some((&last, _))) =
            (counts.first_key_value(), counts.last_key_value())
        else {
            return Distribution::default();
        };
        let (from, width) = log_bounds(last, sub_bits);
        let edges = (first..=last).map(|bucket| log_bounds(bucket, sub_bits).0);
        Distribution {
            edges_ns: edges.chain([from.saturating_add(width)]).map(Nanos).collect(),
            counts: (first..=last).map(|b| counts.get(&b).copied().unwrap_or(0)).collect(),
        }
    }

    /// Returns the duration at `rank` (0 is the least), within 0.1 %.
    pub(crate) fn at(&self, rank: u64) -> Option<u64> {
        let mut seen = 0;
        self.used.iter().find_map(|used| {
            seen += used & COUNT_MASK;
            (seen > rank).then(|| value_of((used >> COUNT_BITS) as usize))
        })
    }
}

const OCTAVES: usize = BUCKETS >> SUB_BITS;
const OCTAVE: usize = 1 << SUB_BITS;
/// The number of blocks that are kept before they are added to the histograms: 4 MiB.
const BLOCKS: usize = 2048;
/// The same for counters of many durations: 16 MiB.
const MANY_BLOCKS: usize = 8192;
/// The number of durations that wait to be counted together.
const WAITING: usize = 2048;
/// Where buckets are so many times fewer than those that they are added to, each is looked up.
const FEW: usize = 16;

/// An octave of one histogram.
#[derive(Debug)]
struct Block {
    counts: [u32; OCTAVE],
    /// One bit for each bucket: set if its count is not 0.
    used: [u64; OCTAVE / 64],
}

/// Counts durations of many histograms at once, in dense arrays for the few octaves in use. It is
/// reused, because allocating its blocks anew would cost more than the few counts in them.
///
/// The counts of many histograms are in no cache. Durations wait and are counted together, in a loop in which
/// nothing else happens: then the processor fetches the next counts while it waits for one.
#[derive(Debug)]
pub(crate) struct HistogramCounter {
    /// Durations that are to be counted, each with the index of its histogram.
    waiting: Vec<(u32, u64)>,
    /// The number of blocks that it may have.
    most: usize,
    /// The number of the block of each histogram and octave, from 1; 0 for none.
    numbers: Vec<u32>,
    /// The blocks in use, followed by some that are all zero.
    blocks: Vec<Block>,
    /// The index in `numbers` of each block in use.
    places: Vec<usize>,
}

impl Default for HistogramCounter {
    fn default() -> Self {
        Self {
            waiting: Vec::new(),
            most: BLOCKS,
            numbers: Vec::new(),
            blocks: Vec::new(),
            places: Vec::new(),
        }
    }
}

impl HistogramCounter {
    /// Returns a counter for the durations of a whole recording.
    pub(crate) fn large() -> Self {
        Self { most: MANY_BLOCKS, ..Self::default() }
    }

    /// Counts durations, each in the histogram of its index.
    pub(crate) fn count(
        &mut self,
        histograms: &mut [Histogram],
        durations: impl Iterator<Item = (usize, u64)>,
    ) {
        for (histogram, duration) in durations {
            self.add(histograms, histogram, duration);
        }
        self.flush(histograms);
    }

    /// Counts one duration; it is in the histograms after a [`Self::flush`].
    #[inline]
    pub(crate) fn add(&mut self, histograms: &mut [Histogram], histogram: usize, duration: u64) {
        if self.waiting.len() == WAITING {
            self.count_waiting(histograms);
        }
        self.waiting.push((histogram as u32, duration));
    }

    #[inline(never)]
    fn count_waiting(&mut self, histograms: &mut [Histogram]) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for (histogram, duration) in waiting.drain(..) {
            let bucket = bucket_of(duration);
            let place = histogram as usize * OCTAVES + (bucket >> SUB_BITS);
            let number = match self.numbers.get(place) {
                Some(&number) if number > 0 => number,
                _ => self.open(histograms, place),
            };
            self.blocks[number as usize - 1].add(bucket % OCTAVE);
        }
        self.waiting = waiting;
    }

    #[cold]
    fn open(&mut self, histograms: &mut [Histogram], place: usize) -> u32 {
        self.numbers.resize(histograms.len() * OCTAVES, 0);
        if self.places.len() == self.most {
            self.empty(histograms);
        }
        self.places.push(place);
        if self.blocks.len() < self.places.len() {
            self.blocks.push(Block { counts: [0; OCTAVE], used: [0; OCTAVE / 64] });
        }
        self.numbers[place] = self.places.len() as u32;
        self.numbers[place]
    }

    /// Moves all counts to the histograms.
    pub(crate) fn flush(&mut self, histograms: &mut [Histogram]) {
        self.count_waiting(histograms);
        self.empty(histograms);
    }

    /// Moves the counts of all blocks to the histograms.
    fn empty(&mut self, histograms: &mut [Histogram]) {
        self.places.sort_unstable();
        for places in self.places.chunk_by(|a, b| a / OCTAVES == b / OCTAVES) {
            let mut used = Vec::new();
            for &place in places {
                let number = std::mem::take(&mut self.numbers[place]);
                self.blocks[number as usize - 1].take((place % OCTAVES) << SUB_BITS, &mut used);
            }
            histograms[places[0] / OCTAVES].merge(&Histogram { used });
        }
        self.places.clear();
    }
}

impl Block {
    /// The first count of a bucket alone looks at what tells which are used.
    #[inline]
    fn add(&mut self, bucket: usize) {
        let count = &mut self.counts[bucket];
        if *count == 0 {
            self.used[bucket / 64] |= 1 << (bucket % 64);
        }
        *count += 1;
    }

    /// Appends its counts to those of lower buckets; `first` is its first bucket.
    fn take(&mut self, first: usize, counts: &mut Vec<u64>) {
        for (word, used) in self.used.iter_mut().enumerate() {
            while *used != 0 {
                let bucket = word * 64 + used.trailing_zeros() as usize;
                *used &= *used - 1;
                let count = std::mem::take(&mut self.counts[bucket]);
                counts.push(((first + bucket) as u64) << COUNT_BITS | u64::from(count));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_is_within_a_thousandth() {
        assert!(BUCKETS <= usize::from(u16::MAX) + 1);
        let octaves = (0..64).flat_map(|bit| [1u64 << bit, (1u64 << bit) - 1, 0xabcd << bit >> 16]);
        for duration in octaves.chain([u64::MAX, 0, 1_023, 1_024, 1_025, 999_999_999]) {
            let bucket = bucket_of(duration);
            assert!(bucket < BUCKETS, "{duration}");
            let error = value_of(bucket).abs_diff(duration);
            assert!(error as f64 <= duration as f64 / 1_000.0, "{duration}: off by {error}");
        }
    }

    #[test]
    fn buckets_ascend_with_durations() {
        let mut durations = (0..63).flat_map(|b| [1u64 << b, 3 << b >> 1]).collect::<Vec<_>>();
        durations.sort_unstable();
        assert!(durations.windows(2).all(|w| bucket_of(w[0]) <= bucket_of(w[1])));
    }

    #[test]
    fn a_distribution_counts_the_same_in_few_buckets() {
        let mut histograms = vec![Histogram::default()];
        let durations = [7, 8, 15, 16, 17, 1 << 40, u64::MAX].map(|duration| (0, duration));
        HistogramCounter::default().count(&mut histograms, durations.into_iter());
        let octaves = histograms[0].distribution(0);
        let counts = octaves.edges_ns.iter().zip(&octaves.counts).filter(|(_, count)| **count > 0);
        let counts: Vec<_> = counts.map(|(edge, count)| (edge.0, *count)).collect();
        assert_eq!(counts, [(4, 1), (8, 2), (16, 2), (1 << 40, 1), (1 << 63, 1)]);
        assert_eq!(octaves.edges_ns.last(), Some(&Nanos::MAX));
        assert_eq!(histograms[0].distribution(3).coarser(0), octaves);
        assert_eq!(Histogram::default().distribution(3), Distribution::default());
    }

    #[test]
    fn merged_histograms_count_both() {
        let mut histograms = vec![Histogram::default(); 3];
        let durations = [(0, 1), (2, 5), (0, 5), (0, 5), (2, 6), (0, 700), (2, 1)];
        HistogramCounter::default().count(&mut histograms, durations.into_iter());
        let [mut merged, none, other] = <[Histogram; 3]>::try_from(histograms).expect("three");
        assert!(none.used.is_empty());
        merged.merge(&other);
        let sorted = (0..8).map(|rank| merged.at(rank)).collect::<Vec<_>>();
        let expected = [1, 1, 5, 5, 5, 6, 700].map(Some).into_iter().chain([None]);
        assert_eq!(sorted, expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_few_more_are_counted_in_buckets_that_are_there_and_in_others() {
        let count = |durations: &[u64]| {
            let mut counted = [Histogram::default()];
            let durations = durations.iter().map(|duration| (0, *duration));
            HistogramCounter::default().count(&mut counted, durations);
            let [counted] = counted;
            counted
        };
        let many: Vec<u64> = (0..200).map(|n| 10 + 3 * n).collect();
        let few = [4, 10, 11, 16, 16, 607, 5_000];
        assert!(few.len() < many.len() / FEW);
        let mut merged = count(&many);
        merged.merge(&count(&few));
        assert_eq!(merged, count(&[&many[..], &few].concat()));
    }

    #[test]
    fn more_than_there_is_room_for_is_counted_as_well() {
        let mut histograms = vec![Histogram::default(); BLOCKS];
        let mut counter = HistogramCounter::default();
        for round in 0..3 {
            let durations = (0..2 * BLOCKS).map(|i| (i % BLOCKS, 1 << (10 + round + i / BLOCKS)));
            counter.count(&mut histograms, durations);
        }
        let counts = [1, 2, 2, 1].iter().enumerate();
        let used: Vec<_> = counts
            .map(|(octave, count)| (bucket_of(1 << (10 + octave)) as u64) << COUNT_BITS | count)
            .collect();
        assert!(histograms.iter().all(|histogram| histogram.used == used));
    }
}
