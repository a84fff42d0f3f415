//! A thread's buffer, byte for byte as in docs/marker-format.md.
//!
//! This crate is built without `ctrace-common`, which holds the layout that ctrace reads. So the
//! layout is repeated here. The test below compares the two.
//!
//! The owner writes it from ordinary code and from signal handlers. Others only look at `tid`,
//! `next` and `stack`. So every field is a relaxed atomic: on x86 such an access is a plain `mov`,
//! and the compiler neither splits nor merges it. `compiler_fence` keeps the order between fields.
//! That suffices for handlers of the same thread, and for other threads, since the CPU keeps the
//! order of stores.

use core::sync::atomic::{
    AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed,
};

pub(super) const SIZE: usize = 4096;
/// Offset of the first slot.
pub(super) const FIRST: u32 = 64;
/// The last slot. Whoever takes it empties the buffer.
pub(super) const LAST: u32 = 4080;
const SLOTS: usize = 252;
/// The bit in word 1 that marks a whole call.
const WHOLE: u64 = 2;
/// Kinds of slots before an entry, in word 1: a piece of a text, which begins with it,
pub(super) const TEXT_BEGINS: u64 = 1 << 2;
/// nothing,
const FILLER: u64 = 3 << 2;
/// a value.
pub(super) const VALUE: u64 = 4 << 2;
/// Not before an entry, but itself one of a point, with its small value from bit 47 on.
pub(super) const SAMPLE: u64 = 7 << 2;
/// The same pieces with eight further bytes, inverted, as word 0.
pub(super) const LONG_TEXT_BEGINS: u64 = 5 << 2;
/// The difference between the kinds of the first piece of a text and of a further one.
pub(super) const TEXT_FURTHER: u64 = 1 << 2;
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"ctraceb\x01");

#[repr(C)]
pub(super) struct Slot {
    word0: AtomicU64,
    word1: AtomicU64,
}

impl Slot {
    #[inline]
    pub(super) fn write(&self, word0: u64, word1: u64) {
        self.word0.store(word0, Relaxed);
        super::fence();
        self.word1.store(word1, Relaxed);
    }
}

#[repr(C, align(4096))]
pub(super) struct Buffer {
    pub(super) magic: AtomicU64,
    pub(super) next: AtomicUsize,
    pub(super) tid: AtomicU32,
    pub(super) position: AtomicU32,
    pub(super) nested: AtomicUsize,
    pub(super) events: AtomicU64,
    pub(super) clock: AtomicU8,
    pub(super) flushing: AtomicU8,
    /// The number of slots in this batch that hold a whole call, as exits count it for readers from
    /// outside. The final number is counted when the buffer is emptied.
    whole: AtomicU16,
    reserved: AtomicU32,
    pub(super) batch: AtomicU64,
    /// A stack pointer of its thread. In an unused buffer, the next unused buffer.
    pub(super) stack: AtomicUsize,
    slots: [Slot; SLOTS],
}

const _: () = assert!(
    size_of::<Buffer>() == SIZE
        && core::mem::offset_of!(Buffer, position) == 20
        && core::mem::offset_of!(Buffer, flushing) == 41
        && core::mem::offset_of!(Buffer, nested) == 24
        && core::mem::offset_of!(Buffer, whole) == 42
        && core::mem::offset_of!(Buffer, batch) == 48
        && core::mem::offset_of!(Buffer, stack) == 56
        && core::mem::offset_of!(Buffer, slots) == FIRST as usize
        && (LAST - FIRST) as usize == (SLOTS - 1) * size_of::<Slot>()
        && SLOTS.is_multiple_of(4)
);

impl Buffer {
    /// Takes slots of so many bytes. Returns the position of the first, which may be no slot at all.
    ///
    /// One instruction without `lock`: a signal handler comes before it or after it, and other
    /// threads do not write here.
    #[inline]
    pub(super) fn take(&self, bytes: u32) -> u32 {
        let mut taken = bytes;
        // SAFETY: a live, aligned 32-bit word; its other accesses are atomic as well, and
        // only the thread that runs this (and its handlers) changes it.
        unsafe {
            core::arch::asm!(
                "xadd dword ptr [{position}], {taken:e}",
                position = in(reg) self.position.as_ptr(),
                taken = inout(reg) taken,
                options(nostack),
            );
        }
        taken
    }

    /// Returns the slots from the one at `position` on, up to the end; none if no slot is there.
    #[inline]
    pub(super) fn slots_from(&self, position: u32) -> &[Slot] {
        self.slots.get((position.wrapping_sub(FIRST) / 16) as usize..).unwrap_or_default()
    }

    /// Fills the slots from `position` on.
    pub(super) fn fill(&self, position: u32, word0: u64) {
        self.slots_from(position).iter().for_each(|slot| slot.write(word0, FILLER));
    }

    /// Returns whether its thread is emptying it. The caller is a handler that interrupted that.
    pub(super) fn is_flushing(&self) -> bool {
        self.flushing.load(Relaxed) != 0
    }

    /// Returns whether every taken slot has been written. It is false in a handler that interrupted
    /// the writer.
    pub(super) fn is_written(&self) -> bool {
        let taken = self.taken();
        if taken as usize == SLOTS {
            return !self.survey().0;
        }
        self.slots.iter().take(taken as usize).all(|slot| slot.word1.load(Relaxed) != 0)
    }

    /// Returns whether a slot is empty, and the number of slots that hold a whole call. It takes four
    /// slots at a time: it is a part of the cost of every event.
    fn survey(&self) -> (bool, u32) {
        let (empty, whole): (u32, u32);
        // SAFETY: reads the slots. Of this thread's handlers, which may write them meanwhile, an aligned
        // word is read as it was or as it is.
        unsafe {
            core::arch::asm!(
                "pxor {empty}, {empty}
                 pxor {whole}, {whole}
                 pxor {zero}, {zero}
                 2:
                 movq {low}, qword ptr [{slot} + 8]
                 movhps {low}, qword ptr [{slot} + 24]
                 movq {next}, qword ptr [{slot} + 40]
                 movhps {next}, qword ptr [{slot} + 56]
                 movaps {high}, {low}
                 shufps {low}, {next}, 0x88
                 shufps {high}, {next}, 0xdd
                 por {high}, {low}
                 pcmpeqd {high}, {zero}
                 por {empty}, {high}
                 pslld {low}, {above}
                 psrld {low}, 31
                 paddd {whole}, {low}
                 add {slot}, 64
                 cmp {slot}, {end}
                 jne 2b
                 pmovmskb {empties:e}, {empty}
                 pshufd {low}, {whole}, 0x4e
                 paddd {whole}, {low}
                 pshufd {low}, {whole}, 0xb1
                 paddd {whole}, {low}
                 movd {wholes:e}, {whole}",
                slot = inout(reg) self.slots.as_ptr() => _,
                end = in(reg) self.slots.as_ptr_range().end,
                empty = out(xmm_reg) _,
                whole = out(xmm_reg) _,
                zero = out(xmm_reg) _,
                low = out(xmm_reg) _,
                high = out(xmm_reg) _,
                next = out(xmm_reg) _,
                empties = lateout(reg) empty,
                wholes = lateout(reg) whole,
                above = const 31 - WHOLE.trailing_zeros(),
                options(nostack, readonly),
            );
        }
        (empty != 0, whole)
    }

    /// Returns whether a fork has wiped it.
    pub(super) fn is_wiped(&self) -> bool {
        self.magic.load(Relaxed) != MAGIC
    }

    /// Returns the number of slots taken in this batch.
    pub(super) fn taken(&self) -> u32 {
        self.position.load(Relaxed).clamp(FIRST, SIZE as u32).wrapping_sub(FIRST) / 16
    }

    /// Returns the number of events in this batch, and stores its number of whole calls.
    pub(super) fn count_events(&self) -> u64 {
        let (_, whole) = self.survey();
        self.whole.store(whole as u16, Relaxed);
        u64::from(self.taken() + whole)
    }

    /// Returns whether an event was written outside the slots of this batch, by a writer that was
    /// interrupted while an earlier batch was emptied.
    pub(super) fn holds_any(&self) -> bool {
        self.slots.iter().any(|slot| slot.word1.load(Relaxed) != 0)
    }

    #[cfg(test)]
    pub(super) fn read(&self, slot: usize) -> (u64, u64) {
        (self.slots[slot].word0.load(Relaxed), self.slots[slot].word1.load(Relaxed))
    }

    /// Makes all slots empty.
    pub(super) fn wipe(&self) {
        self.whole.store(0, Relaxed);
        // SAFETY: writes the slots and nothing else. Only this thread's handlers also write them,
        // before or after, and at worst between two stores, which the format allows for.
        unsafe {
            core::arch::asm!(
                "rep stosq",
                inout("rcx") SLOTS * 2 => _,
                inout("rdi") &raw const self.slots => _,
                in("rax") 0,
                options(nostack, preserves_flags),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::clock, *};
    use core::mem::offset_of;
    use ctrace_common::{BUFFER_LEN, BUFFER_MAGIC, BUFFER_SLOTS, BufferHeader, HEADER_LEN, Mark};

    #[test]
    fn a_survey_finds_every_slot() {
        let whole = |slot: usize| slot.is_multiple_of(3);
        // SAFETY: zeros are a buffer without events.
        let buffer: Buffer = unsafe { core::mem::zeroed() };
        // Only the lower or only the upper half of it is not zero.
        let tag = |slot: usize| match whole(slot) {
            true => WHOLE,
            false => 1 << (slot % 2 * 40),
        };
        for slot in 0..SLOTS {
            assert_eq!(
                buffer.survey(),
                (true, (0..slot).filter(|slot| whole(*slot)).count() as u32)
            );
            buffer.slots[slot].write(5, tag(slot));
        }
        assert_eq!(buffer.survey(), (false, 84));
        for slot in 0..SLOTS {
            buffer.slots[slot].write(5, 0);
            assert_eq!(buffer.survey(), (true, 84 - u32::from(whole(slot))), "{slot}");
            buffer.slots[slot].write(5, tag(slot));
        }
    }

    #[test]
    fn the_layout_is_the_one_that_ctrace_reads() {
        macro_rules! check {
            ($($field:ident),*) => {
                $(assert_eq!(
                    offset_of!(Buffer, $field),
                    offset_of!(BufferHeader, $field),
                    stringify!($field)
                );)*
            };
        }
        check!(magic, next, tid, position, nested, events, clock, flushing, whole, reserved, batch);
        check!(stack);
        assert_eq!((SIZE, FIRST as usize, SLOTS), (BUFFER_LEN, HEADER_LEN, BUFFER_SLOTS));
        assert_eq!(offset_of!(Slot, word0), offset_of!(Mark, time));
        assert_eq!(offset_of!(Slot, word1), offset_of!(Mark, tag));
        assert_eq!(size_of::<Slot>(), size_of::<Mark>());
        assert_eq!((MAGIC, WHOLE), (BUFFER_MAGIC, Mark::WHOLE));
        let kinds = |first| (first, first + TEXT_FURTHER);
        assert_eq!(kinds(TEXT_BEGINS), (Mark::NAME_BEGINS, Mark::NAME_GOES_ON));
        assert_eq!(kinds(LONG_TEXT_BEGINS), (Mark::LONG_NAME_BEGINS, Mark::LONG_NAME_GOES_ON));
        assert_eq!((FILLER, VALUE, SAMPLE), (Mark::FILLER, Mark::VALUE, Mark::SAMPLE));
        assert_eq!(super::super::text::LONGEST, Mark::LONGEST_TEXT);
        assert_eq!(super::super::record::PIECE, Mark::LONGEST_PIECE);
        assert_eq!(clock::MASK, (1 << Mark::TIME_BITS) - 1);
        assert_eq!(clock::TSC, ctrace_common::CLOCK_TSC);
        assert_eq!(clock::MONOTONIC, ctrace_common::CLOCK_MONOTONIC);
    }
}
