//! Decodes the bytes of a marker buffer into its header and its events.

pub use ctrace_common::BUFFER_LEN;
use ctrace_common::{
    BUFFER_MAGIC, BUFFER_SLOTS, BufferHeader, CLOCK_MONOTONIC, CLOCK_TSC, HEADER_LEN, MARK_LEN,
    Mark, PASSED_SITE, PASSED_SITE_LEN,
};

pub(super) const TIME_MASK: u64 = (1 << Mark::TIME_BITS) - 1;

/// The writer's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    Tsc,
    Monotonic,
}

/// The first 64 bytes of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Address of the next buffer, or 0.
    pub next: u64,
    /// Its thread, in the target's pid namespace; 0 for none.
    pub tid: u32,
    pub position: u32,
    /// The number of times it has been emptied.
    pub batch: u64,
    /// Events written in all earlier batches.
    pub events: u64,
    pub clock: Clock,
    /// The approximate number of slots with whole calls in this batch; 0 in shipped buffers.
    pub whole: u16,
    /// True while its thread empties it.
    pub is_flushing: bool,
    /// A stack pointer of its thread.
    pub stack: u64,
    /// True if bits are set that this version of the format does not define.
    pub is_reserved_set: bool,
}

impl Header {
    /// Returns `None` if these bytes are no buffer, or a fork has wiped it.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let header = BufferHeader::from_bytes(bytes.first_chunk()?);
        if header.magic != BUFFER_MAGIC {
            return None;
        }
        let clock = match header.clock {
            CLOCK_TSC => Clock::Tsc,
            CLOCK_MONOTONIC => Clock::Monotonic,
            _ => return None,
        };
        let BufferHeader { next, tid, position, batch, events, whole, stack, .. } = header;
        Some(Self {
            next,
            tid,
            position,
            batch,
            events,
            clock,
            whole,
            is_flushing: header.flushing != 0,
            stack,
            is_reserved_set: header.reserved != 0,
        })
    }

    /// Returns the number of slots taken in this batch.
    pub fn taken(&self) -> usize {
        let bytes = (self.position as usize).clamp(HEADER_LEN, BUFFER_LEN) - HEADER_LEN;
        bytes / MARK_LEN
    }
}

/// Restores the magic number of a buffer: the programs use its place for other data.
pub(super) fn mark(bytes: &mut [u8; BUFFER_LEN]) {
    bytes[..8].copy_from_slice(&BUFFER_MAGIC.to_le_bytes());
}

/// Takes out the flush site's address in the process, which the programs put beside the clock.
pub(super) fn take_passed_site(bytes: &mut [u8; BUFFER_LEN]) -> u64 {
    let Some(header) = bytes.first_chunk_mut::<HEADER_LEN>() else { return 0 };
    let site = BufferHeader::from_bytes(header).passed_site();
    header[PASSED_SITE..PASSED_SITE + PASSED_SITE_LEN].fill(0);
    site
}

/// One slot of a buffer, as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    /// The low bits of the writer's clock.
    pub(super) time: u64,
    /// The low bits of the stack pointer at the scope's entry.
    pub(super) sp: u64,
    /// The number of these bits.
    pub(super) sp_bits: u32,
    /// Address of the scope's site.
    pub(super) site: u64,
    pub(super) moment: Moment,
}

/// The kind of event in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Enter,
    Exit,
    /// Entry and exit of a call of this duration.
    Whole(u64),
    /// Entry of a point whose value is in the same slot.
    Sample,
    /// No event: a piece of the name or of a value of the entry behind, or filler.
    Piece,
    /// A kind that this version of the format does not define.
    Unknown,
}

impl Slot {
    /// Returns whether the slot at `index` is written. A slot without a time was torn.
    #[inline]
    pub(super) fn is_written(buffer: &[u8; BUFFER_LEN], index: usize) -> bool {
        let mark = mark_at(buffer, index);
        mark.time != 0 && mark.tag != 0
    }

    /// Returns whether the slot at `index` holds a whole call.
    #[inline]
    pub(super) fn is_whole_call(buffer: &[u8; BUFFER_LEN], index: usize) -> bool {
        mark_at(buffer, index).tag & Mark::WHOLE != 0
    }

    /// Reads the written slot at `index`.
    #[inline]
    pub(super) fn read(buffer: &[u8; BUFFER_LEN], index: usize) -> Self {
        let Mark { time, tag } = mark_at(buffer, index);
        let near = time >> Mark::TIME_BITS << Mark::SP_LOW;
        let rest = tag >> Mark::REST_SHIFT;
        let far = near | rest << Mark::SP_NEAR;
        let (moment, sp, sp_bits) = match tag & (Mark::EXIT | Mark::WHOLE | Mark::KIND) {
            0 => (Moment::Enter, far, Mark::SP_HIGH),
            Mark::EXIT => (Moment::Exit, far, Mark::SP_HIGH),
            Mark::WHOLE => (Moment::Whole(rest), near, Mark::SP_NEAR),
            Mark::NAME_BEGINS
            | Mark::NAME_GOES_ON
            | Mark::LONG_NAME_BEGINS
            | Mark::LONG_NAME_GOES_ON
            | Mark::FILLER
            | Mark::VALUE => (Moment::Piece, far, Mark::SP_HIGH),
            Mark::SAMPLE => (Moment::Sample, near, Mark::SP_NEAR),
            _ => (Moment::Unknown, far, Mark::SP_HIGH),
        };
        Self { time: time & TIME_MASK, sp, sp_bits, site: tag & Mark::SITE, moment }
    }

    /// Returns only the exit of a whole call whose entry is known.
    pub(super) fn into_exit(self) -> Self {
        match self.moment {
            Moment::Whole(duration) => Self {
                time: self.time.wrapping_add(duration) & TIME_MASK,
                moment: Moment::Exit,
                ..self
            },
            Moment::Enter | Moment::Exit | Moment::Sample | Moment::Piece | Moment::Unknown => self,
        }
    }

    /// Returns all bits of the stack pointer, given one of the same thread nearby.
    #[inline]
    pub(super) fn stack_pointer(&self, near: u64) -> u64 {
        let rest = u64::BITS - self.sp_bits;
        let distance = (self.sp.wrapping_sub(near) << rest) as i64 >> rest;
        near.wrapping_add_signed(distance)
    }
}

/// Returns the times in the written slots that have one.
pub(super) fn written_times(buffer: &[u8; BUFFER_LEN]) -> impl Iterator<Item = u64> {
    let written = (0..BUFFER_SLOTS).filter(|index| Slot::is_written(buffer, *index));
    let marks = written.map(|index| mark_at(buffer, index)).filter(Mark::has_time);
    marks.map(|mark| mark.time & TIME_MASK)
}

/// Returns whether every taken slot has been written.
pub(super) fn is_whole(buffer: &[u8; BUFFER_LEN]) -> bool {
    let taken = Header::parse(buffer).map_or(0, |header| header.taken());
    (0..taken).all(|index| Slot::is_written(buffer, index))
}

/// Returns the mark of a slot, zero beyond the last one.
#[inline]
pub(super) fn mark_at(buffer: &[u8; BUFFER_LEN], index: usize) -> Mark {
    let (slots, _) = buffer[HEADER_LEN..].as_chunks::<MARK_LEN>();
    slots.get(index).map(Mark::from_bytes).unwrap_or_default()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Writes a header as a runtime would.
    pub(in super::super) fn buffer(
        position: u32,
        batch: u64,
        events: u64,
    ) -> Box<[u8; BUFFER_LEN]> {
        let mut bytes = Box::new([0; BUFFER_LEN]);
        mark(&mut bytes);
        bytes[16..20].copy_from_slice(&77_u32.to_le_bytes());
        bytes[20..24].copy_from_slice(&position.to_le_bytes());
        bytes[48..56].copy_from_slice(&batch.to_le_bytes());
        bytes[32..40].copy_from_slice(&events.to_le_bytes());
        bytes[40] = 1;
        bytes[56..64].copy_from_slice(&0x7fff_1234_5678_u64.to_le_bytes());
        bytes
    }

    /// Writes an event as a runtime would.
    pub(in super::super) fn put(
        buffer: &mut [u8; BUFFER_LEN],
        index: usize,
        (time, sp, site, exit): (u64, u64, u64, bool),
    ) {
        let at = HEADER_LEN + index * MARK_LEN;
        let first = time & 0xffff_ffff_ffff | sp >> 4 << 48;
        let second = site | u64::from(exit) | sp >> 20 << 47;
        buffer[at..at + 8].copy_from_slice(&first.to_le_bytes());
        buffer[at + 8..at + 16].copy_from_slice(&second.to_le_bytes());
    }

    /// Makes a whole call of the entry at `index`, as a runtime would.
    pub(in super::super) fn complete(buffer: &mut [u8; BUFFER_LEN], index: usize, duration: u64) {
        let second = mark_at(buffer, index).tag << 17 >> 17 | 2 | duration << 47;
        let at = HEADER_LEN + index * MARK_LEN + 8;
        buffer[at..at + 8].copy_from_slice(&second.to_le_bytes());
    }

    #[test]
    fn a_header_is_read() {
        let bytes = buffer(96, 5, 1000);
        let header = Header::parse(&bytes[..]).expect("a header");
        assert_eq!((header.tid, header.batch, header.events), (77, 5, 1000));
        assert_eq!((header.taken(), header.stack), (2, 0x7fff_1234_5678));
        assert_eq!(Header { position: 0, ..header }.taken(), 0);
        assert_eq!(Header { position: 5000, ..header }.taken(), 252);
    }

    #[test]
    fn other_bytes_are_no_header() {
        assert_eq!(Header::parse(&[0; 4096]), None);
        assert_eq!(Header::parse(&buffer(64, 0, 0)[..63]), None);
        let mut unknown_clock = buffer(64, 0, 0);
        unknown_clock[40] = 3;
        assert_eq!(Header::parse(&unknown_clock[..]), None);
    }

    #[test]
    fn a_slot_tells_all_its_bits() {
        let mut bytes = buffer(64, 0, 0);
        let (time, sp, site) = (0x1234_5678_9abc, 0x7ffd_cafe_b000, 0x5555_5555_4020);
        put(&mut bytes, 3, (time, sp, site, true));
        let slot = Slot::read(&bytes, 3);
        assert_eq!((slot.time, slot.site, slot.moment), (time, site, Moment::Exit));
        assert_eq!(slot.stack_pointer(sp + (1 << 35)), sp);
        assert_eq!(slot.stack_pointer(sp - (1 << 35)), sp);
        assert!(Slot::is_written(&bytes, 3) && !Slot::is_written(&bytes, 2));
        assert!(!Slot::is_written(&bytes, BUFFER_SLOTS));
    }

    #[test]
    fn kinds_of_exits_and_whole_calls_are_unknown() {
        let (time, sp, site) = (0x1234_5678_9abc, 0x7ffd_cafe_b000, 0x5555_5555_4020);
        for (tag, moment) in [(0, Moment::Enter), (1, Moment::Exit), (3, Moment::Unknown)] {
            let mut bytes = buffer(64, 0, 0);
            put(&mut bytes, 3, (time, sp, site | tag, false));
            assert_eq!(Slot::read(&bytes, 3).moment, moment);
            for kind in [4, 16, 20, 24, 28].into_iter().filter(|_| tag != 0) {
                put(&mut bytes, 3, (time, sp, site | tag | kind, false));
                assert_eq!(Slot::read(&bytes, 3).moment, Moment::Unknown);
                assert_eq!(Slot::read(&bytes, 3).site, site);
            }
        }
    }

    #[test]
    fn a_whole_call_tells_both_its_ends() {
        let mut bytes = buffer(64, 0, 0);
        let (time, sp, site) = (0xffff_ffff_ff00, 0x7ffd_cafe_b000, 0x5555_5555_4020);
        put(&mut bytes, 3, (time, sp, site, false));
        assert!(!Slot::is_whole_call(&bytes, 3));
        complete(&mut bytes, 3, 0x1_ffff);
        assert!(Slot::is_written(&bytes, 3) && Slot::is_whole_call(&bytes, 3));
        let slot = Slot::read(&bytes, 3);
        assert_eq!((slot.time, slot.site, slot.moment), (time, site, Moment::Whole(0x1_ffff)));
        for near in [sp + (1 << 19), sp - (1 << 19) + 1, sp] {
            assert_eq!(slot.stack_pointer(near), sp);
        }
        let exit = slot.into_exit();
        assert_eq!((exit.time, exit.site, exit.moment), (0x1_feff, site, Moment::Exit));
        assert_eq!(exit.stack_pointer(sp), sp);
    }
}
