//! Counts of what was seen of a target since the daemon began, over all its processes and their
//! restarts. They never go back.

use crate::session::keep::live::Snapshot;
use ctrace_core::report::Totals;
use serde::Serialize;

/// Of all functions of a target together.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Counts {
    /// Processes that were traced.
    pub processes: u64,
    pub reports: u64,
    #[serde(flatten)]
    pub sums: Totals,
    /// What the probes cost, by what their hits cost on average.
    pub spent_ns: u64,
}

impl Counts {
    pub(super) fn add(&mut self, snapshot: &Snapshot) {
        self.reports += 1;
        self.sums.add(&Totals::of(&snapshot.report));
        self.spent_ns = self.spent_ns.saturating_add(snapshot.cost().0);
    }
}
