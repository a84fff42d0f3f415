//! The ring of the current CPU: room is taken with one compare-and-exchange, and a record is there
//! once the word that holds its kind is.
//!
//! The kernel's own ring buffer takes two helper calls for a record, which cost more than all of
//! this. Several programs may be at work in one ring: one can preempt another on its CPU, and CPUs
//! that came up late share rings. Nobody is woken: user space polls.

use crate::{atomic::exchange, maps::RINGS, settings};
use aya_ebpf::helpers::bpf_get_smp_processor_id;
use core::mem::transmute;
use ctrace_common::{
    COMMIT_WORD, CONTROL_SLOTS, Control, PAGE_SLOTS, READER_WORD, Record, Slot, WRITER_WORD,
};

/// How often room is asked for while others are quicker: programs that preempt this one, or that run
/// on a CPU with the same ring. Few, since the verifier follows each.
const TRIES: u32 = 4;

const FULL: u64 = u64::MAX;

/// Room in a ring, to be committed without fail: it holds up what lies behind it.
pub struct Room {
    first_page: u32,
    position: u64,
}

/// Takes room for a record or a control record; `None` when the ring is full.
#[inline(always)]
pub fn reserve(slots: usize) -> Option<Room> {
    // SAFETY: a helper without arguments.
    let first_page = settings::first_page(unsafe { bpf_get_smp_processor_id() });
    let positions = RINGS.get_ptr_mut(first_page)?.cast::<u64>();
    let position = match take(positions, slots as u64) {
        Some(position) => position,
        None => take_again(first_page, slots as u64),
    };
    if position == FULL { None } else { Some(Room { first_page, position }) }
}

impl Room {
    #[inline(always)]
    pub fn commit(self, record: Record) {
        // SAFETY: a record is four words without padding.
        self.write(0, unsafe { transmute::<Record, Slot>(record) });
    }

    /// The first slot last: it is the one that says the record is there.
    #[inline(always)]
    pub fn commit_control(self, control: Control) {
        // SAFETY: a control record is eight words without padding.
        let [record, rest] = unsafe { transmute::<Control, [Slot; CONTROL_SLOTS]>(control) };
        self.write(1, rest);
        self.write(0, record);
    }

    /// Writes one of the slots, the commit word last.
    #[inline(always)]
    fn write(&self, nth: u64, words: Slot) {
        let position = self.position + nth;
        let page = (position as u32 / PAGE_SLOTS as u32) & (settings::RING_PAGES.load() - 1);
        // User space has sized the map: the page is there.
        let Some(page) = RINGS.get_ptr_mut(self.first_page + 1 + page) else { return };
        // SAFETY: a slot of the page, which is ours until it is committed. The compiler keeps
        // volatile stores in order, and x86-64 keeps all stores in order.
        unsafe {
            let slot = page.cast::<Slot>().add(position as usize % PAGE_SLOTS).cast::<u64>();
            slot.write_volatile(words[0]);
            slot.add(1).write_volatile(words[1]);
            slot.add(2).write_volatile(words[2]);
            slot.add(COMMIT_WORD).write_volatile(words[COMMIT_WORD]);
        }
    }
}

/// Moves the writers' position on and says where it was, or `FULL`; `None` when another program
/// was quicker.
#[inline(always)]
fn take(positions: *mut u64, slots: u64) -> Option<u64> {
    let capacity = settings::RING_PAGES.load() as u64 * PAGE_SLOTS as u64;
    // SAFETY: words of the ring's first page. The reader's position is read last: it may pass a
    // writers' position that is out of date, and then the exchange fails.
    unsafe {
        let position = positions.add(WRITER_WORD).read_volatile();
        let read = positions.add(READER_WORD).read_volatile();
        if position.wrapping_sub(read).wrapping_add(slots) as i64 > capacity as i64 {
            return Some(FULL);
        }
        exchange(positions.add(WRITER_WORD), position, position + slots).then_some(position)
    }
}

#[cold]
#[inline(never)]
fn take_again(first_page: u32, slots: u64) -> u64 {
    let Some(positions) = RINGS.get_ptr_mut(first_page) else { return FULL };
    for _ in 1..TRIES {
        if let Some(position) = take(positions.cast(), slots) {
            return position;
        }
    }
    FULL
}
