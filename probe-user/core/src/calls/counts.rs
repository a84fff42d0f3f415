//! A function's counts other than those of its calls.

use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Counts of one function that belong to no path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FunctionCounts {
    pub(crate) headless: u64,
    pub(crate) threads: u64,
    /// Calls inside its own that are left out, because they are too deep.
    pub(crate) callees_left_out: u64,
    pub(crate) restored: RestoredTimes,
    pub(crate) work: WorkOfThreads,
}

impl FunctionCounts {
    /// Returns the part of its self time that is certainly no work, because the threads that finished calls of
    /// it worked less, in all their lives. Nothing if the work of one of them is not known.
    pub(crate) fn idle(&self, self_ns: Nanos) -> Nanos {
        let WorkOfThreads { threads, most } = self.work;
        let is_known = threads > 0 && threads == self.threads;
        if is_known { self_ns.since(most) } else { Nanos::ZERO }
    }
}

/// The work of the threads that finished calls of a function, as far as it is known: for how long they had a
/// processor or waited for one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkOfThreads {
    /// The number of threads of which it is known.
    threads: u64,
    /// The most that it may be of these together.
    most: Nanos,
}

impl WorkOfThreads {
    /// Adds another thread.
    pub(crate) fn add(&mut self, most: Nanos) {
        self.threads = self.threads.saturating_add(1);
        self.most = self.most.saturating_add(most);
    }
}

/// Calls `each` with the place of each bit that is set.
pub(crate) fn each_bit(words: &[u64], mut each: impl FnMut(usize)) {
    for (word, bits) in words.iter().enumerate() {
        let mut bits = *bits;
        while bits != 0 {
            each(64 * word + bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }
}

/// Calls of a function in which return addresses were put back. How long that took is not known: it is a part
/// of the time from then on until the thread went on with something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredTimes {
    /// The number of times that a call of it was open.
    pub calls: u64,
    /// The part of its total that may be the time for this.
    pub total_ns: Nanos,
    /// The part of its self time that may be.
    pub self_ns: Nanos,
}

impl RestoredTimes {
    pub(crate) fn is_none(&self) -> bool {
        self.calls == 0
    }

    /// Adds those of another stretch of time.
    pub fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            total_ns: self.total_ns.saturating_add(other.total_ns),
            self_ns: self.self_ns.saturating_add(other.self_ns),
        }
    }

    /// Takes away an earlier stretch with which this one begins.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(earlier.calls),
            total_ns: self.total_ns.since(earlier.total_ns),
            self_ns: self.self_ns.since(earlier.self_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn self_time_beyond_the_work_of_all_threads_is_idle() {
        let mut counts = FunctionCounts { threads: 2, ..FunctionCounts::default() };
        let idle = |counts: &FunctionCounts, own| counts.idle(Nanos(own)).0;
        let nothing = FunctionCounts::default();
        assert_eq!(idle(&nothing, 1_000), 0, "no thread is known");
        counts.work.add(Nanos(300));
        assert_eq!(idle(&counts, 1_000), 0, "the other thread may have worked all the time");
        counts.work.add(Nanos(200));
        assert_eq!([1_000, 501, 500, 0].map(|own| idle(&counts, own)), [500, 1, 0, 0]);
        counts.work.add(Nanos(u64::MAX));
        counts.threads = 3;
        assert_eq!(idle(&counts, u64::MAX), 0);
    }

    #[test]
    fn bits_are_found_in_all_words() {
        let mut found = Vec::new();
        each_bit(&[1 << 63 | 1, 0, 6], |bit| found.push(bit));
        assert_eq!(found, [0, 63, 129, 130]);
    }
}
