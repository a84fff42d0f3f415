//! Any file is a recording or a clear error: no panic, no memory without bound. Check sums are not
//! checked in this build, or hardly any input would come far.

use ctrace_core::recording::Recording;
use ctrace_core::recording::replay::{Query, report};

pub fn check(bytes: &[u8]) {
    let Ok(recording) = Recording::open(bytes.to_vec()) else { return };
    for entry in recording.chunks() {
        let Ok(chunk) = recording.chunk(entry) else { continue };
        for thread in chunk.threads() {
            assert!(chunk.calls(thread).len() <= bytes.len().max(1) * 1_000_000);
        }
    }
    let report = report(&recording, &Query::default(), 1.0);
    for function in &report.functions {
        assert_eq!(function.calls, function.timed + function.untimed + function.open);
    }
}
