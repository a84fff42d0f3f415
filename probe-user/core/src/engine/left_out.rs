//! Calls that make no events, because they are deeper or shorter than the filter lets them be: the eBPF
//! programs count them. The entry of a call that may turn out to be short is held there.

use super::Engine;
use crate::report::Report;
use crate::units::{FuncId, Nanos, Pid, Tid};
use ctrace_common::{Kind, Record};

/// Counts of a function since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Its calls without events because they were too deep.
    pub too_deep: u64,
    /// Ends of these at which a probe was hit.
    pub ends: u64,
    /// Calls that were too deep inside calls of this one, which were not.
    pub inside: u64,
    /// Its calls without events because they were too short, and the sum of their durations.
    pub short: u64,
    pub short_ns: u64,
}

impl LeftOut {
    /// Returns how often a probe was hit for nothing but the count.
    pub fn hits(self) -> u64 {
        let at_both_ends = self.short.saturating_mul(2);
        self.too_deep.saturating_add(self.ends).saturating_add(at_both_ends)
    }
}

/// An open call whose entry is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldCall {
    pub pid: Pid,
    pub tid: Tid,
    pub function: FuncId,
    pub sp: u64,
    pub start: Nanos,
}

impl Engine {
    /// Takes in calls whose entries are held, but must come at last. They may come once more.
    pub fn push_held(&mut self, calls: impl IntoIterator<Item = HeldCall>) {
        for HeldCall { pid, tid, function, sp, start } in calls {
            let entry = Record {
                ts_ns: start.0,
                sp,
                pid: pid.0,
                tid: tid.0,
                probe: function.0,
                kind: Kind::Enter as u8,
                ..Record::default()
            };
            self.order.push_event(0, entry.into());
        }
    }

    /// Takes in what was counted since the last time.
    pub fn take_left_out(&mut self, count: impl Fn(FuncId) -> LeftOut) {
        let functions = self.tracker.functions.len();
        self.left_out.resize(functions, LeftOut::default());
        let ledger = &mut self.tracker.ledger;
        for (index, before) in self.left_out.iter_mut().enumerate() {
            let now = count(FuncId(index as u32));
            ledger.filtered += now.too_deep.saturating_sub(before.too_deep);
            ledger.filtered += now.short.saturating_sub(before.short);
            let inside = now.inside.saturating_sub(before.inside);
            ledger.functions[index].callees_left_out += inside;
            *before = now;
        }
    }

    /// Adds to a report that was made from recorded calls what no recording has: in which calls others were
    /// left out, and return addresses put back. Of parts that is not known.
    pub fn add_unrecorded(&self, report: &mut Report) {
        if report.part.is_none() {
            let counts = &self.tracker.ledger.functions;
            for (row, counts) in report.functions.iter_mut().zip(counts) {
                row.callees_left_out = counts.callees_left_out;
                row.restored = counts.restored;
            }
        }
    }

    /// Returns the counts that were taken in, by function.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }
}
