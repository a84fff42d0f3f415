//! Wakes user space for the few things that cannot wait until its next poll.

use crate::{loss, maps::NEWS};
use ctrace_common::LOST_EVENTS;

/// `BPF_RB_FORCE_WAKEUP`
const WAKE: u64 = 2;

/// Sends a number. If there is no room for it, the loss is counted.
#[cold]
#[inline(never)]
pub fn tell(number: u32) -> u32 {
    if NEWS.output(number, WAKE).is_err() {
        loss::add_to(LOST_EVENTS, 1);
    }
    0
}

/// Wakes the reader of the rings and sends the reason. A full buffer is harmless until the reader
/// polls.
#[cold]
#[inline(never)]
pub fn wake(why: u32) -> u32 {
    let _ = NEWS.output(why, WAKE);
    0
}
