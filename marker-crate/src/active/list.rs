//! The buffers of this copy of the runtime: a list of all, and a stack of the unused.
//!
//! Both are lock-free, because a signal handler may interrupt any of it and use them. Buffers are
//! never unmapped, so an old address stays readable. The stack's head carries a number that each
//! push changes. Otherwise the stack would break if another thread takes a buffer and gives it back
//! between this thread's read and its exchange.

use super::{
    buffer::{Buffer, FIRST, MAGIC},
    clock, runtime, sys,
};
use core::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// The first buffer of the list; the runtime section points here.
pub(super) static LIST: AtomicUsize = AtomicUsize::new(0);

/// The topmost free buffer: its address without the low 12 bits, and 28 bits of count above.
static FREE: AtomicU64 = AtomicU64::new(0);

/// Returns the buffer at an address kept in a list or a thread's part.
pub(super) fn at<'a>(address: usize) -> Option<&'a Buffer> {
    // SAFETY: such an address is 0 or that of a buffer made by `make`, which is never unmapped. All
    // fields are atomic and zeros are valid, so it may be shared at any time.
    unsafe { (address as *const Buffer).as_ref() }
}

pub(super) fn address(buffer: &Buffer) -> usize {
    core::ptr::from_ref(buffer) as usize
}

/// Gets a buffer for this thread, in the list and registered; `None` without memory.
pub(super) fn acquire<'a>() -> Option<&'a Buffer> {
    forget_the_parent();
    let tid = sys::gettid();
    let buffer = match pop() {
        Some(buffer) => {
            buffer.tid.store(tid, Relaxed);
            buffer
        }
        None => make(tid)?,
    };
    let here = 0_u8;
    buffer.stack.store(core::ptr::from_ref(&here) as usize, Relaxed);
    runtime::register(buffer);
    Some(buffer)
}

/// Gives back an empty buffer.
pub(super) fn release(buffer: &Buffer) {
    buffer.nested.store(0, Relaxed);
    buffer.tid.store(0, Release);
    let mut head = FREE.load(Relaxed);
    loop {
        buffer.stack.store(top(head), Relaxed);
        let count = (head >> 36).wrapping_add(1) << 36;
        let new = count | (address(buffer) as u64 >> 12);
        match FREE.compare_exchange_weak(head, new, Release, Relaxed) {
            Ok(_) => return,
            Err(now) => head = now,
        }
    }
}

fn top(head: u64) -> usize {
    (head << 12 & ((1 << 48) - 1)) as usize
}

fn pop<'a>() -> Option<&'a Buffer> {
    let mut head = FREE.load(Acquire);
    loop {
        let buffer = at(top(head))?;
        let next = buffer.stack.load(Relaxed) as u64 >> 12;
        let new = head >> 36 << 36 | next;
        match FREE.compare_exchange_weak(head, new, Acquire, Acquire) {
            Ok(_) => return Some(buffer),
            Err(now) => head = now,
        }
    }
}

fn make<'a>(tid: u32) -> Option<&'a Buffer> {
    let buffer = at(sys::map()?)?;
    buffer.tid.store(tid, Relaxed);
    buffer.clock.store(clock::clock(), Relaxed);
    buffer.position.store(FIRST, Relaxed);
    buffer.magic.store(MAGIC, Relaxed);
    let mut head = LIST.load(Relaxed);
    loop {
        buffer.next.store(head, Relaxed);
        match LIST.compare_exchange_weak(head, address(buffer), AcqRel, Relaxed) {
            Ok(_) => return Some(buffer),
            Err(now) => head = now,
        }
    }
}

/// Empties the list in a forked child. Its buffers belong to threads of the parent. The fork has
/// wiped them, which shows the fork. (A process id would also show a `vfork`, whose child must
/// leave the list alone.) Wiped buffers are not used again, so the first of the list is never
/// mistaken for an earlier one.
fn forget_the_parent() {
    let head = LIST.load(Acquire);
    if at(head).is_some_and(Buffer::is_wiped) {
        FREE.store(0, Relaxed);
        let _ = LIST.compare_exchange(head, 0, AcqRel, Relaxed);
    }
}
