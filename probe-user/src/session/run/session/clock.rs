//! The processor time of the target, against which the cost of the probes is held.

use crate::{bpf::CpuClock, target::process::Process};
use ctrace_core::units::{Nanos, Pid};

pub(super) struct TargetClock {
    pid: Pid,
    /// Its children count, too.
    follows: bool,
    /// Of the process and its children, while those are followed.
    pub(super) counters: Option<CpuClock>,
}

impl TargetClock {
    pub(super) fn new(pid: Pid, follows: bool) -> Self {
        Self { pid, follows, counters: None }
    }

    pub(super) fn follows(&self) -> bool {
        self.follows
    }

    /// Of the target alone.
    pub(super) fn own_time(&self) -> Option<Nanos> {
        Process::cpu_time(self.pid.0)
    }

    /// Of all whose hits are counted.
    pub(super) fn time(&self) -> Option<Nanos> {
        match &self.counters {
            Some(counters) => counters.read().ok(),
            None if self.follows => None,
            None => self.own_time(),
        }
    }
}
