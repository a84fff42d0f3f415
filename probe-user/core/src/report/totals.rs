//! Sums over all functions of any number of reports.
//!
//! [`Tally`] adds the functions. The sums are added as they are serialized: only ended calls are in
//! them, so nothing is carried from one report to the next.

use super::Report;
use crate::stats::Tally;
use crate::units::Nanos;
use serde::Serialize;

/// Sums of successive reports, or of reports of several processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReportTotals {
    /// The time that the reports cover.
    pub covered_ns: Nanos,
    /// The number of ended calls, without waits. A call that is open at the end of a report counts where it ends.
    pub calls: u64,
    pub total_ns: u64,
    /// The number of lost events.
    pub lost: u64,
}

impl ReportTotals {
    pub fn of(report: &Report) -> Self {
        let mut all = Tally::default();
        let functions = report.functions.iter().filter(|row| row.wait.is_none());
        functions.for_each(|function| all.merge(&function.tally()));
        Self {
            covered_ns: report.duration_ns,
            calls: all.ended(),
            total_ns: all.total_ns(),
            lost: report.loss.events,
        }
    }

    pub fn add(&mut self, other: &Self) {
        let Self { covered_ns, calls, total_ns, lost } = *other;
        self.covered_ns = self.covered_ns.saturating_add(covered_ns);
        self.calls = self.calls.saturating_add(calls);
        self.total_ns = self.total_ns.saturating_add(total_ns);
        self.lost = self.lost.saturating_add(lost);
    }
}
