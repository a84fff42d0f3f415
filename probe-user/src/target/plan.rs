//! The plan that `target` hands to `session`: the functions to trace and their sites.

use ctrace_common::{GoidPlace, JumpTarget};

/// The cost of a probe hit, by the kernel's treatment of the instruction under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CostClass {
    /// Emulated by the kernel: `nop`, `push`, `call`, direct jumps.
    Emulated,
    /// Executed out of line with a trap after it: many times the cost.
    SingleStep,
}

impl CostClass {
    /// Returns one word for people.
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
    /// File offset.
    pub offset: u64,
    pub cost: CostClass,
    /// Bytes after the function's address: 4 where `endbr64` is skipped, 120 at most.
    pub skipped: u8,
}

/// A way out of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitSite {
    /// File offset.
    pub offset: u64,
    pub cost: CostClass,
    pub kind: ExitKind,
    /// The file offset to which a direct jump leads.
    pub leads_to: Option<u64>,
}

/// The way that control leaves at an [`ExitSite`].
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

/// The method by which the end of a call is seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitPlacement {
    /// By a return probe that nothing guards.
    ReturnProbe,
    /// By a return probe in a process whose guard sites are all known. A function whose frames are
    /// restored is moved to these exits, or to none for the reason given.
    Guarded(Result<Vec<ExitSite>, String>),
    Sites(Vec<ExitSite>),
    /// Entries only, with the reason for people.
    Unseen(String),
}

impl ExitPlacement {
    /// True if the kernel steps over an instruction at a way out.
    pub(crate) fn is_single_stepped(&self) -> bool {
        match self {
            Self::Sites(sites) => sites.iter().any(|site| site.cost == CostClass::SingleStep),
            _ => false,
        }
    }

    /// Returns the placement without a guarded return probe.
    pub(crate) fn without_guarded(&self) -> Self {
        match self {
            Self::Guarded(Ok(sites)) => Self::Sites(sites.clone()),
            Self::Guarded(Err(why)) => Self::Unseen(why.clone()),
            other => other.clone(),
        }
    }
}

/// A place where return probes begin to be dangerous. A guard there puts the true return addresses
/// back before the instruction runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GuardSite {
    /// File offset.
    pub offset: u64,
    pub kind: GuardKind,
}

/// The danger that begins at a [`GuardSite`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuardKind {
    /// An unwinder reads return addresses, and removes frames.
    Unwind,
    /// An unwinder reads return addresses, and leaves frames alone.
    Backtrace,
    /// The thread leaves its stack.
    Switch,
    /// A library was loaded: what is dangerous in it is not guarded yet.
    Load,
}

/// The sites of one function's probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    pub entry: EntrySite,
    pub exit: ExitPlacement,
    pub entry_is_loop_head: bool,
    pub may_tail_jump: bool,
    /// Where goroutines have their ids, if its calls are those of goroutines, which threads only run.
    pub go: Option<GoidPlace>,
    /// The reason why the function itself bears no return probe, whatever its process does.
    pub no_return_probe: Option<&'static str>,
}
