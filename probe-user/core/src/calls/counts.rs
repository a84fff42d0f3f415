//! A function's counts other than those of its calls.

/// Counts of one function that belong to no path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FunctionCounts {
    pub(crate) headless: u64,
    pub(crate) threads: u64,
    /// Calls inside its own that are left out, because they are too deep.
    pub(crate) callees_left_out: u64,
}
