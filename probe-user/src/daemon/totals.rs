//! Counts for a target since the daemon began, over all its processes and their restarts. They
//! never decrease.

use crate::session::keep::live::Snapshot;
use ctrace_core::report::ReportTotals;
use serde::Serialize;

/// The counts of all functions of a target together.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Counts {
    /// The number of traced processes.
    pub processes: u64,
    pub reports: u64,
    #[serde(flatten)]
    pub sums: ReportTotals,
    /// The probes' cost, from their average cost per hit.
    pub spent_ns: u64,
}

impl Counts {
    pub(super) fn add(&mut self, snapshot: &Snapshot) {
        self.reports += 1;
        self.sums.add(&ReportTotals::of(&snapshot.report));
        self.spent_ns = self.spent_ns.saturating_add(snapshot.cost().0);
    }
}
