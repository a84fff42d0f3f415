//! The processes that a session traces, and their ends.

use super::{
    children::Children, clock::TargetClock, holding::Holding, joining::Joined, processes::Processes,
};
use crate::{heal::InUse, target::process::cpu_times::CpuTimes};
use ctrace_core::{
    report::{TargetExit, TargetReport},
    units::Pid,
};
use std::collections::BTreeSet;

pub(crate) struct TracedTarget {
    pub(super) pid: Pid,
    /// True for our own child, which may be held at the start of a program.
    pub(super) launched: bool,
    pub(super) report: TargetReport,
    is_gone: bool,
    /// The processes beside it.
    pub(super) processes: Processes,
    /// Children that are not.
    pub(super) children: Children,
    pub(super) clock: TargetClock,
    pub(super) holding: Holding,
    pub(super) joined: Joined,
    /// Places in which other tracers have probes.
    pub(super) in_use: InUse,
    /// Processes that ended before the program that they executed could be looked at: the first
    /// one, and their number.
    unseen: Option<(Pid, u64)>,
}

impl TracedTarget {
    /// `follows`: its children are traced as well.
    pub(crate) fn new(pid: Pid, launched: bool, follows: bool, report: TargetReport) -> Self {
        Self {
            pid,
            launched,
            report,
            is_gone: false,
            processes: Processes::default(),
            children: Children::default(),
            clock: TargetClock::new(pid, follows),
            holding: Holding::default(),
            joined: Joined::default(),
            in_use: InUse::default(),
            unseen: None,
        }
    }

    /// Begins to count the CPU time that the target uses, by kind.
    pub(super) fn begin_clock(&mut self) {
        let readable = self.readable();
        self.clock.begin(&readable);
    }

    /// Returns the CPU time that the target has used since then.
    pub(super) fn used(&self) -> Option<CpuTimes> {
        self.clock.used(&self.readable())
    }

    /// Looks how its threads wait for processors.
    pub(super) fn look_at_queues(&self) {
        self.clock.look_at_queues(|| self.readable());
    }

    /// Does so for the last time, when the time that is reported is over.
    pub(in crate::session::run) fn end_queues(&self) {
        self.clock.end_queues(|| self.readable());
    }

    /// Returns what a report says of it now.
    pub(super) fn reported(&self) -> TargetReport {
        self.look_at_queues();
        TargetReport { processor: self.clock.processor_times(), ..self.report.clone() }
    }

    /// Returns the processes whose times count. A child of ours can be read until it is waited for.
    fn readable(&self) -> Vec<Pid> {
        let target = (self.launched || !self.is_gone).then_some(self.pid);
        let others = self.processes.traced().filter(|_| self.clock.follows());
        target.into_iter().chain(others).collect()
    }

    /// Notes that the target is gone. The first word on its exit is kept.
    pub(super) fn ended(&mut self, exit: Option<TargetExit>) {
        self.is_gone = true;
        self.report.exit = self.report.exit.or(exit);
    }

    /// Notes that one of its processes is gone, with this wait status.
    pub(super) fn process_ended(&mut self, pid: Pid, status: u32) {
        self.clock.joined.end(pid);
        if self.processes.is_traced(pid) {
            // Another process may have the target's id later.
            self.processes.end(pid);
        } else if pid == self.pid && self.processes.standing(pid).is_none() {
            self.ended(Some(exit_of(status)));
        }
    }

    /// Returns whether this is the target, and it is not known to be gone.
    pub(super) fn is_alive(&self, pid: Pid) -> bool {
        pid == self.pid && !self.is_gone
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_gone
    }

    pub(super) fn is_our_child(&self, pid: Pid) -> bool {
        self.launched && pid == self.pid
    }

    /// Counts a process that executed a program and ended before anybody could look at it.
    pub(super) fn count_unseen(&mut self, pid: Pid) {
        // Our own child was held until it had its probes.
        if !self.is_our_child(pid) {
            let (first, count) = self.unseen.unwrap_or((pid, 0));
            self.unseen = Some((first, count + 1));
        }
    }

    /// Returns the notes for a reader of a report.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let notes = [
            self.joined.note(self.clock.joined.unclocked),
            self.unseen_note(),
            self.holding.note(),
            self.children.note(),
        ];
        notes.into_iter().flatten()
    }

    fn unseen_note(&self) -> Option<String> {
        let (Pid(first), count) = self.unseen?;
        let whose = match count {
            1 => format!(
                "process {first} ended before ctrace could look at the program that it executed"
            ),
            _ => format!(
                "{count} processes (the first: {first}) ended before ctrace could look at the programs \
                 that they executed"
            ),
        };
        Some(format!(
            "{whose}: functions that had their probes already are counted, and others are not"
        ))
    }

    /// Returns the processes that may still run.
    pub(super) fn alive(&self) -> BTreeSet<Pid> {
        let target = (!self.is_gone).then_some(self.pid);
        target.into_iter().chain(self.processes.traced()).collect()
    }
}

/// Converts a wait status of `wait(2)`.
fn exit_of(status: u32) -> TargetExit {
    match status & 0x7f {
        0 => TargetExit::Code((status >> 8 & 0xff) as i32),
        signal => TargetExit::Signal(signal as i32),
    }
}
