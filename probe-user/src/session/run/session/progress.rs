//! The progress of a session.

use crate::bpf;
use ctrace_core::units::Nanos;

#[derive(Default)]
pub(super) struct ProgressNews {
    /// The time at which calls began to count.
    pub(super) start: Nanos,
    /// Everything older has been seen.
    pub(super) settled: Nanos,
    /// When the counts of the eBPF programs were read the last time.
    pub(super) counts_read: Nanos,
    /// When the calls whose entries are held were read the last time.
    pub(super) held_read: Nanos,
    /// Some open calls may be missing in the last reading.
    pub(super) open_is_part: bool,
    /// True if nothing is armed any more.
    pub(super) finishing: bool,
}

impl ProgressNews {
    /// Returns the time since the start, in seconds.
    pub(super) fn seconds(&self) -> f64 {
        bpf::now().since(self.start).0 as f64 / 1e9
    }
}
