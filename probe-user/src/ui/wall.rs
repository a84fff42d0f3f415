//! The reader's clock: what makes a monotonic time a local one. Asked once, outside of rendering.

use rustix::time::{ClockId, clock_gettime};

/// What to add to a time on CLOCK_MONOTONIC for the local wall-clock time, now and in this zone:
/// [`super::ViewOptions::epoch_offset_ns`].
pub fn epoch_offset_ns() -> i64 {
    let ns = |clock| {
        let time = clock_gettime(clock);
        i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
    };
    let zone = i128::from(chrono::Local::now().offset().local_minus_utc()) * 1_000_000_000;
    let offset = ns(ClockId::Realtime) - ns(ClockId::Monotonic) + zone;
    i64::try_from(offset).unwrap_or(0)
}
