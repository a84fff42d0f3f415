//! Rows for the tests of folders.

use ctrace_core::{
    fleet::rows::{Losses, Origin, TargetRow},
    units::Pid,
};
use std::sync::Arc;

/// Returns the row of an interval that begins at this time.
pub(crate) fn target(start_ns: i64, calls: u64) -> TargetRow {
    let (end_ns, target) = (start_ns + 1, "web".into());
    TargetRow {
        origin: Arc::new(Origin { start_ns, end_ns, target, pid: Pid(7), version: None }),
        processes: 1,
        program: "server".into(),
        functions: 2,
        calls,
        cost_ns: 4,
        cpu_ns: None,
        losses: Losses::default(),
    }
}
