//! The buffers of markers. They are shipped when they are full, and their rest when their thread
//! dies. The format is in `docs/marker-format.md`.

use crate::{
    loss,
    maps::{BUFFERS, CUT_OFF},
    output::{Task, control, now, traced_task},
    registers::Registers,
    ring::{reserve_aligned, wait_for_reader},
    settings,
    turns::repeat,
};
use aya_ebpf::{
    EbpfContext as _,
    helpers::{bpf_get_attach_cookie, bpf_probe_read_user},
    macros::uprobe,
    programs::ProbeContext,
};
use aya_log_ebpf::warn;
use core::mem::offset_of;
use ctrace_common::{
    BATCH_SLOTS, BUFFER_LEN, BUFFERS_PER_THREAD, BufferHeader, BufferKey, Change, Cookie,
    HEADER_LEN, Kind, LOST_MARKS, MARK_LEN, Record, SLOT_LEN, ThreadBuffer,
};

/// The site of a runtime. Its address in the process gives the addresses of the scopes.
#[derive(Clone, Copy)]
struct Site {
    ip: u64,
    runtime: u32,
}

impl Site {
    #[inline(always)]
    fn of(ctx: &ProbeContext) -> Self {
        // SAFETY: the helper takes the program's own context.
        let cookie = Cookie(unsafe { bpf_get_attach_cookie(ctx.as_ptr()) });
        Self { ip: Registers::of(ctx).ip(), runtime: cookie.probe() }
    }
}

/// Does nothing. This control point of a scope only serves its semaphore: its code never runs.
#[uprobe]
pub fn nothing(_ctx: ProbeContext) -> u32 {
    0
}

/// Ships a buffer that is full, or whose thread ends.
#[uprobe]
pub fn flush(ctx: ProbeContext) -> u32 {
    if let Some(task) = traced_task() {
        deliver(task, Registers::of(&ctx).first_argument(), Site::of(&ctx));
    }
    0
}

/// The same, but a full buffer waits first while the ring is nearly full.
#[uprobe]
pub fn flush_waiting(ctx: ProbeContext) -> u32 {
    if let Some(task) = traced_task() {
        let buffer = Registers::of(&ctx).first_argument();
        // The rest of a thread that ends is little.
        if taken(buffer) > MEDIUM {
            wait_for_reader();
        }
        deliver(task, buffer, Site::of(&ctx));
    }
    0
}

/// Registers a thread's new buffer.
#[uprobe]
pub fn register(ctx: ProbeContext) -> u32 {
    let Some(task) = traced_task() else { return 0 };
    let buffer = Registers::of(&ctx).first_argument();
    let tid: u32 = read(buffer, offset_of!(BufferHeader, tid)).unwrap_or(0);
    for number in 0..BUFFERS_PER_THREAD {
        match BUFFERS.get_ptr(key(task.tid, number)) {
            // SAFETY: the entry is this thread's alone.
            Some(known) if unsafe { (*known).address } == buffer => break,
            Some(_) => {}
            None => {
                let own = ThreadBuffer { address: buffer, tid: tid as u64 };
                if BUFFERS.insert(key(task.tid, number), own, 0).is_err() {
                    warn!(
                        &ctx,
                        "too many threads with markers: thread {} is not watched", task.tid
                    );
                }
                break;
            }
        }
    }
    let site = Site::of(&ctx);
    control(
        task,
        Change::Buffer { runtime: site.runtime, inside: tid, address: buffer, site: site.ip },
    );
    0
}

/// Ships the rest of the current thread's known buffers. A buffer that the thread has given back
/// may be another thread's by now.
#[inline(always)]
pub fn deliver_rest(task: Task) {
    if settings::MARKS.load() == 0 {
        return;
    }
    repeat(
        BUFFERS_PER_THREAD,
        #[inline(always)]
        |number| {
            let Some(own) = BUFFERS.get_ptr(key(task.tid, number)) else { return false };
            // SAFETY: the entry is this thread's alone.
            let ThreadBuffer { address, tid } = unsafe { *own };
            let is_own = read::<u32>(address, offset_of!(BufferHeader, tid))
                .is_some_and(|now| now as u64 == tid);
            if is_own && taken(address) != 0 {
                deliver(task, address, Site { ip: 0, runtime: 0 });
            }
            true
        },
    );
}

/// Forgets the buffers of a thread.
#[inline(always)]
pub fn forget(tid: u32) {
    if settings::MARKS.load() == 0 {
        return;
    }
    repeat(BUFFERS_PER_THREAD, |number| BUFFERS.remove(key(tid, number)).is_ok());
}

#[inline(always)]
fn key(tid: u32, number: u32) -> u64 {
    (tid as u64) << 32 | number as u64
}

#[inline(always)]
fn deliver(task: Task, buffer: u64, site: Site) {
    let taken = taken(buffer);
    let delivered = if taken <= SMALL {
        deliver_in::<{ BATCH_SLOTS[0] }>(task, buffer, site)
    } else if taken <= MEDIUM {
        deliver_in::<{ BATCH_SLOTS[1] }>(task, buffer, site)
    } else {
        deliver_in::<{ BATCH_SLOTS[2] }>(task, buffer, site)
    };
    if !delivered {
        note_loss(task, buffer, taken);
    }
}

/// Notes the total number of events of the buffer. Its next batch tells the number of missing
/// events before it; this note counts if there is no next batch.
#[inline(always)]
fn note_loss(task: Task, buffer: u64, taken: u32) {
    let before: u64 = read(buffer, offset_of!(BufferHeader, events)).unwrap_or(0);
    let key = BufferKey { pid: task.pid as u64, address: buffer };
    let whole: u16 = read(buffer, offset_of!(BufferHeader, whole)).unwrap_or(0);
    let events = taken + whole as u32;
    if CUT_OFF.insert(key, before.wrapping_add(events as u64), 0).is_err() {
        loss::add_to(LOST_MARKS, events);
    }
}

const SMALL: u32 = slots_in(BATCH_SLOTS[0]);
const MEDIUM: u32 = slots_in(BATCH_SLOTS[1]);

/// Returns the number of buffer slots, besides the header, that fit into `slots` slots of a ring.
const fn slots_in(slots: usize) -> u32 {
    ((slots * SLOT_LEN - HEADER_LEN) / MARK_LEN) as u32
}

#[inline(always)]
fn deliver_in<const SLOTS: usize>(task: Task, buffer: u64, site: Site) -> bool {
    // The time is taken before the room: a reader that sees a later record of this thread has seen
    // this one.
    let ts_ns = now();
    let Some(room) = reserve_aligned(SLOTS) else { return false };
    let record = Record {
        ts_ns,
        sp: buffer,
        pid: task.pid,
        tid: task.tid,
        probe: site.runtime,
        kind: Kind::Batch as u8,
        reserved: 0,
        lost_before: SLOTS as u16,
    };
    room.commit_batch(SLOTS, record, buffer, site.ip);
    true
}

/// Returns the number of taken slots of a buffer.
#[inline(always)]
fn taken(buffer: u64) -> u32 {
    let position: u32 = read(buffer, offset_of!(BufferHeader, position)).unwrap_or(0);
    position.clamp(HEADER_LEN as u32, BUFFER_LEN as u32).wrapping_sub(HEADER_LEN as u32)
        / MARK_LEN as u32
}

/// Reads a field of a buffer's header.
#[inline(always)]
fn read<T>(buffer: u64, offset: usize) -> Option<T> {
    // SAFETY: the helper checks the address itself and fails on a bad one.
    unsafe { bpf_probe_read_user(buffer.wrapping_add(offset as u64) as *const T) }.ok()
}
