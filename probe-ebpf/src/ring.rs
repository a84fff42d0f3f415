//! The ring of the current CPU. One compare-and-exchange takes room, and a record is valid once the
//! word with its kind is written.
//!
//! The kernel's own ring buffer takes two helper calls for a record, which cost more than all of
//! this. Several programs may write to one ring: one can preempt another on its CPU, and CPUs that
//! came up late share rings. User space polls. It is woken whenever another eighth of a ring has
//! been filled.

use crate::{atomic::exchange, loss, maps::RINGS, news, output::now, settings};
use aya_ebpf::helpers::{bpf_get_smp_processor_id, generated::bpf_probe_read_user};
use core::{arch::asm, ffi::c_void, mem::transmute};
use ctrace_common::{
    COMMIT_WORD, COUNT_SHIFT, Change, Kind, MAX_VALUES, PAGE_SLOTS, PASSED_SITE, Page, READER_WORD,
    RING_FILLS, Record, SLOT_LEN, SLOT_VALUES, Slot, WAITED_NANOS, WRITER_WORD, slots_to_multiple,
};

/// The number of attempts to take room while others are quicker: programs that preempt this one, or
/// that run on a CPU with the same ring. It is small, since the verifier follows each attempt.
const TRIES: u32 = 4;

const FULL: u64 = u64::MAX;

/// The longest time that a thread waits for the reader, each time its buffer is full.
const LONGEST_WAIT_NANOS: u64 = 1_000_000;
/// Slots that a batch may need: its own and those that are skipped before it.
const LEAST_FREE: u64 = 2 * PAGE_SLOTS as u64;

/// The position of the passed site in its word of the buffer.
const PASSED_SITE_SHIFT: u32 = (PASSED_SITE % 8 * 8) as u32;

/// Room in a ring. It must be committed, because it holds up everything after it.
pub struct Room {
    first_page: u32,
    position: u64,
}

/// Takes room for a record or a control record. Returns `None` if the ring is full.
#[inline(always)]
pub fn reserve(slots: usize) -> Option<Room> {
    reserve_at(slots, 1)
}

/// Takes slots that begin at a multiple of their number. Slots before them are skipped.
#[inline(always)]
pub fn reserve_aligned(slots: usize) -> Option<Room> {
    let room = reserve_at(slots, slots)?;
    let skipped = slots_to_multiple(room.position, slots) as u64;
    if skipped > 0 {
        room.write(0, [0, 0, 0, (Kind::Skip as u64) << 32 | skipped << COUNT_SHIFT]);
    }
    Some(Room { position: room.position + skipped, ..room })
}

#[inline(always)]
fn reserve_at(slots: usize, alignment: usize) -> Option<Room> {
    // SAFETY: a helper without arguments.
    let first_page = settings::first_page(unsafe { bpf_get_smp_processor_id() });
    let positions = RINGS.get_ptr_mut(first_page)?.cast::<u64>();
    let position = match take(positions, slots as u64, alignment) {
        Some(position) => position,
        None => take_again(first_page, slots as u64, alignment),
    };
    if position == FULL {
        return None;
    }
    let next = position + slots_to_multiple(position, alignment) as u64 + slots as u64;
    // An eighth was passed. A large write may only change a bit above that of an eighth.
    if (position ^ next) & !(capacity() / 8 - 1) != 0 {
        news::wake(RING_FILLS);
    }
    Some(Room { first_page, position })
}

/// Waits for a limited time while less than a quarter of the ring is free. The reader may need this
/// CPU, so the thread goes on then, and waits again before its next buffer. A ring that is full is
/// not waited for: nobody may read it.
#[inline(always)]
pub fn wait_for_reader() {
    // SAFETY: a helper without arguments.
    let first_page = settings::first_page(unsafe { bpf_get_smp_processor_id() });
    let Some(positions) = RINGS.get_ptr(first_page) else { return };
    let positions = positions.cast::<u64>();
    let is_nearly_full = || {
        // SAFETY: words of the ring's first page.
        let filled = unsafe {
            let read = positions.add(READER_WORD).read_volatile();
            positions.add(WRITER_WORD).read_volatile().wrapping_sub(read)
        };
        let free = capacity().wrapping_sub(filled);
        free < capacity() / 4 && free >= LEAST_FREE
    };
    if !is_nearly_full() {
        return;
    }
    let begun = now();
    let mut waited = 0;
    while waited < LONGEST_WAIT_NANOS && is_nearly_full() {
        waited = now() - begun;
        // Without this instruction the verifier would follow every turn of the loop.
        // SAFETY: it only jumps.
        unsafe { asm!("may_goto {}", label { break }) };
    }
    loss::add_to(WAITED_NANOS, waited as u32);
}

/// Returns the number of slots, a power of two.
#[inline(always)]
fn capacity() -> u64 {
    settings::RING_PAGES.load() as u64 * PAGE_SLOTS as u64
}

impl Room {
    #[inline(always)]
    pub fn commit(self, record: Record) {
        // SAFETY: a record is four words without padding.
        self.write(0, unsafe { transmute::<Record, Slot>(record) });
    }

    /// Writes one of several records for which there is room.
    #[inline(always)]
    pub fn commit_nth(&self, nth: u32, record: Record) {
        // SAFETY: as above.
        self.write(nth.into(), unsafe { transmute::<Record, Slot>(record) });
    }

    /// Writes the first slot last, because it makes the record valid.
    #[inline(always)]
    pub fn commit_control(self, record: Record, change: Change) {
        self.write(1, change.to_slot());
        self.commit(record);
    }

    /// Writes `slots` slots of values behind the first slot. The fields of texts are behind them.
    #[inline(always)]
    pub fn write_values(&self, values: &[Slot], slots: usize) {
        for (nth, slot) in (0..slots).zip(values) {
            self.write(1 + nth as u64, *slot);
        }
    }

    /// Writes 0 for each of so many slots of values.
    #[inline(always)]
    pub fn write_zeros(&self, slots: usize) {
        for nth in 0..slots.min(MAX_VALUES / SLOT_VALUES) {
            self.write(1 + nth as u64, [0; SLOT_VALUES]);
        }
    }

    /// Writes one of the values for which there are slots.
    #[inline(always)]
    pub fn write_value(&self, place: u64, word: u64) {
        let position = self.position + 1 + place / SLOT_VALUES as u64;
        let Some(page) = self.page(position) else { return };
        // SAFETY: as in `write_from`.
        unsafe {
            let slot = page.cast::<Slot>().add(position as usize % PAGE_SLOTS).cast::<u64>();
            slot.add(place as usize % SLOT_VALUES).write_volatile(word);
        }
    }

    /// Writes a record, and after it the contents of a buffer of the current process without its
    /// first 32 bytes, in `slots` aligned slots. `site` goes beside the buffer's clock.
    #[inline(always)]
    pub fn commit_batch(self, slots: usize, record: Record, buffer: u64, site: u64) {
        if let Some(page) = self.page(self.position) {
            let first = self.position as usize & (PAGE_SLOTS - 1) & !(slots - 1);
            // SAFETY: the slots are ours until the first one is committed. The helper checks the
            // address itself. It zeroes memory that it cannot read, which makes no valid buffer.
            unsafe {
                let rest = page.cast::<Slot>().add(first + 1);
                let from = buffer.wrapping_add(SLOT_LEN as u64) as *const c_void;
                bpf_probe_read_user(rest.cast(), ((slots - 1) * SLOT_LEN) as u32, from);
                let word = rest.cast::<u64>().add(PASSED_SITE / 8 - SLOT_LEN / 8);
                *word = *word & ((1 << PASSED_SITE_SHIFT) - 1) | site << PASSED_SITE_SHIFT;
            }
        }
        self.commit(record);
    }

    /// Copies bytes of the current process into one of the slots, from its byte `AT` on, as far as there is
    /// room. Returns false if they cannot be read.
    #[inline(always)]
    pub fn copy<const AT: usize>(&self, nth: u64, length: u64, from: u64) -> bool {
        let position = self.position + nth;
        let Some(page) = self.page(position) else { return false };
        let length = length.min((SLOT_LEN - AT) as u64) as u32;
        // SAFETY: as above.
        unsafe {
            let slot = page.cast::<Slot>().add(position as usize % PAGE_SLOTS).cast::<u8>();
            bpf_probe_read_user(slot.add(AT).cast(), length, from as *const c_void) == 0
        }
    }

    /// Writes a byte of the slots from `nth` on.
    #[inline(always)]
    pub fn write_byte(&self, nth: u64, at: u64, byte: u8) {
        let position = self.position + nth + at / SLOT_LEN as u64;
        let Some(page) = self.page(position) else { return };
        // SAFETY: as above.
        unsafe {
            let slot = page.cast::<Slot>().add(position as usize % PAGE_SLOTS).cast::<u8>();
            slot.add(at as usize % SLOT_LEN).write_volatile(byte);
        }
    }

    /// Returns the page of a position. User space has sized the map, so the page exists.
    #[inline(always)]
    fn page(&self, position: u64) -> Option<*mut Page> {
        let page = (position as u32 / PAGE_SLOTS as u32) & (settings::RING_PAGES.load() - 1);
        RINGS.get_ptr_mut(self.first_page + 1 + page)
    }

    /// Writes one of the slots, the commit word last.
    #[inline(always)]
    fn write(&self, nth: u64, words: Slot) {
        self.write_from(nth, &words);
    }

    /// Does the same. The words are read as late as possible, which takes less of the stack.
    #[inline(always)]
    pub fn write_from(&self, nth: u64, words: &Slot) {
        let position = self.position + nth;
        let Some(page) = self.page(position) else { return };
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

/// Advances the writers' position and returns the old one, or `FULL`. Returns `None` if another
/// program was quicker.
#[inline(always)]
fn take(positions: *mut u64, slots: u64, alignment: usize) -> Option<u64> {
    // SAFETY: words of the ring's first page. The reader's position is read last: it may pass an
    // outdated writers' position, and then the exchange fails.
    unsafe {
        let position = positions.add(WRITER_WORD).read_volatile();
        let read = positions.add(READER_WORD).read_volatile();
        let slots = slots_to_multiple(position, alignment) as u64 + slots;
        if position.wrapping_sub(read).wrapping_add(slots) as i64 > capacity() as i64 {
            return Some(FULL);
        }
        exchange(positions.add(WRITER_WORD), position, position + slots).then_some(position)
    }
}

#[cold]
#[inline(never)]
fn take_again(first_page: u32, slots: u64, alignment: usize) -> u64 {
    let Some(positions) = RINGS.get_ptr_mut(first_page) else { return FULL };
    for _ in 1..TRIES {
        if let Some(position) = take(positions.cast(), slots, alignment) {
            return position;
        }
    }
    FULL
}
