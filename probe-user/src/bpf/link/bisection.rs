//! Splits a list of places into requests to the kernel, which accepts a request as a whole or
//! refuses it without naming the bad place.
//!
//! The parts grow while they are quick, because a link costs the same for one place as for
//! thousands. A refused part is halved until the bad place is found. The next parts have about the
//! last good size.

use std::{ops::Range, time::Duration};

/// After a slower part, parts do not grow.
const QUICK: Duration = Duration::from_millis(200);
/// After a slower part, parts shrink.
const SLOW: Duration = Duration::from_millis(800);
const GROWTH: usize = 4;
/// The kernel accepts larger parts, but they cannot be interrupted.
const LARGEST: usize = 1 << 16;
/// Refused places are often close together.
const GROWTH_AFTER_REFUSAL: usize = 2;

#[derive(Debug)]
pub(super) struct Bisection {
    total: usize,
    /// The first place whose state is unknown.
    next: usize,
    /// The place after the last refused one.
    since: usize,
    /// The end of the range from `next` that contains a refused place.
    blamed: Option<usize>,
    size: usize,
}

impl Bisection {
    pub(crate) const fn new(total: usize) -> Self {
        Self { total, next: 0, since: 0, blamed: None, size: 1 }
    }

    /// Returns the number of places, from the first on, that were accepted or refused.
    pub(crate) const fn done(&self) -> usize {
        self.next
    }

    /// Returns the next places to ask for.
    pub(crate) fn next(&self) -> Option<Range<usize>> {
        let left = self.blamed.map_or(self.total - self.next, |end| (end - self.next) / 2);
        (left > 0).then(|| self.next..self.next + left.min(self.size))
    }

    /// Records an accepted part. Returns the refused place of an earlier part, once known.
    pub(super) fn accepted(&mut self, part: &Range<usize>, took: Duration) -> Option<usize> {
        self.next = part.end;
        self.size = match () {
            () if took > SLOW => (self.size / 2).max(1),
            () if took > QUICK => self.size,
            () if self.since > 0 => self.size * GROWTH_AFTER_REFUSAL,
            () => self.size * GROWTH,
        }
        .min(LARGEST);
        self.found()
    }

    /// Records that the kernel refused a part. Returns the refused place, if it is known.
    pub(crate) fn refused(&mut self, part: &Range<usize>) -> Option<usize> {
        self.blamed = Some(part.end);
        self.found()
    }

    fn found(&mut self) -> Option<usize> {
        let found = self.next;
        if self.blamed != Some(found + 1) {
            return None;
        }
        self.blamed = None;
        self.size = (found - self.since).max(1);
        self.next = found + 1;
        self.since = self.next;
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Returns the refused places and the number of parts, where each place takes this long.
    fn ask(total: usize, bad: &[usize], each: Duration) -> (Vec<usize>, usize) {
        let bad: BTreeSet<usize> = bad.iter().copied().collect();
        let (mut parts, mut refused, mut asked) = (Bisection::new(total), Vec::new(), 0);
        while let Some(part) = parts.next() {
            asked += 1;
            let before = parts.done();
            assert!(part.start == before && part.end > before && part.end <= total);
            let found = match bad.range(part.clone()).next() {
                Some(_) => parts.refused(&part),
                None => parts.accepted(&part, each * part.len() as u32),
            };
            refused.extend(found);
        }
        assert_eq!(parts.done(), total);
        (refused, asked)
    }

    const AT_ONCE: Duration = Duration::ZERO;

    #[test]
    fn what_is_taken_takes_few_parts() {
        assert_eq!(ask(0, &[], AT_ONCE), (vec![], 0));
        assert_eq!(ask(1, &[], AT_ONCE), (vec![], 1));
        // 1, 4, 16, ...
        assert_eq!(ask(20_000, &[], AT_ONCE), (vec![], 8));
        assert_eq!(ask(LARGEST * 20, &[], AT_ONCE), (vec![], 8 + 20));
    }

    #[test]
    fn exactly_the_bad_ones_are_found() {
        for bad in [&[0][..], &[4], &[0, 1, 2, 3, 4], &[1, 3], &[99], &[98, 99], &[17, 18, 60]] {
            assert_eq!(ask(100, bad, AT_ONCE).0, bad);
        }
        let every: Vec<usize> = (0..100).collect();
        assert_eq!(ask(100, &every, AT_ONCE), (every.clone(), 100));
    }

    #[test]
    fn each_bad_one_takes_a_few_more_parts() {
        let thousandth: Vec<usize> = (0..20_000).step_by(1000).collect();
        let (found, asked) = ask(20_000, &thousandth, AT_ONCE);
        assert_eq!(found, thousandth);
        assert!(asked < 20 * 16, "{asked}");
        let third: Vec<usize> = (0..900).step_by(3).collect();
        let (found, asked) = ask(900, &third, AT_ONCE);
        assert_eq!(found, third);
        assert!(asked < 300 * 5, "{asked}");
    }

    /// Each place is slow where many processes map the file.
    #[test]
    fn slow_parts_stay_short() {
        let mut parts = Bisection::new(1000);
        for _ in 0..4 {
            let part = parts.next().unwrap();
            assert_eq!(part.len(), 1);
            parts.accepted(&part, SLOW * 2);
        }
        let part = parts.next().unwrap();
        parts.accepted(&part, QUICK);
        assert_eq!(parts.next().unwrap().len(), GROWTH);
    }
}
