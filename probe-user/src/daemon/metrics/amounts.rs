//! Sums that are kept together, by their place in a table of the catalogue.
//!
//! These are no `stats::Summary`: what was shown must never go down, although a look at a running
//! interval may overestimate, and the catalogue, not a report, says which numbers there are.

/// Saturates, so that absurd times cannot wrap into plausible ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Amounts<const N: usize>(pub(super) [u64; N]);

impl<const N: usize> Default for Amounts<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Amounts<N> {
    pub(super) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, other)| *mine = mine.saturating_add(other));
    }

    /// Raises each sum to the other's, if that is larger.
    pub(super) fn raise(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, other)| *mine = other.max(*mine));
    }
}

/// Published sums, which must not decrease. A look may overestimate: it takes a call to run until
/// the look, but the call may have died before.
#[derive(Clone, Debug, Default)]
pub(super) struct Rising<const N: usize> {
    pub(super) ended: Amounts<N>,
    shown: Amounts<N>,
}

impl<const N: usize> Rising<N> {
    /// Returns the sums to publish, including those of the current intervals.
    pub(super) fn show<'a>(&mut self, present: impl Iterator<Item = &'a Amounts<N>>) -> Amounts<N> {
        let mut now = self.ended;
        present.for_each(|present| now.add(present));
        self.shown.raise(&now);
        self.shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_shown_is_not_taken_back() {
        let mut sums = Rising::default();
        sums.ended.add(&Amounts([5, 1]));
        assert_eq!(sums.show([Amounts([2, 7])].iter()).0, [7, 8]);
        sums.ended.add(&Amounts([1, 9]));
        assert_eq!(sums.show([].iter()).0, [7, 10]);
        sums.ended.add(&Amounts([4, u64::MAX]));
        assert_eq!(sums.show([].iter()).0, [10, u64::MAX]);
    }
}
