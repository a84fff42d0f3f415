//! The clock of the records.

use ctrace_core::units::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC now, comparable with the records' time stamps.
pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
