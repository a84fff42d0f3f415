//! Sums over all functions of any number of reports.

use super::Report;
use crate::units::Nanos;
use serde::Serialize;

/// Sums of successive reports, or of reports of several processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// The time that the reports cover.
    pub covered_ns: Nanos,
    /// The number of ended calls. A call that is open at the end of a report counts where it ends.
    pub calls: u64,
    pub total_ns: u64,
    /// The number of lost events.
    pub lost: u64,
}

impl Totals {
    pub fn of(report: &Report) -> Self {
        let functions = report.functions.iter();
        let none =
            Self { covered_ns: report.duration_ns, lost: report.loss.events, ..Self::default() };
        functions.fold(none, |sum, function| Self {
            calls: sum.calls.saturating_add(function.ended()),
            total_ns: sum.total_ns.saturating_add(function.total_ns.0),
            ..sum
        })
    }

    pub fn add(&mut self, other: &Self) {
        let Self { covered_ns, calls, total_ns, lost } = *other;
        self.covered_ns = self.covered_ns.saturating_add(covered_ns);
        self.calls = self.calls.saturating_add(calls);
        self.total_ns = self.total_ns.saturating_add(total_ns);
        self.lost = self.lost.saturating_add(lost);
    }
}
