//! The choice of calls that count.
//!
//! A filtered call is treated as if its function had not been selected for that call: its time
//! counts toward its caller. Depth and thread are known when a call begins. Its duration is known
//! only when it ends, which suffices, because no callee lasts longer than its caller.

use crate::glob::Glob;
use crate::goroutines::common_name;
use crate::units::{Nanos, Tid};

/// The user's filter; the default lets everything pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Timed calls shorter than this are filtered. A call of unknown duration stays.
    pub min_duration: Nanos,
    /// Calls with at least this many tracked frames above them are filtered.
    pub max_depth: Option<u32>,
    /// Only calls in these threads count. If empty, all threads count.
    pub threads: Vec<ThreadFilter>,
}

/// A choice of threads, as a user writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadFilter {
    Name(Glob),
    Tid(Tid),
}

impl ThreadFilter {
    /// Reads a number as a thread id, and any other text as a glob on names.
    pub fn new(text: &str) -> Self {
        match text.parse() {
            Ok(tid) => Self::Tid(Tid(tid)),
            Err(_) => Self::Name(Glob::new(text)),
        }
    }

    pub fn matches(&self, tid: Tid, name: &str) -> bool {
        match self {
            Self::Name(glob) => {
                glob.matches(name) || common_name(tid).is_some_and(|common| glob.matches(common))
            }
            Self::Tid(wanted) => *wanted == tid,
        }
    }
}

impl Filter {
    pub(crate) fn selects_thread(&self, tid: Tid, name: &str) -> bool {
        self.threads.is_empty() || self.threads.iter().any(|filter| filter.matches(tid, name))
    }

    /// `above`: the number of tracked frames that enclose the call.
    #[inline]
    pub(crate) fn selects_depth(&self, above: u32) -> bool {
        self.max_depth.is_none_or(|max| above < max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_chosen_by_name_and_by_id() {
        let check = |asked: &[&str], tid: u32, name: &str, expected: bool| {
            let threads = asked.iter().map(|text| ThreadFilter::new(text)).collect();
            let filter = Filter { threads, ..Filter::default() };
            assert_eq!(filter.selects_thread(Tid(tid), name), expected, "{asked:?} {tid} {name}");
        };
        check(&[], 7, "main", true);
        check(&["worker"], 7, "worker", true);
        check(&["worker"], 7, "worker-1", false);
        check(&["worker-*"], 7, "worker-1", true);
        check(&["worker-*"], 7, "main", false);
        check(&["worker-*", "main"], 7, "main", true);
        check(&["7"], 7, "main", true);
        check(&["7"], 8, "7", false);
        check(&[r"\7"], 8, "7", true);
        check(&["7*"], 8, "77", true);
        let goroutine = 1 << 30 | 17;
        check(&["goroutine"], goroutine, "goroutine 17", true);
        check(&["goroutine 17"], goroutine, "goroutine 17", true);
        check(&["goroutine 18"], goroutine, "goroutine 17", false);
        check(&["goroutine"], 17, "worker", false);
    }
}
