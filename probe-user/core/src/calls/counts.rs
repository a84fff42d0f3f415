//! A function's counts other than those of its calls.

/// Counts of one function that belong to no path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FunctionCounts {
    pub(crate) headless: u64,
    pub(crate) threads: u64,
    /// True if its calls are waits.
    pub(crate) is_wait: bool,
}

impl FunctionCounts {
    /// Begins a new period.
    pub(crate) fn reset(&mut self) {
        (self.headless, self.threads) = (0, 0);
    }
}
