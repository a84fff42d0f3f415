//! Converts monotonic times to local time by the current clock. Read once, outside of rendering.

use rustix::time::{ClockId, clock_gettime};

/// Returns the offset from CLOCK_MONOTONIC to local wall-clock time, in the current zone:
/// [`crate::ui::ViewOptions::epoch_offset_ns`].
pub(crate) fn epoch_offset_ns() -> i64 {
    unix_offset_ns().saturating_add(zone_ns())
}

/// Returns the current offset of local time from UTC.
pub(crate) fn zone_ns() -> i64 {
    i64::from(chrono::Local::now().offset().local_minus_utc()) * 1_000_000_000
}

/// Returns the offset from CLOCK_MONOTONIC to the time since 1970 in UTC, by the current clock.
pub(crate) fn unix_offset_ns() -> i64 {
    let ns = |clock| {
        let time = clock_gettime(clock);
        i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
    };
    i64::try_from(ns(ClockId::Realtime) - ns(ClockId::Monotonic)).unwrap_or(0)
}
