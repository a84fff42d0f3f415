//! The reasons why entries of the marker sections are left out, for people.

use std::collections::BTreeMap;
use std::fmt;

/// A flaw of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Flaw {
    /// The section is incomplete or not where its header says.
    Section,
    Version,
    /// A name, file or group that is not in the file, or has no end.
    Text,
    /// A list of values that no runtime writes.
    Values,
    Semaphore,
    SemaphoreWithoutBytes,
    Point,
    TooMany,
    /// A bad entry about a runtime.
    Runtime,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Section => "the section is damaged: build the program again",
            Self::Version => "of another format than this ctrace knows: use a ctrace as new as it",
            Self::Text => "a text is damaged: build the program again",
            Self::Values => {
                "the list of its values cannot be read: names must differ, and names and units have \
                 none of the characters ,:[]"
            }
            Self::Semaphore => "the semaphore is not in writable data: build the program again",
            Self::SemaphoreWithoutBytes => {
                "the semaphore has no bytes in the file: link the section .probes as data, not as \
                 .bss"
            }
            Self::Point => "the control point is no nop in code: build the program again",
            Self::TooMany => "more than ctrace reads",
            Self::Runtime => "of the runtime, not what it should be: build the program again",
        })
    }
}

/// The number of entries with each flaw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flaws {
    counts: BTreeMap<Flaw, usize>,
}

impl Flaws {
    pub(super) fn add(&mut self, flaw: Flaw) {
        *self.counts.entry(flaw).or_default() += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

#[cfg(test)]
impl Flaws {
    pub(super) fn count(&self, flaw: Flaw) -> usize {
        self.counts.get(&flaw).copied().unwrap_or(0)
    }

    pub(super) fn total(&self) -> usize {
        self.counts.values().sum()
    }
}

/// Writes one line: `3 left out (REASON), 1 left out (REASON)`.
impl fmt::Display for Flaws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (flaw, count)) in self.counts.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(f, "{comma}{count} left out ({flaw})")?;
        }
        Ok(())
    }
}
