//! The clock of the records, and its relation to the time stamp counter.

use ctrace_core::{
    marker::{ClockSample, Ticks},
    units::Nanos,
};
use rustix::time::{ClockId, clock_gettime};

/// Returns CLOCK_MONOTONIC, which record time stamps use.
pub fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Returns the CPU time of this thread.
pub(crate) fn own_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Returns the time stamp counter.
fn ticks() -> Ticks {
    // SAFETY: the instruction is there on every x86-64 CPU, and only reads a counter.
    Ticks(unsafe { std::arch::x86_64::_rdtsc() })
}

/// Reads both clocks at one moment: the clock between two readings of the counter. The shortest of
/// a few tries counts, since it was interrupted least.
pub(crate) fn sample() -> ClockSample {
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
    use ctrace_core::{
        marker::{BUFFER_LEN, BufferId, EventsOnly, MarkerObject, MarkerPlace, Markers, Reading},
        units::{FuncId, Pid, Tid},
    };
    use std::{thread::sleep, time::Duration};

    const SECTION: u64 = 0x1000;
    const ID: BufferId = BufferId { pid: Pid(1), address: 0x2000 };

    /// Makes the buffer of a thread with a TSC: one event.
    fn buffer(batch: u64, at: Ticks) -> Box<[u8; BUFFER_LEN]> {
        let mut bytes = Box::new([0; BUFFER_LEN]);
        bytes[..8].copy_from_slice(b"ctraceb\x01");
        bytes[32..40].copy_from_slice(&batch.to_le_bytes());
        bytes[40] = 1;
        bytes[48..56].copy_from_slice(&batch.to_le_bytes());
        bytes[64..72].copy_from_slice(&(at.0 & 0xffff_ffff_ffff).to_le_bytes());
        bytes[72..80].copy_from_slice(&SECTION.to_le_bytes());
        bytes
    }

    /// Probes read one clock and markers the other, but their calls form one tree.
    #[test]
    fn events_of_markers_have_the_clocks_time() {
        const ROUNDS: usize = 20;
        let mut markers = Markers::default();
        let functions = [Some(MarkerPlace::new(FuncId(0), 0))].into();
        let object = markers.add_object(MarkerObject { section: SECTION, functions });
        markers.map_object(ID.pid, object, 0, Nanos::ZERO);
        markers.sample(sample(), Nanos::MAX, &mut EventsOnly(|_, _| ()));
        let mut off = Vec::new();
        for batch in 0..ROUNDS as u64 {
            let pause = || sleep(Duration::from_millis(5));
            pause();
            let event = sample();
            pause();
            let bytes = buffer(batch, event.ticks);
            let time = now();
            markers.read(Reading {
                buffer: ID,
                tid: Tid(1),
                time,
                bytes,
                passed: None,
                before: None,
            });
            markers.sample(sample(), Nanos::MAX, &mut EventsOnly(|_, _| ()));
            let mut seen = EventsOnly(|_, events| {
                off.extend(events.iter().map(|seen| seen.ts().abs_diff(event.time.0)));
            });
            markers.release(Nanos::MAX, &mut seen);
        }
        off.sort_unstable();
        // One sample may be interrupted in all its tries.
        assert!(off.len() == ROUNDS && off[ROUNDS - 2] <= 200, "{off:?} ns");
    }

    #[test]
    fn both_clocks_go_on() {
        let first = sample();
        std::thread::sleep(std::time::Duration::from_millis(1));
        let second = sample();
        assert!(first.ticks < second.ticks && first.time < second.time);
    }
}
