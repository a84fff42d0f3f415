//! Handles the cases that `enter` leaves: a thread without a buffer, a buffer that is full, wiped
//! by a fork or being emptied, and a clock that is not the TSC.
//!
//! All of it is async-signal-safe: it may interrupt itself at any instruction.

use super::{
    buffer::{Buffer, FIRST, SIZE},
    clock,
    enter::Local,
    fence, flush, list,
    record::Record,
    thread,
};
use core::sync::atomic::Ordering::Relaxed;

/// The highest position of a full buffer, after 65,000 slots, while a writer has not finished:
/// that writer may have been interrupted for good.
const PATIENCE: u32 = 1 << 20;

/// Writes the event. `buffer` is the one in which a slot was taken, `index` that slot's position
/// less 64. Either may be missing.
pub(super) extern "C" fn ctrace_marker_slow(
    local: &Local,
    buffer: Option<&Buffer>,
    index: u32,
    word0: u64,
    word1: u64,
) {
    let taken = buffer.map(|buffer| (buffer, index.wrapping_add(FIRST)));
    write(local, taken, Record { word0, word1, values: &[], text: None });
}

/// Writes an event and what comes before it. `taken` are the buffer in which slots for that were
/// taken, and the position of the first of them, which may be beyond the last slot.
pub(super) fn write(local: &Local, mut taken: Option<(&Buffer, u32)>, mut record: Record<'_>) {
    if clock::clock() != clock::TSC {
        record.word0 = with_time_of_now(record.word0);
    }
    let bytes = record.bytes();
    let mut waiting = None;
    loop {
        let (buffer, position) = match taken.take() {
            Some(taken) => taken,
            None => {
                let Some(buffer) = current(local, waiting.take()) else { return };
                // The time until now is not part of the scope that begins.
                if record.word1 & 1 == 0 {
                    record.word0 = with_time_of_now(record.word0);
                }
                (buffer, buffer.take(bytes))
            }
        };
        if position < FIRST || buffer.is_wiped() {
            // A fork wiped it. A handler may have noticed first, and given the thread another
            // buffer.
            local.fast.store(0, Relaxed);
            let _ = local.own.compare_exchange(list::address(buffer), 0, Relaxed, Relaxed);
            continue;
        }
        let end = position.saturating_add(bytes);
        let is_written = end <= SIZE as u32;
        if is_written {
            record.put(buffer, position);
            if end < SIZE as u32 {
                return;
            }
        } else {
            // An entry and what comes before it are in one buffer.
            buffer.fill(position, record.word0);
        }
        // The buffer is full. If we interrupted its emptying, that will finish. We may have
        // interrupted a writer between taking a slot and writing it. It must find the slot
        // unchanged, as long as there is another buffer to use.
        let is_late = || position > PATIENCE || !is_written && nested(buffer).is_none();
        if !buffer.is_flushing() && (buffer.is_written() || is_late()) {
            flush::empty(local, buffer);
        } else {
            waiting = Some(buffer);
        }
        if is_written {
            return;
        }
    }
}

fn with_time_of_now(word0: u64) -> u64 {
    word0 & !clock::MASK | clock::now()
}

/// Returns the buffer to write to now: the thread's own, or the one nested in it while it is
/// emptied or `waiting` for a writer.
fn current<'a>(local: &Local, waiting: Option<&Buffer>) -> Option<&'a Buffer> {
    let mut buffer = match waiting {
        Some(waiting) => nested(waiting)?,
        None => match list::at(local.own.load(Relaxed)) {
            Some(own) => own,
            None => begin(local)?,
        },
    };
    while buffer.is_flushing() {
        buffer = nested(buffer)?;
    }
    local.open(buffer);
    Some(buffer)
}

/// Gives the thread a buffer.
fn begin<'a>(local: &Local) -> Option<&'a Buffer> {
    let mut buffer = list::acquire()?;
    let mine = list::address(buffer);
    if let Err(other) = local.own.compare_exchange(0, mine, Relaxed, Relaxed) {
        // A handler was faster. Its buffer must be the last registered one.
        list::release(buffer);
        buffer = list::at(other)?;
        super::runtime::register(buffer);
    }
    fence();
    thread::watch(local);
    Some(buffer)
}

/// Returns the substitute for a buffer that takes no events.
fn nested<'a>(buffer: &Buffer) -> Option<&'a Buffer> {
    if let Some(nested) = list::at(buffer.nested.load(Relaxed)) {
        return Some(nested);
    }
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

#[cfg(test)]
mod tests {
    //! Tests what cannot be caused from outside: a CPU without an even TSC, and a writer that never
    //! continues.
    extern crate std;

    use super::*;
    use core::sync::atomic::AtomicUsize;
    use std::sync::{Mutex, PoisonError};

    /// Runs a test with a new thread's part and its buffer with a first event, while the TSC is not
    /// even.
    fn on_a_new_thread(test: impl FnOnce(&Local, &Buffer)) {
        static CLOCK: Mutex<()> = Mutex::new(());
        let _alone = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
        clock::assume(clock::MONOTONIC);
        let local = Local { fast: AtomicUsize::new(0), own: AtomicUsize::new(0) };
        write_events(&local, 1);
        test(&local, list::at(local.own.load(Relaxed)).unwrap());
        clock::assume(clock::TSC);
    }

    /// Writes entries and exits in turn, with a TSC time, as from `enter`.
    fn write_events(local: &Local, events: u64) {
        for event in 0..events {
            ctrace_marker_slow(local, None, 0, 0xabcd << 48 | 1, 0x1000 | event & 1);
        }
    }

    fn events(buffer: &Buffer) -> u64 {
        buffer.events.load(Relaxed) + u64::from(buffer.taken())
    }

    #[test]
    fn without_an_even_tsc_the_slow_path_reads_the_clock() {
        on_a_new_thread(|local, buffer| {
            let before = clock::now();
            let (batches, first) = (buffer.batch.load(Relaxed), events(buffer));
            write_events(local, 299);
            let after = clock::now();
            assert_eq!(local.fast.load(Relaxed), 0, "the fast path reads the TSC");
            assert_eq!(buffer.clock.load(Relaxed), clock::MONOTONIC);
            assert_eq!((buffer.batch.load(Relaxed), events(buffer)), (batches + 1, first + 299));
            assert_eq!(buffer.taken(), 48);
            for slot in 0..48 {
                let (word0, word1) = buffer.read(slot);
                assert_eq!((word0 >> 48, word1 & !1), (0xabcd, 0x1000));
                assert!((before..=after).contains(&(word0 & clock::MASK)));
            }
            flush::end(local);
            assert_eq!((buffer.taken(), buffer.tid.load(Relaxed)), (0, 0));
        });
    }

    #[test]
    fn a_writer_that_never_comes_back_is_not_waited_for_for_ever() {
        on_a_new_thread(|local, own| {
            let (batches, first) = (own.batch.load(Relaxed), events(own));
            own.take(16);
            write_events(local, 250);
            assert_eq!((own.taken(), own.nested.load(Relaxed)), (252, 0));
            write_events(local, 60_000);
            let nested = list::at(own.nested.load(Relaxed)).unwrap();
            assert_eq!((own.batch.load(Relaxed), events(nested)), (batches, 60_000));
            assert_eq!(nested.batch.load(Relaxed), 60_000 / 252);
            write_events(local, 6_000);
            assert!(own.batch.load(Relaxed) > batches);
            assert_eq!(events(own) - first + events(nested), 1 + 250 + 66_000);
        });
    }
}
