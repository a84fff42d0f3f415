//! The same numbers from a report.

use crate::definitions::Row;
use ctrace_core::report::Report;
use ctrace_core::units::Nanos;
use std::collections::BTreeMap;

pub(crate) fn value(nanos: Option<Nanos>) -> u64 {
    nanos.map_or(0, |nanos| nanos.0)
}

pub(crate) fn rows(report: &Report) -> Vec<Row> {
    let row = |f: &ctrace_core::report::FunctionReport| {
        let d = &f.durations;
        let mut row = vec![f.calls, f.timed, f.untimed, f.open, f.headless, f.threads];
        row.extend([f.total_ns, f.self_ns, f.active_ns, f.active_exclusive_ns].map(|n| n.0));
        row.extend([d.min_ns, d.mean_ns, d.max_ns, d.sd_ns].map(value));
        row.extend([d.p50_ns, d.p75_ns, d.p90_ns, d.p95_ns, d.p99_ns, d.p999_ns].map(value));
        row
    };
    report.functions.iter().map(row).collect()
}

pub(crate) fn centers(report: &Report) -> Vec<Row> {
    let row = |f: &ctrace_core::report::FunctionReport| {
        let (a, c, z) = (&f.fastest, &f.center, &f.slowest);
        [
            a.min_ns,
            a.mean_ns,
            c.min_ns,
            c.mean_ns,
            c.median_ns,
            c.max_ns,
            c.active_ns,
            c.active_exclusive_ns,
            z.mean_ns,
            z.max_ns,
        ]
        .map(value)
        .to_vec()
    };
    report.functions.iter().map(row).collect()
}

pub(crate) fn paths(report: &Report) -> BTreeMap<String, [u64; 3]> {
    let hit = report.paths.iter().filter(|path| path.calls > 0);
    hit.map(|p| (p.path.join(">"), [p.calls, p.total_ns.0, p.self_ns.0])).collect()
}
