//! Goroutines in the place of threads. Go moves them between threads, and moves their stacks, so
//! neither a thread nor a stack pointer tells which call a function's end belongs to.
//!
//! Go keeps the address of the running goroutine's descriptor in `r14`. The descriptor of a goroutine
//! that has ended serves a later one.

/// The bit of a thread id that stands for a goroutine. No id of the kernel has it, and the sum is a
/// positive number of 32 bits, as other tools want it.
const GOROUTINE: u32 = 1 << BITS;
const BITS: u32 = 30;
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

    /// Returns what stands for a thread id. Those of one process differ within 32 GiB of addresses. The
    /// heaps of all Go programs begin at one address, and maps are for all processes: so the process is
    /// part of it.
    #[inline(always)]
    pub const fn thread(self, process: u32) -> u32 {
        let near = self.address >> ALIGNMENT;
        let far = (self.address >> (ALIGNMENT + BITS)).wrapping_mul(SCATTER);
        let process = (process as u64).wrapping_mul(SCATTER) >> 17;
        GOROUTINE | (near ^ far ^ process) as u32 & (GOROUTINE - 1)
    }
}

/// Returns true if a thread id stands for a goroutine.
pub const fn is_goroutine(thread: u32) -> bool {
    thread & GOROUTINE != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_keeps_its_place_when_the_stack_moves() {
        let small =
            Goroutine { address: 0xc00_0001_2340, stack: [0xc00_0004_0000, 0xc00_0004_0800] };
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
        let of = |address| Goroutine { address, stack: [0; 2] }.thread(4711);
        assert!(is_goroutine(of(0xc00_0001_2340)) && !is_goroutine(4_194_304));
        assert_ne!(of(0xc00_0001_2340), of(0xc00_0001_2360));
        assert_ne!(of(0xc0_0055_0000), of(0x55_0000), "the heap, and a static one");
        let here = Goroutine { address: 0xc00_0000_01a0, stack: [0; 2] };
        assert_ne!(here.thread(4711), here.thread(4712), "each process has one there");
    }
}
