//! The number of calls of a row that has no [`super::Summary`]: of a path, of a thread, of the paths
//! beyond the bound.
//!
//! A report has thousands of such rows, with two or three sums each. So their times are added where
//! the rows are, but what happens to a call that is open between two stretches is said once, here.

/// The number of calls over a stretch of time. A call that is open at the end of the stretch belongs
/// to the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallCount {
    /// All calls, including those that are open.
    pub(crate) calls: u64,
    pub(crate) open: u64,
}

impl CallCount {
    fn ended(self) -> u64 {
        self.calls.saturating_sub(self.open)
    }

    /// Adds the following stretch.
    #[must_use]
    pub(crate) fn add(self, later: Self) -> Self {
        Self { calls: self.ended().saturating_add(later.calls), open: later.open }
    }

    /// Removes an earlier stretch with which this one begins. Calls that were open at its end stay.
    #[must_use]
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self { calls: self.calls.saturating_sub(earlier.ended()), open: self.open }
    }
}
