//! The ring of the current CPU: room is taken with one compare-and-exchange, and a record is there
//! once the word that holds its kind is.
//!
//! The kernel's own ring buffer takes two helper calls for a record, which cost more than all of
//! this. Several programs may be at work in one ring: one can preempt another on its CPU, and CPUs
//! that came up late share rings. Nobody is woken: user space polls.

use crate::{atomic::exchange, maps::RINGS, settings};
use aya_ebpf::helpers::{bpf_get_smp_processor_id, generated::bpf_probe_read_user};
use core::{ffi::c_void, mem::transmute};
use ctrace_common::{
    COMMIT_WORD, CONTROL_SLOTS, Control, Kind, PAGE_LEN, PAGE_SLOTS, Page, READER_WORD, Record,
    SLOT_LEN, Slot, WRITER_WORD, slots_to_page,
};

/// How often room is asked for while others are quicker. One program can only be overtaken by
/// others that preempt it, or that run on a CPU with the same ring.
const TRIES: u32 = 8;

/// Room for a record, to be committed without fail: it holds up what lies behind it.
pub struct OneSlot(*mut Slot);

/// Room for a control record.
pub struct TwoSlots(*mut Slot, *mut Slot);

/// Room for a record with a marker buffer.
pub struct OnePage(*mut Page);

#[inline(always)]
pub fn reserve_one() -> Option<OneSlot> {
    reserve(|_| 1, |first, position| Some(OneSlot(slot(first, position)?)))
}

#[inline(always)]
pub fn reserve_two() -> Option<TwoSlots> {
    reserve(|_| CONTROL_SLOTS as u64, |first, position| {
        Some(TwoSlots(slot(first, position)?, slot(first, position + 1)?))
    })
}

/// A page begins at a multiple of its slots: what lies before is skipped.
#[inline(always)]
pub fn reserve_page() -> Option<OnePage> {
    let count = |position| (slots_to_page(position) + PAGE_SLOTS) as u64;
    let (skipped, page) = reserve(count, |first, position| {
        let skipped = slots_to_page(position) as u64;
        let here = if skipped == 0 { None } else { Some(slot(first, position)?) };
        Some((here, page(first, position + skipped)?))
    })?;
    if let Some(here) = skipped {
        OneSlot(here).commit(Record { kind: Kind::Skip as u8, ..EMPTY });
    }
    Some(OnePage(page))
}

const EMPTY: Record = Record {
    ts_ns: 0,
    sp: 0,
    pid: 0,
    tid: 0,
    probe: 0,
    kind: 0,
    reserved: 0,
    lost_before: 0,
};

impl OnePage {
    /// Copies a buffer of the current process, but for the bytes that the record takes.
    #[inline(always)]
    pub fn commit(self, record: Record, buffer: u64) {
        // SAFETY: the page is ours until its first slot is committed. The helper checks the
        // address itself, and zeroes what it cannot read, which makes no buffer.
        unsafe {
            let rest = self.0.cast::<Slot>().add(1);
            let from = buffer + SLOT_LEN as u64;
            bpf_probe_read_user(rest.cast(), (PAGE_LEN - SLOT_LEN) as u32, from as *const c_void);
            write(self.0.cast(), transmute::<Record, Slot>(record));
        }
    }
}

impl OneSlot {
    #[inline(always)]
    pub fn commit(self, record: Record) {
        // SAFETY: a record is four words without padding; the slot is ours until it is committed.
        unsafe { write(self.0, transmute::<Record, Slot>(record)) };
    }
}

impl TwoSlots {
    #[inline(always)]
    pub fn commit(self, control: Control) {
        // SAFETY: a control record is eight words without padding; the slots are ours until the
        // first is committed.
        unsafe {
            let [record, rest] = transmute::<Control, [Slot; CONTROL_SLOTS]>(control);
            write(self.1, rest);
            write(self.0, record);
        }
    }
}

/// Writes a slot, the commit word last.
///
/// # Safety
/// `slot` lies in an element of `RINGS`.
#[inline(always)]
unsafe fn write(slot: *mut Slot, words: Slot) {
    // SAFETY: the slot's words. The compiler keeps volatile stores in order, and x86-64 all stores.
    unsafe {
        let to = slot.cast::<u64>();
        to.write_volatile(words[0]);
        to.add(1).write_volatile(words[1]);
        to.add(2).write_volatile(words[2]);
        to.add(COMMIT_WORD).write_volatile(words[COMMIT_WORD]);
    }
}

/// Takes as many slots as `count` says for a position, and looks them up with `at` before that: it
/// must not fail afterwards.
#[inline(always)]
fn reserve<T>(count: impl Fn(u64) -> u64, at: impl Fn(u32, u64) -> Option<T>) -> Option<T> {
    // SAFETY: a helper without arguments.
    let first = settings::first_page(unsafe { bpf_get_smp_processor_id() });
    let positions = RINGS.get_ptr_mut(first)?.cast::<u64>();
    let capacity = settings::RING_PAGES.load() as u64 * PAGE_SLOTS as u64;
    for _ in 0..TRIES {
        // SAFETY: words of the ring's first page. The reader's position is read last: it may pass
        // a writer's position that is out of date, and then the exchange fails.
        unsafe {
            let writer = positions.add(WRITER_WORD).read_volatile();
            let reader = positions.add(READER_WORD).read_volatile();
            let count = count(writer);
            if writer.wrapping_sub(reader).wrapping_add(count) as i64 > capacity as i64 {
                return None;
            }
            let slots = at(first, writer)?;
            if exchange(positions.add(WRITER_WORD), writer, writer + count) {
                return Some(slots);
            }
        }
    }
    None
}

#[inline(always)]
fn page(first: u32, position: u64) -> Option<*mut Page> {
    let page = position as u32 / PAGE_SLOTS as u32 & (settings::RING_PAGES.load() - 1);
    RINGS.get_ptr_mut(first + 1 + page)
}

#[inline(always)]
fn slot(first: u32, position: u64) -> Option<*mut Slot> {
    let slots = page(first, position)?.cast::<Slot>();
    // SAFETY: within the page.
    Some(unsafe { slots.add(position as usize % PAGE_SLOTS) })
}
