//! Requests to put true return addresses back.
//!
//! A return probe replaces the return address on the stack by that of the kernel's trampoline. An
//! unwinder that meets it ends the program, and so does a thread that leaves the stack. Programs at
//! the places where that begins find these frames in the kernel's list for the thread, and ask user
//! space to restore them. The thread waits in the program meanwhile, or stops.

use crate::MAX_CPUS;

/// The most frames of a thread that return probes can hijack: the kernel's limit.
pub const MOST_HIJACKED: usize = 64;

/// A frame whose return address a return probe has replaced.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hijacked {
    /// The address of the replaced word.
    pub slot: u64,
    /// The return address that belongs there.
    pub address: u64,
    /// The address of the probe.
    pub probe: u64,
}

/// The reason of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RestoreReason {
    /// An unwinder begins its work.
    Unwind = 1,
    /// The thread is about to switch to another stack.
    Switch = 2,
    /// A signal handler is about to run on a stack of its own.
    Signal = 3,
    /// User space lists the frames of a thread that does not wait.
    Listed = 4,
    /// The dynamic linker has mapped a library. The request has no frames.
    Load = 5,
}

impl RestoreReason {
    /// Reads the word of a request.
    pub fn from_wire(word: u32) -> Option<Self> {
        let all = [Self::Unwind, Self::Switch, Self::Signal, Self::Listed, Self::Load];
        all.into_iter().find(|reason| *reason as u32 == word)
    }
}

/// The index in `RESTORED` of the requests that found no room. No [`RestoreReason`] has it.
pub const RESTORE_UNHEARD: u32 = 0;
/// The index in `RESTORED` of those unwinders that only look: backtraces.
pub const RESTORE_BACKTRACES: u32 = RestoreReason::Signal as u32 + 1;
/// The number of counters in `RESTORED`, which a [`RestoreReason`] indexes. Only those that restore
/// frames of their own thread are counted.
pub const RESTORE_COUNTERS: usize = RESTORE_BACKTRACES as usize + 1;

/// The number in the cookie of a place where an unwinder only looks.
pub const GUARDS_BACKTRACES: u32 = 1;

/// A record in the ring `RESTORES`: the hijacked frames of one thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoreRequest {
    /// With [`RESTORE_WAITING`] in its lowest bits, the value of the CPU's state while the thread
    /// waits.
    pub number: u64,
    /// The address that stands in the slots.
    pub trampoline: u64,
    pub pid: u32,
    pub tid: u32,
    /// The index of its state in `RESTORE_STATES`.
    pub cpu: u32,
    /// A [`RestoreReason`].
    pub reason: u32,
    /// The number of used elements of `frames`.
    pub count: u64,
    /// The innermost frame comes first.
    pub frames: [Hijacked; MOST_HIJACKED],
}

/// The state of a CPU on which no thread waits.
pub const RESTORE_FREE: u64 = 0;
/// The bits of a state that are not its request's number.
pub const RESTORE_PHASES: u64 = 3;
/// The thread waits in the program.
pub const RESTORE_WAITING: u64 = 1;
/// User space has restored the frames. In any other case the thread stops, and user space continues
/// its process.
pub const RESTORE_DONE: u64 = 2;

/// The value of a guarded process in `GUARDED`.
pub const GUARDED: u8 = 1;
/// The same once a thread of it has stopped it for its frames, until user space continues it.
pub const GUARDED_STOPPED: u8 = 2;

/// The time that a thread waits before it stops its process.
pub const RESTORE_NANOS: u64 = 3_000_000;
/// The same for a thread that has loaded a library.
pub const RESTORE_LOAD_NANOS: u64 = 20_000_000;

/// The element behind the states of all CPUs. It is not 0 while user space continues a process.
/// That takes the stops of all its threads back, so no thread stops meanwhile.
pub const RESTORE_CONTINUES: usize = MAX_CPUS;
/// The element behind that. It is not 0 once the return probes go for good. Then no call gets one,
/// also where another process keeps their link open.
pub const RESTORE_ENDS: usize = RESTORE_CONTINUES + 1;
/// Its value once the return probes go for good.
pub const RESTORE_ENDING: u64 = 1;
/// Its value once nobody serves requests any more. Guards that another process keeps ask for nothing
/// then: a thread would wait, or stop, for an answer that never comes.
pub const RESTORE_OVER: u64 = 2;
/// The number of elements of `RESTORE_STATES`.
pub const RESTORE_WORDS: usize = RESTORE_ENDS + 1;
/// The longest time that a thread waits for the end of such a moment. It is reached only if user
/// space has lost its CPU.
pub const RESTORE_CONTINUES_NANOS: u64 = 20_000_000;
/// The same at the delivery of a signal: the thread holds the lock that the continuing needs.
pub const RESTORE_CONTINUES_LOCKED_NANOS: u64 = 20_000;
