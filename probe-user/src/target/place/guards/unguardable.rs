//! Says why an object cannot be guarded.

use crate::target::place::code::PlaceError;
use crate::target::place::code::stacks::Unsearched;
use crate::target::place::deny::Refusal;
use crate::target::place::guards::runtimes::Runtime;
use crate::target::place::guards::sites::MOST;
use crate::target::read::budget::TooLarge;
use std::fmt;

/// The reason why an object cannot be guarded. It reads as what follows the object's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unguardable {
    /// A runtime that reads return addresses of native frames.
    Runtime(Runtime),
    /// It contains an unwinder that no symbol shows.
    NamelessUnwinder,
    /// No probe can sit on a guarded function.
    Function {
        name: Box<str>,
        why: Refusal,
    },
    /// No probe can sit on an instruction that switches stacks.
    Instruction {
        address: u64,
        why: &'static str,
    },
    /// The bytes at this address may be a switch, or a part of something else.
    Unclear(u64),
    /// It jumps to other stacks with this function, in a way that cannot be guarded.
    Jump {
        name: Box<str>,
        why: &'static str,
    },
    TooMany,
    Unsearched(Unsearched),
    /// Its code cannot be read.
    Code(PlaceError),
}

impl fmt::Display for Unguardable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(runtime) => write!(out, "walks its own stacks ({runtime})"),
            Self::NamelessUnwinder => out.write_str("contains an unwinder that no symbol shows"),
            Self::Function { name, why } => {
                write!(out, "has no place for a guard in {name}: {why}")
            }
            Self::Instruction { address, why } => {
                write!(out, "switches stacks at {address:#x}, where no guard can be: {why}")
            }
            Self::Unclear(address) => {
                write!(out, "may switch stacks at {address:#x}, which is not clearly code")
            }
            Self::Jump { name, why } => {
                write!(out, "changes stacks with {name}, which cannot be guarded: {why}")
            }
            Self::TooMany => write!(out, "has more than {MOST} places to guard"),
            Self::Unsearched(why) => why.fmt(out),
            Self::Code(why) => write!(out, "cannot be searched for stack switches: {why}"),
        }
    }
}

impl From<TooLarge> for Unguardable {
    fn from(why: TooLarge) -> Self {
        Self::Unsearched(why.into())
    }
}

impl From<Unsearched> for Unguardable {
    fn from(why: Unsearched) -> Self {
        Self::Unsearched(why)
    }
}
