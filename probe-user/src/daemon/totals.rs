//! Counts of what was seen of a target since the daemon began, over all its processes and their
//! restarts. They never go back.

use crate::session::keep::live::Snapshot;
use ctrace_core::units::Nanos;
use serde::Serialize;

/// Of all functions of a target together.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Counts {
    /// Processes that were traced.
    pub processes: u64,
    pub reports: u64,
    /// Time that reports cover.
    pub covered_ns: Nanos,
    /// Calls that ended.
    pub calls: u64,
    pub total_ns: u64,
    /// Events that were lost.
    pub lost: u64,
    /// What the probes cost, by what their hits cost on average.
    pub spent_ns: u64,
}

impl Counts {
    pub(super) fn add(&mut self, snapshot: &Snapshot) {
        let report = &snapshot.report;
        self.reports += 1;
        self.covered_ns = self.covered_ns.saturating_add(report.duration_ns);
        self.lost += report.loss.events;
        self.spent_ns += snapshot.spent.iter().map(|spent| spent.0).sum::<u64>();
        for function in &report.functions {
            // A call that is open at the end of an interval is counted where it ends.
            self.calls += function.calls - function.open;
            self.total_ns = self.total_ns.saturating_add(function.total_ns.0);
        }
    }
}
