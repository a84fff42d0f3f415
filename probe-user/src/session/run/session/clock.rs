//! The CPU time of the target, with which the cost of the probes is compared.

use super::{joined_clocks::JoinedClocks, queue_times::ThreadQueues, times_by_kind::TimesByKind};
use crate::{
    bpf::CpuClock,
    target::process::{Process, cpu_times::CpuTimes},
};
use ctrace_core::{
    report::ProcessorTimes,
    units::{Nanos, Pid},
};
use std::cell::RefCell;

pub(super) struct TargetClock {
    pid: Pid,
    /// The CPU time of its children counts, too.
    follows: bool,
    /// Counters of the process and its children, while those are followed.
    pub(super) counters: Option<CpuClock>,
    pub(super) joined: JoinedClocks,
    by_kind: RefCell<TimesByKind>,
    queues: RefCell<ThreadQueues>,
}

impl TargetClock {
    pub(super) fn new(pid: Pid, follows: bool) -> Self {
        Self {
            pid,
            follows,
            counters: None,
            joined: JoinedClocks::default(),
            by_kind: RefCell::default(),
            queues: RefCell::default(),
        }
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
            Some(counters) => self.counted(counters),
            None if self.follows => None,
            None => self.own_time(),
        }
    }

    fn counted(&self, counters: &CpuClock) -> Option<Nanos> {
        Some(counters.read().ok()?.saturating_add(self.joined.read()))
    }

    /// Looks how long threads of these processes had a processor and waited for one, unless it did so a
    /// moment ago.
    pub(super) fn look_at_queues(&self, readable: impl FnOnce() -> Vec<Pid>) {
        self.queues.borrow_mut().update(readable);
    }

    /// Does so for the last time.
    pub(super) fn end_queues(&self, readable: impl FnOnce() -> Vec<Pid>) {
        self.queues.borrow_mut().finish(readable);
    }

    /// Returns these times since the last report.
    pub(super) fn processor_times(&self) -> Option<ProcessorTimes> {
        self.queues.borrow().times()
    }

    /// Begins the stretch of the next report.
    pub(super) fn begin_report(&self) {
        self.queues.borrow_mut().begin_report();
    }

    /// Begins to count the times by kind, of these processes.
    pub(super) fn begin(&mut self, readable: &[Pid]) {
        self.by_kind = RefCell::new(TimesByKind::begin(readable));
        self.queues = RefCell::new(ThreadQueues::begin(readable));
    }

    /// Returns the times by kind since the start. Time of which nobody could read the kind is system
    /// time. `None` if nothing tells: a process that is gone tells only counters what it used at last.
    pub(super) fn used(&self, readable: &[Pid]) -> Option<CpuTimes> {
        let mut by_kind = self.by_kind.borrow_mut();
        by_kind.update(if self.follows { readable } else { &[] });
        let used = by_kind.used();
        match &self.counters {
            Some(counters) => {
                let unread = self.counted(counters)?.since(used.total());
                Some(CpuTimes { system: used.system.saturating_add(unread), ..used })
            }
            None if self.follows => None,
            None => by_kind.has_one().then_some(used),
        }
    }
}
