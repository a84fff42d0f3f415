//! Goroutines in the place of threads. Go moves them between threads, and moves their stacks, so
//! neither a thread nor a stack pointer tells which call a function's end belongs to.
//!
//! Go keeps the address of the running goroutine's descriptor in `r14`, and the goroutine's id at a place
//! in it that depends on Go's version. The descriptor of a goroutine that has ended serves a later one,
//! which has another id.

/// The bit of a thread id that stands for a goroutine. No id of the kernel has it, and the sum is a
/// positive number of 32 bits, as other tools want it.
const GOROUTINE: u32 = 1 << 30;
/// The bit beside it where the number is not Go's: it stands for the address of the descriptor.
const BY_ADDRESS: u32 = 1 << BITS;
const BITS: u32 = 29;
/// Larger ids of Go do not fit beside these bits.
const LARGEST_ID: u64 = BY_ADDRESS as u64 - 1;
/// An odd number whose multiples have high bits that look like chance.
const SCATTER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The alignment of descriptors, as a power of two.
const ALIGNMENT: u32 = 5;

/// Places on stacks of goroutines are told from here downwards, by their distance from the stack's
/// upper end. No stack pointer of a program is as large.
const STACKS_END: u64 = 1 << 48;

/// The largest stack that Go allows by default, twice: it doubles them.
const LARGEST_STACK: u64 = 2_000_000_000;

/// A goroutine that runs, and its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goroutine {
    /// The address of its descriptor.
    pub address: u64,
    /// The stack's bounds: the first two words of the descriptor.
    pub stack: [u64; 2],
    /// The number by which Go knows it. 0 where that is not known: no goroutine has it but those in which
    /// threads schedule others.
    pub id: u64,
}

impl Goroutine {
    /// Returns what stands for a stack pointer of this goroutine. It stays the same for a frame when
    /// the stack moves. Returns `None` if the pointer is not on the stack: C runs on another one.
    #[inline(always)]
    pub const fn place(self, sp: u64) -> Option<u64> {
        let [low, high] = self.stack;
        if sp < low || sp >= high || high - low > LARGEST_STACK {
            return None;
        }
        Some(STACKS_END - (high - sp))
    }

    /// Returns what stands for a thread id in the records of its process. Where Go's id is not known, those
    /// of one process differ within 16 GiB of addresses.
    #[inline(always)]
    pub const fn thread(self, process: u32) -> u32 {
        if self.id != 0 && self.id <= LARGEST_ID {
            return GOROUTINE | self.id as u32;
        }
        self.key(process)
    }

    /// Returns the key for maps that all processes share. A later goroutine of the same descriptor has the
    /// same one, so that those which have ended take no room. The heaps of all Go programs begin at one
    /// address: so the process is part of it.
    #[inline(always)]
    pub const fn key(self, process: u32) -> u32 {
        GOROUTINE | BY_ADDRESS | self.by_address(process)
    }

    #[inline(always)]
    const fn by_address(self, process: u32) -> u32 {
        let near = self.address >> ALIGNMENT;
        let far = (self.address >> (ALIGNMENT + BITS)).wrapping_mul(SCATTER);
        let process = (process as u64).wrapping_mul(SCATTER) >> 17;
        (near ^ far ^ process) as u32 & (BY_ADDRESS - 1)
    }
}

/// Returns true if a thread id stands for a goroutine.
pub const fn is_goroutine(thread: u32) -> bool {
    thread & GOROUTINE != 0
}

/// Returns the id by which Go knows the goroutine for which a thread id stands, if it does, and if that is
/// known.
pub const fn goroutine_id(thread: u32) -> Option<u32> {
    match thread & (GOROUTINE | BY_ADDRESS) {
        GOROUTINE => Some(thread & (BY_ADDRESS - 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_keeps_its_place_when_the_stack_moves() {
        let small = Goroutine {
            address: 0xc00_0001_2340,
            stack: [0xc00_0004_0000, 0xc00_0004_0800],
            id: 0,
        };
        let large = Goroutine { stack: [0xc00_0010_0000, 0xc00_0010_1000], ..small };
        let place = small.place(0xc00_0004_0700).unwrap();
        assert_eq!(large.place(0xc00_0010_0f00), Some(place));
        assert!(small.place(0xc00_0004_06f8).unwrap() < place);
        assert_eq!(small.place(0xc00_0004_0800), None, "the end is not on it");
        assert_eq!(small.place(0x7fff_ffff_0000), None);
        assert_eq!(Goroutine { stack: [0, u64::MAX], ..small }.place(8), None);
    }

    #[test]
    fn goroutines_are_no_threads() {
        let of = |address| Goroutine { address, stack: [0; 2], id: 0 }.thread(4711);
        assert!(is_goroutine(of(0xc00_0001_2340)) && !is_goroutine(4_194_304));
        assert_eq!((goroutine_id(of(0xc00_0001_2340)), goroutine_id(4_194_304)), (None, None));
        assert_ne!(of(0xc00_0001_2340), of(0xc00_0001_2360));
        assert_ne!(of(0xc0_0055_0000), of(0x55_0000), "the heap, and a static one");
        let here = Goroutine { address: 0xc00_0000_01a0, stack: [0; 2], id: 0 };
        assert_ne!(here.thread(4711), here.thread(4712), "each process has one there");
        assert_eq!(here.thread(4711), here.key(4711));
    }

    #[test]
    fn a_known_id_is_the_number_of_its_goroutine() {
        let first = Goroutine { address: 0xc00_0001_2340, stack: [0; 2], id: 17 };
        let later = Goroutine { id: 18, ..first };
        assert_eq!(goroutine_id(first.thread(4711)), Some(17));
        assert_eq!(goroutine_id(later.thread(4711)), Some(18), "of the same descriptor");
        assert!(is_goroutine(first.thread(4711)) && first.thread(4711) < 1 << 31);
        let [here, there] = [first.key(4711), first.key(4712)];
        assert!(here != there && is_goroutine(here), "maps are for all processes");
        assert_eq!(here, later.key(4711), "one that has ended takes no room");
        let largest = Goroutine { id: LARGEST_ID, ..first };
        assert_eq!(goroutine_id(largest.thread(4711)), Some((1 << 29) - 1));
        let larger = Goroutine { id: LARGEST_ID + 1, ..first };
        let unknown = Goroutine { id: 0, ..first };
        assert_eq!(larger.thread(4711), unknown.thread(4711));
    }
}
