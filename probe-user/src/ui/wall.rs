//! The reader's clock: what makes a monotonic time a local one. Asked once, outside of rendering.

use rustix::time::{ClockId, clock_gettime};

/// What to add to a time on CLOCK_MONOTONIC for the local wall-clock time, now and in this zone:
/// [`super::ViewOptions::epoch_offset_ns`].
pub(crate) fn epoch_offset_ns() -> i64 {
    unix_offset_ns().saturating_add(zone_ns())
}

/// What local time is ahead of UTC, now.
pub(crate) fn zone_ns() -> i64 {
    i64::from(chrono::Local::now().offset().local_minus_utc()) * 1_000_000_000
}

/// What to add to a time on CLOCK_MONOTONIC for the time since 1970, which knows no zones, by what the
/// clock on the wall says now.
pub(crate) fn unix_offset_ns() -> i64 {
    let ns = |clock| {
        let time = clock_gettime(clock);
        i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
    };
    i64::try_from(ns(ClockId::Realtime) - ns(ClockId::Monotonic)).unwrap_or(0)
}
