//! The maps in which calls are counted where nobody wants an event of each.
//!
//! A thread has a stack of its open calls. A call that ends is added to the counts of its path, and leaves
//! no record. Groups of CPUs have counts of their own, as many groups as there is room for.

use crate::{PAGE_LEN, Page};

/// Buckets of an octave of durations, as a power of two.
pub const BUCKET_BITS: u32 = 4;
/// Buckets of the counts of a path: all durations have one.
pub const BUCKETS: usize = (64 - BUCKET_BITS as usize + 1) << BUCKET_BITS;

/// The counts of a path on some CPUs: words, and behind them the buckets, of four bytes each.
pub type PathCounts = Page;

/// Indices of the words: calls whose end was seen, and the sum of their durations.
pub const TIMED: usize = 0;
pub const TIMED_NS: usize = 1;
/// The durations of all calls less those of the calls inside them.
pub const OWN_NS: usize = 2;
/// The squares of the durations: the sum of their lower halves, and of their upper halves.
pub const SQUARES_LOW: usize = 3;
pub const SQUARES_HIGH: usize = 4;
/// The longest duration, and the complement of the shortest one: both only grow.
pub const LONGEST: usize = 5;
pub const SHORTEST: usize = 6;
/// Calls whose end was not seen, and the time that they were seen to last.
pub const UNTIMED: usize = 7;
pub const UNTIMED_NS: usize = 8;
/// The index of the first word with buckets.
pub const FIRST_BUCKETS: usize = 16;

const _: () = assert!(FIRST_BUCKETS * 8 + BUCKETS * 4 <= PAGE_LEN);

/// The number of the path that has no calls: the parent of all first ones.
pub const NO_PATH: u32 = 0;
/// The number of all paths that found no room.
pub const FULL_PATH: u32 = u32::MAX;

/// Open calls that a thread may have: a power of two.
pub const MOST_OPEN: usize = 128;
/// Threads that have a stack of open calls. A thread keeps it until it ends.
pub const MOST_COUNTED_THREADS: u32 = 2048;

/// An open call of a thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenCall {
    pub sp: u64,
    pub start: u64,
    /// The time of the calls that it made.
    pub callees: u64,
    pub function: u32,
    /// Its path, and that of its caller. The three stay when the call has ended, for the next one.
    pub path: u32,
    pub caller: u32,
    /// Not 0: its return address was put back, so no return probe sees its end.
    pub restored: u32,
}

/// The open calls of a thread, an element of the map `OPEN_CALLS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenCalls {
    /// The number of used elements of `calls`.
    pub depth: u32,
    /// The calls that are kept while the others end.
    pub kept: u32,
    /// The time of the thread's last event.
    pub last: u64,
    /// The changes of probes that the thread knows, see [`Counting`].
    pub changes: u64,
    /// Calls in a row that were on another stack than these.
    pub far: u32,
    /// What stands for the thread in records. Several goroutines have one element, one after the other.
    pub owner: u32,
    pub calls: [OpenCall; MOST_OPEN],
}

/// The only element of the map `COUNTING`. User space writes it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counting {
    /// Events before the one time and after the other do not count.
    pub start: u64,
    pub end: u64,
    /// How often functions have lost their probes, or have got others.
    pub changes: u64,
}

/// An element of the map `COUNTED_FUNCTIONS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedFunction {
    /// When it has lost its probes: the ends of calls from before are not seen.
    pub forsaken: u64,
    /// Bits of [`ENTRY_IS_LOOP_HEAD`], [`TAIL_CALLS_NEST`], [`ENDS_BY_RETURN`] and [`ENDS_ARE_SEEN`].
    pub facts: u64,
    /// Ends of calls that began unseen.
    pub headless: u64,
    /// Calls that were only counted, because something had no room for them.
    pub unplaced: u64,
    /// Calls that were shorter than asked for.
    pub short: u64,
}

/// A loop of the function leads back to its entry.
pub const ENTRY_IS_LOOP_HEAD: u64 = 1;
/// A call that leaves by a jump is open until what it jumped to returns.
pub const TAIL_CALLS_NEST: u64 = 2;
/// A return probe sees its calls end. Otherwise a return may come after the call's end: that of a call
/// which was open when the function lost its return probe.
pub const ENDS_BY_RETURN: u64 = 4;
/// Probes see its calls end, unless they unwind.
pub const ENDS_ARE_SEEN: u64 = 8;

/// Indices of the counters in the map `UNCOUNTED_CALLS`: calls without a known duration. The thread, the
/// path or the call had no room, or the thread was on a stack far away from that of its open calls.
pub const THREADS_FULL: u32 = 0;
pub const PATHS_FULL: u32 = 1;
pub const TOO_DEEP: u32 = 2;
pub const FAR_AWAY: u32 = 3;
/// The number of counters.
pub const UNCOUNTED: u32 = 4;

/// Returns the bucket of a duration.
pub const fn bucket_of(duration: u64) -> usize {
    // The number of bits above those that tell the bucket within its octave.
    let (mut rest, mut octave) = (duration >> (BUCKET_BITS + 1), 0);
    let mut step = 32;
    while step > 0 {
        if rest >> (step - 1) > 0 {
            octave += step;
            rest >>= step;
        }
        step /= 2;
    }
    ((octave as usize) << BUCKET_BITS) + (duration >> octave) as usize
}

const _: () = assert!(size_of::<OpenCall>() == 40);
const _: () = assert!(size_of::<OpenCalls>() == 32 + MOST_OPEN * size_of::<OpenCall>());
const _: () = assert!(bucket_of(15) == 15 && bucket_of(31) == 31 && bucket_of(32) == 32);
const _: () = assert!(bucket_of(35) == 33 && bucket_of(63) == 47 && bucket_of(64) == 48);
const _: () = assert!(bucket_of(u64::MAX) == BUCKETS - 1);
