//! Changes in processes: forks, execs, ends, new names, new marker buffers.

use crate::units::{Nanos, Pid, Tid};
use ctrace_common::Change;

/// A change in a process, with its time and thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessEvent {
    pub time: Nanos,
    pub pid: Pid,
    pub tid: Tid,
    /// The number of events of the thread that were lost before it.
    pub lost_before: u16,
    pub change: Change,
}
