//! Lanes: what stands in the place of a thread for calls of async functions, which go on on any thread.
//!
//! A call has the lane from its first poll to its end, and so have the calls that it awaits one after the
//! other. Then a later call takes the lane. So there are as many as calls at one time.

use crate::units::Tid;

/// The bit of a thread id that stands for a lane. No id of the kernel is as large, and no goroutine's number
/// has it alone as its highest bit.
const LANE: u32 = 1 << 29;

/// Returns what stands for a thread id.
pub(crate) const fn tid_of_lane(lane: u32) -> Tid {
    Tid(LANE | lane & (LANE - 1))
}

/// Returns the number of a lane, if the thread id stands for one.
pub(crate) const fn lane(tid: Tid) -> Option<u32> {
    match tid.0 / LANE {
        1 => Some(tid.0 % LANE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_neither_threads_nor_goroutines() {
        assert_eq!(lane(tid_of_lane(7)), Some(7));
        for other in [0, 4_194_304, 1 << 30 | 7, 3 << 29 | 7, u32::MAX] {
            assert_eq!(lane(Tid(other)), None);
        }
        assert!(!ctrace_common::is_goroutine(tid_of_lane(u32::MAX).0));
    }
}
