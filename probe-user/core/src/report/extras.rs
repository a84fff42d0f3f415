//! What a report holds besides its sums. It costs time, memory and text, so a view asks for it.

/// What is asked for; the default is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extras {
    /// Distribution of each function's durations, and how it changes over time.
    pub histograms: bool,
    /// Distribution of each path's durations.
    pub path_histograms: bool,
    /// How long each function's calls took, as finely as is known, and nothing on time: cheaper.
    pub latencies: bool,
    /// So many of the slowest calls, and what was inside them. Not from an engine, which does not keep them all.
    pub slowest_calls: Option<usize>,
    /// What ran when in so many threads; neither.
    pub timeline_lanes: Option<usize>,
    /// Into how many slices time is cut.
    pub slices: usize,
}

impl Extras {
    /// Slices, unless the reader's screen says otherwise.
    pub const SLICES: usize = 60;
}

impl Default for Extras {
    fn default() -> Self {
        Self {
            histograms: false,
            path_histograms: false,
            latencies: false,
            slowest_calls: None,
            timeline_lanes: None,
            slices: Self::SLICES,
        }
    }
}
