//! The intervals at which a session looks at its rings and its target when nothing calls it.

use std::time::Duration;

/// Pauses of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// The longest pause between passes over the rings.
    pub pass: Duration,
    /// The first and the longest pause between looks at new programs, libraries and threads of the
    /// target. Each look comes after a pass.
    pub look: (Duration, Duration),
    /// The number of looks for each one at the mappings.
    pub looks_per_maps: u32,
    /// True if nobody waits for the output: the reader sleeps until a ring fills.
    pub is_calm: bool,
}

impl Pace {
    /// For a user who waits for the output.
    pub(crate) const PROMPT: Self = Self {
        pass: Duration::from_millis(50),
        look: (Duration::from_millis(200), Duration::from_millis(200)),
        looks_per_maps: 5,
        is_calm: false,
    };

    /// Returns the pace of a session that goes on for weeks, among others like it.
    pub(crate) const fn calm(pass: Duration) -> Self {
        Self {
            pass,
            // Shorter than the longest pause between passes, or every other pass would come too
            // early.
            look: (Duration::from_millis(250), Duration::from_millis(6_000)),
            looks_per_maps: 1,
            is_calm: true,
        }
    }
}
