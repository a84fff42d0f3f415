//! The record of how the launched command was held at the start of each program that it executed.

use crate::ui::text::units::counted;
use ctrace_core::units::Nanos;

pub(super) struct Holding {
    /// The number of programs that the command began without being held, besides the first one.
    pub(super) unheld: Option<u64>,
    /// The last time at which a held process went on.
    pub(super) released: Nanos,
    /// The time at which a look found the process held, before the record that tells it.
    pub(super) found: Option<Nanos>,
    /// From this time on new programs of the command start at once.
    pub(super) until: Nanos,
}

impl Default for Holding {
    fn default() -> Self {
        Self { unheld: None, released: Nanos::ZERO, found: None, until: Nanos::MAX }
    }
}

impl Holding {
    /// Returns a note if programs of the command began without being held.
    pub(super) fn note(&self) -> Option<String> {
        let count = self.unheld.filter(|count| *count > 0)?;
        let programs = counted(count, "program", "programs");
        Some(format!(
            "the command was not held at the start of {programs} that it executed, because ctrace was \
             not running then, waited for its output, or another process continued it (SIGCONT): their first \
             calls may not be counted, unless they were traced already"
        ))
    }
}
