//! The same numbers from a report.

use crate::reference::definitions::Row;
use ctrace_core::report::Report;
use ctrace_core::report::numbers::{NUMBERS, Number, Unit};
use std::collections::BTreeMap;

/// Returns the integer numbers of each function that `choose` selects.
fn told(report: &Report, choose: impl Fn(&Number) -> bool) -> Vec<Row> {
    let is_whole = |number: &&Number| matches!(number.unit, Unit::Count | Unit::Time);
    // Costs of probes are not measured here, and waits are not told apart.
    let is_absent = |number: &&Number| {
        number.key.starts_with("net_")
            || ["running_ns", "runnable_ns", "blocked_ns"].contains(&number.key)
    };
    let chosen = NUMBERS.iter().filter(is_whole).filter(|n| choose(n) && !is_absent(n));
    let chosen: Vec<&Number> = chosen.collect();
    let row = |function| {
        let told = chosen.iter().map(|n| (n.key, (n.of)(function).whole().unwrap_or(0)));
        told.collect()
    };
    report.functions.iter().map(row).collect()
}

pub(crate) fn rows(report: &Report) -> Vec<Row> {
    told(report, |number| number.parent.is_none())
}

pub(crate) fn centers(report: &Report) -> Vec<Row> {
    told(report, |number| number.parent.is_some())
}

/// Returns the numbers that add up over intervals.
pub(crate) fn additive(report: &Report) -> Vec<Row> {
    told(report, Number::is_additive)
}

pub(crate) fn paths(report: &Report) -> BTreeMap<String, [u64; 3]> {
    let hit = report.paths.iter().filter(|path| path.calls > 0);
    hit.map(|p| (p.path.join(">"), [p.calls, p.total_ns.0, p.self_ns.0])).collect()
}
