//! What the few instructions of `enter` leave to do: a thread without a buffer, a buffer that is
//! full, one that a fork has wiped, one that is being emptied, and a clock that is not the TSC.
//!
//! Async-signal-safe throughout: it may interrupt itself at any instruction.

use super::{
    buffer::{Buffer, FIRST, LAST, SIZE},
    clock,
    enter::Local,
    fence, flush, list, thread,
};
use core::sync::atomic::Ordering::Relaxed;

/// Writes the event. `buffer` is the one in which a slot was taken, `index` that slot's position
/// less 64, or there is none yet.
pub(super) extern "C" fn ctrace_marker_slow(
    local: &Local,
    buffer: Option<&Buffer>,
    index: u32,
    word0: u64,
    word1: u64,
) {
    let mut word0 = word0;
    if clock::clock() != clock::TSC {
        word0 = with_time_of_now(word0);
    }
    let mut taken = buffer.map(|buffer| (buffer, index.wrapping_add(FIRST)));
    loop {
        let (buffer, position) = match taken.take() {
            Some(taken) => taken,
            None => {
                let Some(buffer) = current(local) else { return };
                // What was done until now is not part of the scope that begins.
                if word1 & 1 == 0 {
                    word0 = with_time_of_now(word0);
                }
                (buffer, buffer.take())
            }
        };
        if position < FIRST {
            // Wiped by a fork. A handler may have found that out first, and have got the thread
            // another buffer already.
            let address = list::address(buffer);
            let stale = local.fast.swap(0, Relaxed) == address;
            if !stale || local.own.load(Relaxed) == address {
                local.own.store(0, Relaxed);
            }
        } else if position < SIZE as u32 {
            buffer.write(position, word0, word1);
            // While it is emptied by whom we interrupted, he does that.
            if position == LAST && !buffer.is_flushing() {
                flush::empty(local, buffer);
            }
            return;
        } else if !buffer.is_flushing() {
            // We are a handler: the thread has taken the last slot, and has not written it yet.
            flush::empty(local, buffer);
        }
    }
}

fn with_time_of_now(word0: u64) -> u64 {
    word0 & !clock::MASK | clock::now()
}

/// The buffer to write to now: the thread's own, or the one nested in it while it is emptied.
fn current<'a>(local: &Local) -> Option<&'a Buffer> {
    let mut buffer = match list::at(local.own.load(Relaxed)) {
        Some(own) => own,
        None => begin(local)?,
    };
    while buffer.is_flushing() {
        buffer = match list::at(buffer.nested.load(Relaxed)) {
            Some(nested) => nested,
            None => nest(buffer)?,
        };
    }
    local.open(buffer);
    Some(buffer)
}

/// Gives the thread a buffer.
fn begin<'a>(local: &Local) -> Option<&'a Buffer> {
    let mut buffer = list::acquire()?;
    let mine = list::address(buffer);
    if let Err(other) = local.own.compare_exchange(0, mine, Relaxed, Relaxed) {
        // A handler was faster. Its buffer is to be the one that was registered last.
        list::release(buffer);
        buffer = list::at(other)?;
        super::runtime::register(buffer);
    }
    fence();
    thread::watch(local);
    Some(buffer)
}

/// Gives a buffer that is being emptied another one for the meantime.
fn nest<'a>(buffer: &Buffer) -> Option<&'a Buffer> {
    let nested = list::acquire()?;
    let address = list::address(nested);
    match buffer.nested.compare_exchange(0, address, Relaxed, Relaxed) {
        Ok(_) => Some(nested),
        Err(other) => {
            list::release(nested);
            list::at(other)
        }
    }
}
