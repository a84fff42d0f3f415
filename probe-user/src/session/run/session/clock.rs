//! The CPU time of the target, with which the cost of the probes is compared.

use crate::{bpf::CpuClock, target::process::Process};
use ctrace_core::units::{Nanos, Pid};

pub(super) struct TargetClock {
    pid: Pid,
    /// The CPU time of its children counts, too.
    follows: bool,
    /// Counters of the process and its children, while those are followed.
    pub(super) counters: Option<CpuClock>,
}

impl TargetClock {
    pub(super) fn new(pid: Pid, follows: bool) -> Self {
        Self { pid, follows, counters: None }
    }

    pub(super) fn follows(&self) -> bool {
        self.follows
    }

    /// Returns the CPU time of the target process alone.
    pub(super) fn own_time(&self) -> Option<Nanos> {
        Process::cpu_time(self.pid.0)
    }

    /// Returns the CPU time of all processes whose hits are counted.
    pub(super) fn time(&self) -> Option<Nanos> {
        match &self.counters {
            Some(counters) => counters.read().ok(),
            None if self.follows => None,
            None => self.own_time(),
        }
    }
}
