//! Emptying a buffer.

use super::{
    buffer::{Buffer, FIRST},
    enter::Local,
    fence, list, runtime,
};
use core::sync::atomic::Ordering::Relaxed;

/// Passes the contents of a buffer to the probe at the flush site, and empties the buffer. Then
/// does the same for the buffer that signal handlers wrote to meanwhile.
///
/// Meanwhile `fast` is 0: handlers take the slow path, see `flushing` and leave the buffer alone,
/// even if it is not full.
pub(super) fn empty(local: &Local, buffer: &Buffer) {
    let mut next = Some(buffer);
    while let Some(buffer) = next {
        buffer.flushing.store(1, Relaxed);
        fence();
        local.fast.store(0, Relaxed);
        fence();
        let count = buffer.count_events();
        runtime::flush(buffer);
        fence();
        let events = buffer.events.load(Relaxed);
        buffer.events.store(events.wrapping_add(count), Relaxed);
        buffer.wipe();
        fence();
        buffer.batch.store(buffer.batch.load(Relaxed).wrapping_add(1), Relaxed);
        fence();
        // A fork in a handler has wiped it. It stays so, and the next event notices.
        buffer.position.store(if buffer.is_wiped() { 0 } else { FIRST }, Relaxed);
        fence();
        buffer.flushing.store(0, Relaxed);
        fence();
        local.open(buffer);
        let nested = list::at(buffer.nested.load(Relaxed));
        // If a handler interrupted this very work, or a writer, the interrupted code continues it.
        next = nested
            .filter(|nested| nested.taken() != 0 && !nested.is_flushing() && nested.is_written());
    }
}

/// Takes the thread's buffer from it, delivers its contents and gives it back.
pub(super) fn end(local: &Local) {
    // From here on no handler can open the fast path to this buffer. Until the second store one may
    // still write to it, and that is delivered below. Afterwards it gets another buffer.
    let own = local.own.swap(0, Relaxed);
    fence();
    local.fast.store(0, Relaxed);
    fence();
    let mut next = list::at(own);
    while let Some(buffer) = next {
        if buffer.is_wiped() {
            return; // A parent's, wiped by the fork.
        }
        if buffer.taken() != 0 || buffer.holds_any() {
            empty(local, buffer);
        }
        next = list::at(buffer.nested.load(Relaxed));
        list::release(buffer);
    }
}
