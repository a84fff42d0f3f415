//! The clock of the records, and how the processors' time stamp counter relates to it.

use ctrace_core::{
    marker::{ClockSample, Ticks},
    units::Nanos,
};
use rustix::time::{ClockId, clock_gettime};

/// CLOCK_MONOTONIC now, comparable with the records' time stamps.
pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The time stamp counter now.
fn ticks() -> Ticks {
    // SAFETY: the instruction is there on every x86-64 processor, and only reads a counter.
    Ticks(unsafe { std::arch::x86_64::_rdtsc() })
}

/// Both clocks at one moment. The clock is read between two readings of the counter; of a few tries
/// the one that took the shortest counts, since nothing came in between there.
pub fn sample() -> ClockSample {
    const TRIES: usize = 5;
    let one = || {
        let (before, time, after) = (ticks(), now(), ticks());
        let width = after.0.saturating_sub(before.0);
        (width, ClockSample { ticks: Ticks(before.0 + width / 2), time })
    };
    let tries: [_; TRIES] = std::array::from_fn(|_| one());
    tries.into_iter().min_by_key(|(width, _)| *width).expect("there are tries").1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_go_on() {
        let first = sample();
        std::thread::sleep(std::time::Duration::from_millis(1));
        let second = sample();
        assert!(first.ticks < second.ticks && first.time < second.time);
    }
}
