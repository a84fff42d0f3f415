//! What `target` hands to `session`: which functions to trace and where their probes go.

use ctrace_common::JumpTarget;

/// What one hit of a probe costs, by how the kernel replays the instruction under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CostClass {
    /// Emulated by the kernel: `nop`, `push`, `call`, direct jumps.
    Emulated,
    /// Executed out of line with a trap after it: many times dearer.
    SingleStep,
}

impl CostClass {
    /// In one word, for people.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Emulated => "emulated",
            Self::SingleStep => "single-stepped",
        }
    }
}

/// A place for an entry probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntrySite {
    /// Offset in the file.
    pub offset: u64,
    pub cost: CostClass,
    /// Bytes past the function's address: 4 where `endbr64` is skipped.
    pub skipped: u8,
}

/// A way out of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitSite {
    /// Offset in the file.
    pub offset: u64,
    pub cost: CostClass,
    pub kind: ExitKind,
}

/// How control leaves at an [`ExitSite`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitKind {
    Ret,
    /// `jmp` to another function.
    Jump,
    /// `jcc` to another function, with the condition nibble of its opcode.
    ConditionalJump(u8),
    /// `jmp` through a register or memory.
    IndirectJump(JumpTarget),
}

/// How the end of a call will be seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitPlacement {
    ReturnProbe,
    Sites(Vec<ExitSite>),
    /// Entries only, with the reason for people.
    Unseen(String),
}

/// Where the probes of one function go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    pub entry: EntrySite,
    pub exit: ExitPlacement,
    pub entry_is_loop_head: bool,
    pub may_tail_jump: bool,
}
