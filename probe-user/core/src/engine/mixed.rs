//! The times at which a thread went on with a call on one stack while calls on another were open, as
//! fibers do. Calls that were open then are not inside each other, whatever their times and paths say.

use crate::units::ThreadId;
use std::collections::{HashMap, HashSet};

/// Limit of threads.
const MOST: usize = 65_536;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Mixed {
    /// The first and the last such time of each thread.
    threads: HashMap<ThreadId, (u64, u64)>,
    /// True if there were more threads: of those that are not known, nothing is known.
    more: bool,
}

impl Mixed {
    pub(crate) fn add(&mut self, thread: ThreadId, at: u64) {
        if self.threads.len() >= MOST && !self.threads.contains_key(&thread) {
            self.more = true;
            return;
        }
        let (_, last) = self.threads.entry(thread).or_insert((at, at));
        *last = at;
    }

    /// Returns true if a call of the thread may have been open at such a time.
    pub(crate) fn has(&self, thread: ThreadId, start: u64, end: u64) -> bool {
        let times = self.threads.get(&thread);
        times.map_or(self.more, |(first, last)| start <= *last && *first <= end)
    }

    /// Forgets all threads but these.
    pub(crate) fn keep(&mut self, threads: impl Iterator<Item = ThreadId>) {
        if !self.threads.is_empty() {
            let there: HashSet<_> = threads.collect();
            self.threads.retain(|thread, _| there.contains(thread));
        }
    }
}
