//! Functions that the engine knows but that never got their probes. A report must not show them as
//! functions that nobody called.

use ctrace_core::{report::Report, units::FuncId};
use std::ops::Range;

/// Their ids, ascending.
#[derive(Default)]
pub(crate) struct Unarmed(Vec<usize>);

impl Unarmed {
    pub(crate) fn add(&mut self, ids: Range<usize>) {
        self.0.extend(ids);
    }

    /// Takes them out of a report and returns the ids of the functions left in it. A function stays
    /// if something was seen of it, while the probes of its object were being placed and taken away
    /// again.
    pub(crate) fn leave_out(&self, report: &mut Report) -> Vec<usize> {
        report.leave_out(|id| self.0.binary_search(&id).is_ok())
    }

    /// Returns the ids as a recording has them.
    pub(crate) fn ids(&self) -> Vec<FuncId> {
        self.0.iter().map(|&id| FuncId(id as u32)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctrace_core::{
        engine::{Engine, EngineConfig, ReportMeta},
        function::{ExitSeen, FunctionInfo},
        units::Nanos,
    };

    fn function(name: &str) -> FunctionInfo {
        FunctionInfo { exit: ExitSeen::Never, ..FunctionInfo::new(name, "program") }
    }

    /// Returns an entry record of a function, as docs/wire-format.md defines it.
    fn entry(time: u64, id: u32) -> [u8; 32] {
        let mut record = [0; 32];
        record[..8].copy_from_slice(&time.to_le_bytes());
        record[8..16].copy_from_slice(&(0x7000_0000 - time).to_le_bytes());
        record[16..20].copy_from_slice(&1u32.to_le_bytes());
        record[20..24].copy_from_slice(&1u32.to_le_bytes());
        record[24..28].copy_from_slice(&id.to_le_bytes());
        record[28] = ctrace_common::Kind::Enter as u8;
        record
    }

    #[test]
    fn what_was_never_armed_is_not_in_the_report() {
        let mut engine = Engine::new(EngineConfig::default());
        for name in ["lost", "called", "gone", "half"] {
            engine.add_function(function(name));
        }
        engine.push(0, &entry(1, 1));
        engine.push(0, &entry(2, 3));
        engine.advance(Nanos(10));
        let mut report = engine.report(Nanos(10), ReportMeta::default());
        let mut unarmed = Unarmed::default();
        unarmed.add(0..1);
        unarmed.add(2..4);
        unarmed.leave_out(&mut report);
        let names: Vec<&str> = report.functions.iter().map(|f| &*f.name).collect();
        assert_eq!(names, ["called", "half"]);
        assert!(!report.paths.is_empty());
        for path in &report.paths {
            assert_eq!(path.path.last(), Some(&report.functions[path.function].name));
        }
    }
}
