//! What was seen of a target since the daemon began, over all its processes and their restarts:
//! counts that never go back.

use crate::session::keep::live::Snapshot;
use ctrace_core::{
    function::{FunctionKind, qualified},
    units::Nanos,
};
use serde::Serialize;
use std::collections::HashMap;

/// Functions told apart for each target; what is called under further names counts as one.
const MOST_FUNCTIONS: usize = 20_000;
const OTHERS: &str = "(others)";

/// Of a target.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub counts: Counts,
    pub functions: HashMap<String, FunctionTotals>,
}

/// All its functions together.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Counts {
    /// Processes that were traced.
    pub processes: u64,
    pub reports: u64,
    /// Time that reports cover.
    pub covered_ns: Nanos,
    pub calls: u64,
    pub total_ns: u64,
    /// Events that were lost.
    pub lost: u64,
    /// What the probes cost, by what their hits cost on average.
    pub spent_ns: u64,
}

/// Of one function of a target.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct FunctionTotals {
    pub calls: u64,
    pub total_ns: u64,
}

impl Totals {
    pub(super) fn add(&mut self, snapshot: &Snapshot) {
        let report = &snapshot.report;
        let counts = &mut self.counts;
        counts.reports += 1;
        counts.covered_ns = Nanos(counts.covered_ns.0 + report.duration_ns.0);
        counts.lost += report.loss.events;
        counts.spent_ns += snapshot.spent.iter().map(|spent| spent.0).sum::<u64>();
        for function in &report.functions {
            // A call that is open at the end of an interval is counted where it ends.
            let calls = function.calls - function.open;
            if calls == 0 {
                continue;
            }
            counts.calls += calls;
            counts.total_ns = counts.total_ns.saturating_add(function.total_ns.0);
            let name = name(function.kind, function.group.as_deref(), &function.name);
            let room = self.functions.len() < MOST_FUNCTIONS;
            let name =
                if room || self.functions.contains_key(&name) { name } else { OTHERS.into() };
            let totals = self.functions.entry(name).or_default();
            totals.calls += calls;
            totals.total_ns = totals.total_ns.saturating_add(function.total_ns.0);
        }
    }
}

fn name(kind: FunctionKind, group: Option<&str>, name: &str) -> String {
    qualified(kind, group, name).into_owned()
}
