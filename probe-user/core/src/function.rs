//! What the engine knows of a traced function: its name for reports, and the facts about its
//! probes that the stack rule needs.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// What kind of thing is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FunctionKind {
    Function,
    Usdt,
    Marker,
}

/// How the end of a call becomes known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitSeen {
    /// By a return probe: a function that leaves by a jump ends when its successor returns.
    ByReturnProbe,
    /// By probes on its ways out: a function that leaves by a jump ends at the jump.
    ByExitSites,
    /// Not at all: calls are counted, and end at the next event that shows them dead.
    Never,
}

/// The type of a value beside an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueKind {
    /// An integer with a sign, extended to 64 bits.
    Signed,
    /// An integer without one.
    Unsigned,
}

/// A value that is read at the entry of a function, or where a USDT probe is hit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueInfo {
    /// `arg0` for the first argument where the program does not name it.
    pub name: Arc<str>,
    pub kind: ValueKind,
}

/// A traced function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionInfo {
    /// Demangled, without hash; with arguments as the demangler gives them.
    pub name: Arc<str>,
    /// Other names at the same address.
    pub aliases: Vec<Arc<str>>,
    /// File name of the ELF object (`libc.so.6`), without its directory.
    pub object: Arc<str>,
    pub file: Option<Arc<str>>,
    pub line: Option<u32>,
    pub kind: FunctionKind,
    /// Marker group or USDT provider.
    pub group: Option<Arc<str>>,
    pub exit: ExitSeen,
    /// The entry is a branch target: a hit with the stack pointer of the open frame of the same
    /// function is a loop's turn, no new call.
    pub entry_is_loop_head: bool,
    /// The function may leave by a jump to another function.
    pub may_tail_jump: bool,
    /// The values that come with each hit, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueInfo>,
}

impl FunctionInfo {
    /// A function of which no more than its name and its object is known.
    pub fn new(name: impl Into<Arc<str>>, object: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            aliases: Vec::new(),
            object: object.into(),
            file: None,
            line: None,
            kind: FunctionKind::Function,
            group: None,
            exit: ExitSeen::ByReturnProbe,
            entry_is_loop_head: false,
            may_tail_jump: false,
            values: Vec::new(),
        }
    }
}

/// The name as people are shown it: a marker with its group, a USDT probe with its provider.
pub fn qualified<'a>(kind: FunctionKind, group: Option<&str>, name: &'a str) -> Cow<'a, str> {
    match (kind, group) {
        (FunctionKind::Marker, Some(group)) => Cow::Owned(format!("{group}/{name}")),
        (FunctionKind::Usdt, Some(group)) => Cow::Owned(format!("{group}:{name}")),
        _ => Cow::Borrowed(name),
    }
}
