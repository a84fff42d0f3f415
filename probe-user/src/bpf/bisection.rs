//! How many of a list of places the kernel is asked for at a time, where it takes all of them or none and
//! does not say which one it refuses.
//!
//! The parts grow as long as they are quick, because one link costs the same for a place and for
//! thousands. A refused part is halved until the place to blame is found, and the next parts are about
//! as long as it went well before.

use std::{ops::Range, time::Duration};

/// A part that took longer is followed by no longer one.
const QUICK: Duration = Duration::from_millis(200);
/// A part that took longer is followed by a shorter one.
const SLOW: Duration = Duration::from_millis(800);
const GROWTH: usize = 4;
/// The kernel takes more, but is not interrupted either.
const LARGEST: usize = 1 << 16;
/// Where one place was refused, there are often more.
const GROWTH_AFTER_REFUSAL: usize = 2;

#[derive(Debug)]
pub(super) struct Bisection {
    total: usize,
    /// The first place that nothing is known of.
    next: usize,
    /// The first place after the last one that was refused.
    since: usize,
    /// From `next` to here is a place to blame.
    blamed: Option<usize>,
    size: usize,
}

impl Bisection {
    pub(super) const fn new(total: usize) -> Self {
        Self { total, next: 0, since: 0, blamed: None, size: 1 }
    }

    /// So many places, from the first one on, were accepted or refused.
    pub(super) const fn done(&self) -> usize {
        self.next
    }

    /// The places to ask for.
    pub(super) fn next(&self) -> Option<Range<usize>> {
        let left = self.blamed.map_or(self.total - self.next, |end| (end - self.next) / 2);
        (left > 0).then(|| self.next..self.next + left.min(self.size))
    }

    /// The kernel took that part. Returns the place that is to blame for an earlier refusal, once it is known.
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

    /// The kernel refused that part. Returns the place that is to blame, if it is known.
    pub(super) fn refused(&mut self, part: &Range<usize>) -> Option<usize> {
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

    /// What is refused, and how many parts it took, where each place takes so long.
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

    /// Each place takes long where many processes map the file.
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
