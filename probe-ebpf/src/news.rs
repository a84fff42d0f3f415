//! Wakes user space: for the few things that cannot wait until it looks by itself.

use crate::{loss, maps::NEWS};
use ctrace_common::LOST_EVENTS;

/// `BPF_RB_FORCE_WAKEUP`
const WAKE: u64 = 2;

/// Sends a number. That there is no room for it is counted.
#[cold]
#[inline(never)]
pub fn tell(number: u32) -> u32 {
    if NEWS.output(number, WAKE).is_err() {
        loss::add_to(LOST_EVENTS, 1);
    }
    0
}

/// Wakes who reads the rings, and says why; while they have not looked yet, that there is no room does not matter.
#[cold]
#[inline(never)]
pub fn wake(why: u32) -> u32 {
    let _ = NEWS.output(why, WAKE);
    0
}
