//! Which calls count.
//!
//! A filtered call is treated as if its function had not been selected for that call: its time is
//! its caller's. Depth and thread are known when a call begins; its duration only when it ends,
//! which suffices, because no callee lasts longer than its caller.

use crate::units::{Nanos, Tid};

/// The user's filter; the default lets everything pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Timed calls shorter than this are filtered. A call whose duration is not known stays.
    pub min_duration: Nanos,
    /// Calls with this many tracked frames above them, or more, are filtered.
    pub max_depth: Option<u32>,
    /// Only calls in these threads; empty: in all.
    pub threads: Vec<ThreadFilter>,
}

/// A thread, as a user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadFilter {
    Name(String),
    Tid(Tid),
}

impl Filter {
    pub(crate) fn selects_thread(&self, tid: Tid, name: &str) -> bool {
        self.threads.is_empty()
            || self.threads.iter().any(|filter| match filter {
                ThreadFilter::Name(wanted) => wanted == name,
                ThreadFilter::Tid(wanted) => *wanted == tid,
            })
    }

    /// `above`: tracked frames that enclose the call.
    #[inline]
    pub(crate) fn selects_depth(&self, above: u32) -> bool {
        self.max_depth.is_none_or(|max| above < max)
    }
}
