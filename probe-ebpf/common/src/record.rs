//! What travels through a ring: 32 bytes for an event of a call, 64 for a change in a process,
//! and batches of marker events behind a record of 32 bytes.

/// Bytes of a [`Record`].
pub const RECORD_LEN: usize = 32;
/// Bytes of a [`Control`].
pub const CONTROL_LEN: usize = 64;

/// One event: who, when, where on the stack.
///
/// `sp` is the stack pointer *at the function's entry*, for exits as well: on x86-64 the return
/// address lies there. The programs normalise it, so an exit matches its entry by equality.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub ts_ns: u64,
    /// Stack pointer, see above; 0 in control records.
    pub sp: u64,
    /// Process (thread group) id in the initial pid namespace.
    pub pid: u32,
    /// Thread id in the initial pid namespace.
    pub tid: u32,
    /// Probe id from the attach cookie; 0 in control records.
    pub probe: u32,
    /// A [`Kind`].
    pub kind: u8,
    /// Always 0; keeps the layout free of implicit padding.
    pub reserved: u8,
    /// How many events of this thread were lost just before this one (saturating).
    pub lost_before: u16,
}

/// A process or thread changed: a [`Record`] and what belongs to its kind.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Control {
    pub record: Record,
    /// The thread's name, zero-padded: the new one for `Rename` and `Exec`.
    pub comm: [u8; 16],
    /// `Fork`: the child's process id. `Exec`: the id that the calling thread had before.
    /// `ProcessExit`: the wait status.
    pub arg0: u64,
    /// `Fork`: the child's thread id. `Exec`: 1 if the process is stopped before its first
    /// instruction.
    pub arg1: u64,
}

/// What a record says.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A function was entered.
    Enter = 1,
    /// A function returned, seen by a return probe.
    Return = 2,
    /// A function reached a `ret` instruction (an entry-type probe sits on it).
    ExitRet = 3,
    /// A function leaves by a jump that is taken; counts only if the stack pointer matches.
    ExitJump = 4,
    /// A place without duration was passed: a USDT note.
    Point = 5,
    /// A marker scope was entered: never on the wire, made by ctrace from a marker's event.
    ScopeEnter = 6,
    /// A marker scope was left; `sp` is that of its entry. Likewise.
    ScopeExit = 7,
    /// Nothing: so many slots as `lost_before` says are left empty.
    Skip = 9,
    /// The contents of a marker buffer, in as many slots as `lost_before` says: the record takes
    /// the place of the first 32 bytes. `sp` is its address, `probe` the runtime's number from the
    /// cookie; the six bytes beside the clock are where the flush site is, or 0.
    Batch = 10,
    /// A thread was created (`arg0` its process, `arg1` its id): a fork if the process is new.
    Fork = 16,
    /// The process runs a new program (`arg0` the old id of the thread that called exec, `arg1` 1
    /// if it is stopped).
    Exec = 17,
    /// The thread is gone.
    ThreadExit = 18,
    /// The process's last thread is gone; `arg0` is the wait status.
    ProcessExit = 19,
    /// The thread has a new name.
    Rename = 20,
    /// The thread has a new marker buffer at `arg0`; `arg1` is where the register site is. The
    /// first four bytes of `comm` are the runtime's number from the cookie, the next four the
    /// thread's id in its own pid namespace.
    Buffer = 21,
}

impl Kind {
    /// The kind for a byte from the wire, if it is one.
    pub const fn from_wire(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Enter,
            2 => Self::Return,
            3 => Self::ExitRet,
            4 => Self::ExitJump,
            5 => Self::Point,
            6 => Self::ScopeEnter,
            7 => Self::ScopeExit,
            9 => Self::Skip,
            10 => Self::Batch,
            16 => Self::Fork,
            17 => Self::Exec,
            18 => Self::ThreadExit,
            19 => Self::ProcessExit,
            20 => Self::Rename,
            21 => Self::Buffer,
            _ => return None,
        })
    }
}

const _: () = assert!(size_of::<Record>() == RECORD_LEN && align_of::<Record>() == 8);
const _: () = assert!(size_of::<Control>() == CONTROL_LEN);
