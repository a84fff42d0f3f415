//! Locks of the traced processes: who waits for them, and who holds them meanwhile.

use crate::locks::LockKind;
use crate::units::{Nanos, Pid};
use serde::Serialize;
use std::sync::Arc;

/// All locks that were used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LocksReport {
    /// The locks that were waited for longest come first.
    pub locks: Vec<LockReport>,
    /// The number of events of further locks, beyond those that can be told apart.
    pub other_events: u64,
    /// The stretches of the trace in which calls may be missing. A hold that reaches into one of them is
    /// counted as unknown.
    pub lossy_stretches: u64,
    /// Calls that had not got their lock in the end, and of whose lock nothing is known.
    pub unknown_open_waits: u64,
}

/// A lock, by its address in a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockReport {
    /// Its symbol, or its address.
    pub name: Arc<str>,
    pub address: String,
    pub pid: Option<Pid>,
    pub kind: LockKind,
    /// A thread can take it again while it holds it.
    pub recursive: bool,
    /// Calls that got the lock, without nested ones.
    pub acquisitions: u64,
    /// Acquisitions for reading.
    pub shared: u64,
    /// Acquisitions by a thread that held the lock already. They are part of its hold.
    pub nested: u64,
    /// Tries that found the lock taken. They are no waits.
    pub refused: u64,
    /// Calls whose time was up before they got the lock.
    pub timed_out: u64,
    /// Calls that failed for other reasons.
    pub failed: u64,
    /// Calls of which it is not known whether they got the lock.
    pub unclear: u64,
    /// Calls during which another thread was seen to hold the lock.
    pub contended: u64,
    /// Durations of the contended calls.
    pub wait_ns: Nanos,
    pub wait_mean_ns: Option<Nanos>,
    pub wait_p99_ns: Option<Nanos>,
    pub wait_max_ns: Option<Nanos>,
    /// Calls that had not got the lock in the end, and how long the longest had waited by then. These
    /// times are in no number of this lock but `blocked_ns` and those of callers. Of a call whose thread
    /// has ended the time is not known.
    pub open_waits: u64,
    pub open_wait_max_ns: Option<Nanos>,
    /// Durations of the others. Mostly they are the time of the probes.
    pub uncontended_ns: Nanos,
    pub uncontended_max_ns: Option<Nanos>,
    /// Waits for a condition with this lock. These times are in no other number.
    pub conditions: u64,
    pub conditions_ns: Nanos,
    /// Holds whose beginning and end were seen.
    pub holds: u64,
    pub hold_ns: Nanos,
    pub hold_mean_ns: Option<Nanos>,
    pub hold_max_ns: Option<Nanos>,
    /// Holds whose beginning or end was not seen for sure. They are in no other number.
    pub unknown_holds: u64,
    /// Holds that have not ended.
    pub open_holds: u64,
    /// The part of all waits in which a thread was seen to hold the lock. A time in which several held
    /// it for reading counts for each.
    pub blocked_ns: Nanos,
    /// Calls during which more holds ended than a lock remembers: the earlier holders are not blamed. One
    /// in which no other thread is known to have held the lock is not counted as contended.
    pub partly_blamed: u64,
    /// Up to ten callers that waited longest, and up to ten that kept others waiting longest.
    pub callers: Vec<LockCallerReport>,
}

/// A place that takes a lock: the traced function around it, or else the function that calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LockCallerReport {
    pub name: Arc<str>,
    /// Its contended calls and those that have not ended, and their time.
    pub waits: u64,
    pub wait_ns: Nanos,
    /// Waits of others during which it held the lock, and the time of its holds in them.
    pub blocked: u64,
    pub blocked_ns: Nanos,
}

impl LockReport {
    /// Returns the caller that waited longest.
    pub fn waiter(&self) -> Option<&LockCallerReport> {
        longest(&self.callers, |caller| caller.wait_ns)
    }

    /// Returns the caller that held the lock longest while others waited.
    pub fn holder(&self) -> Option<&LockCallerReport> {
        longest(&self.callers, |caller| caller.blocked_ns)
    }
}

/// Returns the first of those with the longest time, if that is any.
fn longest(
    callers: &[LockCallerReport],
    time: impl Fn(&LockCallerReport) -> Nanos,
) -> Option<&LockCallerReport> {
    // `max_by_key` would return the last of equal ones.
    let found = callers.iter().rev().max_by_key(|caller| time(caller));
    found.filter(|caller| time(caller) > Nanos::ZERO)
}
