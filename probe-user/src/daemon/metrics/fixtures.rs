//! Makes snapshots for tests, as a session would, and events for an engine.

use crate::session::keep::live::Snapshot;
use ctrace_common::Kind;
use ctrace_core::{
    engine::{Engine, EngineConfig, ReportMeta},
    function::FunctionInfo,
    report::SampledReport,
    stats::Summary,
    units::Nanos,
};

pub(in crate::daemon) const MS: u64 = 1_000_000;

/// The calls of one function in an interval.
#[derive(Clone, Debug, Default)]
pub(in crate::daemon) struct Did {
    pub(super) name: String,
    pub(super) durations: Vec<u64>,
    pub(super) untimed: u64,
    pub(super) open: u64,
    pub(super) active: u64,
    pub(super) spent: u64,
    /// The armed time, if a budget removed its probes.
    pub(super) armed: Option<u64>,
}

impl Did {
    pub(super) fn called(name: &str, durations: &[u64]) -> Self {
        Self { name: name.to_owned(), durations: durations.to_vec(), ..Self::default() }
    }
}

/// Makes a snapshot of these functions between two times.
pub(in crate::daemon) fn snapshot(from: u64, to: u64, functions: &[Did]) -> Snapshot {
    let mut engine = Engine::new(EngineConfig::default());
    functions.iter().for_each(|did| {
        engine.add_function(FunctionInfo::new(did.name.as_str(), "program"));
    });
    engine.begin(Nanos(from));
    let mut report = engine.report(Nanos(to), ReportMeta::default());
    for (did, row) in functions.iter().zip(&mut report.functions) {
        let durations: Vec<Nanos> = did.durations.iter().copied().map(Nanos).collect();
        let mut summary = Summary::of(&durations);
        (summary.tally.untimed, summary.tally.self_ns) = (did.untimed, 0);
        (summary.open, summary.active_ns, summary.exclusive_ns) = (did.open, did.active, 0);
        row.render(summary, Nanos(to - from));
        row.sampled = did.armed.map(|armed| SampledReport {
            armed_ns: Nanos(armed),
            armed_percent: 100.0 * armed as f64 / (to - from) as f64,
            windows: 1,
            calls: None,
            calls_error: None,
            total_ns: None,
            active_ns: None,
        });
    }
    report.loss.calls_untimed = functions.iter().map(|did| did.untimed).sum();
    Snapshot {
        report,
        spent: functions.iter().map(|did| Nanos(did.spent)).collect(),
        cpu: Some(Nanos(to)),
    }
}

/// Makes an event as in docs/wire-format.md, with the time in milliseconds.
pub(in crate::daemon) fn event(kind: Kind, function: u32, sp: u64, at: u64) -> [u8; 32] {
    let mut record = [0; 32];
    record[..8].copy_from_slice(&(at * MS).to_le_bytes());
    record[8..16].copy_from_slice(&sp.to_le_bytes());
    record[16..20].copy_from_slice(&1_u32.to_le_bytes());
    record[20..24].copy_from_slice(&7_u32.to_le_bytes());
    record[24..28].copy_from_slice(&function.to_le_bytes());
    record[28] = kind as u8;
    record
}
