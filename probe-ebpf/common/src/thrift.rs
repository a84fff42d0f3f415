//! The maps by which the programs know the calls that are left out (`--depth`, `--min-duration`), and count
//! them.
//!
//! A thread has a stack of its open calls. What is entered below too many of them makes no events. Where
//! short calls are left out, an entry is held there until its call has proved to be long.

/// Open calls that are known of a thread: a power of two, and the greatest limit.
pub const MOST_KEPT: usize = 128;
/// Threads whose open calls are known. Of others all calls make events.
pub const MOST_KEPT_THREADS: u32 = 4096;

/// An open call of a thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeptCall {
    pub sp: u64,
    /// 0 where no entry is held.
    pub start: u64,
    pub function: u32,
    /// Always 0; keeps the layout free of implicit padding.
    pub reserved: u32,
}

/// The open calls of a thread, an element of the map `KEPT_CALLS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeptCalls {
    /// The number of used elements of `calls`.
    pub depth: u32,
    /// Not 0: calls were taken from here without an end of their own, so an end that fits none may be
    /// theirs.
    pub is_doubtful: u32,
    /// The number of outermost calls whose entries were delivered. Those of the others are held.
    pub delivered: u32,
    pub pid: u32,
    /// Where entries are held: grows by one when the thread begins to change something here, and when it has
    /// done so. Whoever reads the same even number twice has read what was there in between.
    pub changed: u64,
    /// The stack pointer of the last call that left by a jump: it may go on in the next one that begins there.
    pub jumped: u64,
    /// Not 0: calls were taken from here that were so far from what took their place that they may go on, on
    /// another stack.
    pub has_stacks: u64,
    /// The changes of probes that the thread knows, see [`crate::Counting`].
    pub changes: u64,
    pub calls: [KeptCall; MOST_KEPT],
}

/// An element of the map `LEFT_OUT`, by function.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOutCalls {
    /// Its calls that were too deep.
    pub too_deep: u64,
    /// Ends of these that were left out. With session links there are none.
    pub ends: u64,
    /// Calls that were too deep inside its calls, which were not.
    pub inside: u64,
    /// Its calls that were too short, and the sum of their durations.
    pub short: u64,
    pub short_ns: u64,
    /// Not 0: a loop of the function leads back to its entry, so its probe may be hit once a round. User space
    /// writes it.
    pub begins_a_loop: u64,
}

const _: () = assert!(size_of::<KeptCall>() == 24);
const _: () = assert!(size_of::<KeptCalls>() == 48 + MOST_KEPT * size_of::<KeptCall>());
const _: () = assert!(size_of::<LeftOutCalls>() == 48);
