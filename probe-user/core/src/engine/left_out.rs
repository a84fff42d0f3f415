//! Calls that make no events, because they are deeper than the filter lets them be: the eBPF programs
//! count them.

use super::Engine;
use crate::report::Report;
use crate::units::FuncId;

/// Counts of a function since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Its calls without events.
    pub calls: u64,
    /// Ends of these calls at which a probe was hit.
    pub ends: u64,
    /// Calls of any function without events, inside calls of this one.
    pub inside: u64,
}

impl LeftOut {
    /// Returns how often a probe was hit for nothing but the count.
    pub fn hits(self) -> u64 {
        self.calls.saturating_add(self.ends)
    }
}

impl Engine {
    /// Takes in what was counted since the last time.
    pub fn take_left_out(&mut self, count: impl Fn(FuncId) -> LeftOut) {
        let functions = self.tracker.functions.len();
        self.left_out.resize(functions, LeftOut::default());
        let ledger = &mut self.tracker.ledger;
        for (index, before) in self.left_out.iter_mut().enumerate() {
            let now = count(FuncId(index as u32));
            ledger.filtered += now.calls.saturating_sub(before.calls);
            let inside = now.inside.saturating_sub(before.inside);
            ledger.functions[index].callees_left_out += inside;
            *before = now;
        }
    }

    /// Adds to a report that was made from recorded calls what no recording has: in which calls others were
    /// left out. Of parts that is not known.
    pub fn add_callees_left_out(&self, report: &mut Report) {
        if report.part.is_none() {
            let counts = &self.tracker.ledger.functions;
            for (row, counts) in report.functions.iter_mut().zip(counts) {
                row.callees_left_out = counts.callees_left_out;
            }
        }
    }

    /// Returns the counts that were taken in, by function.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }
}
