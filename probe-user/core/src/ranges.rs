//! Ranges of addresses or times with a fast look-up, however many there are.

use std::ops::Range;

/// A union of ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// Sorted by begin, with gaps between them.
    apart: Vec<Range<u64>>,
}

impl Ranges {
    /// Makes the union.
    pub fn new(mut ranges: Vec<Range<u64>>) -> Self {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.dedup_by(|next, last| {
            let touches = next.start <= last.end;
            if touches {
                last.end = last.end.max(next.end);
            }
            touches
        });
        Self { apart: ranges }
    }

    /// Returns whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.apart.is_empty()
    }

    /// Returns the ranges in order, with gaps between them.
    pub fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.apart.iter().cloned()
    }

    /// Returns whether one of the ranges has a part of this one inside.
    pub(crate) fn overlap(&self, range: &Range<u64>) -> bool {
        let next = self.apart.partition_point(|apart| apart.end <= range.start);
        self.apart.get(next).is_some_and(|apart| apart.start < range.end)
    }

    /// Returns whether one of the ranges has this place.
    #[inline]
    pub fn contains(&self, place: u64) -> bool {
        let after = self.apart.partition_point(|range| range.start <= place);
        self.apart[..after].last().is_some_and(|range| place < range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_ranges_are_one() {
        let ranges = Ranges::new(vec![20..30, 5..6, 25..26, 28..40, 0..0, 40..41, 50..50]);
        assert_eq!(ranges.apart, [5..6, 20..41]);
        let inside: Vec<u64> = (0..60).filter(|at| ranges.contains(*at)).collect();
        assert_eq!(inside, (5..6).chain(20..41).collect::<Vec<_>>());
        let overlapped = |range: Range<u64>| ranges.overlap(&range);
        assert_eq!(
            [1..5, 5..6, 0..90, 6..20, 20..21, 40..50, 41..50].map(overlapped),
            [false, true, true, false, true, true, false]
        );
        assert!(Ranges::new(vec![7..7, 8..8]).is_empty());
    }
}
