//! The calls that the programs leave out because they are too deep, as user space reads their counts.

use super::words::Words;
use crate::bpf::BpfError;
use ctrace_common::{Counting, LeftOutCalls, MOST_KEPT};
use ctrace_core::{
    engine::LeftOut,
    units::{FuncId, Nanos},
};
use std::{mem::offset_of, os::fd::OwnedFd};

/// What the programs leave out, fixed before they are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thrift {
    /// The most calls of a thread inside each other that make events.
    pub most_nested: u32,
    /// Functions that have counts.
    pub functions: u32,
}

impl Thrift {
    /// Returns what the programs can do about a limit: none, if it is too high for them.
    pub(crate) fn within(most_nested: u32, functions: usize) -> Option<Self> {
        let functions = functions.clamp(1, super::counted::MOST_FUNCTIONS) as u32;
        (most_nested as usize <= MOST_KEPT).then_some(Self { most_nested, functions })
    }
}

pub(crate) struct LeftOutCounts {
    functions: u32,
    counting: Words,
    counts: Words,
}

impl LeftOutCounts {
    pub(crate) fn map(
        counting: &OwnedFd,
        counts: &OwnedFd,
        thrift: Thrift,
    ) -> Result<Self, BpfError> {
        let len = thrift.functions as usize * size_of::<LeftOutCalls>();
        Ok(Self {
            functions: thrift.functions,
            counting: Words::map(counting, size_of::<Counting>())?,
            counts: Words::map(counts, len)?,
        })
    }

    /// Leaves calls out that begin from this time on.
    pub(crate) fn begin(&self, start: Nanos) {
        self.counting.set(offset_of!(Counting, start), start.0);
        self.counting.set(offset_of!(Counting, end), u64::MAX);
    }

    /// Leaves no call out that begins later.
    pub(crate) fn count_until(&self, end: Nanos) {
        self.counting.set(offset_of!(Counting, end), end.0);
    }

    /// Returns the counts of a function since the start.
    pub(crate) fn of(&self, function: FuncId) -> LeftOut {
        if function.0 >= self.functions {
            return LeftOut::default();
        }
        let at = function.index() * size_of::<LeftOutCalls>();
        LeftOut {
            calls: self.counts.get(at + offset_of!(LeftOutCalls, too_deep)),
            ends: self.counts.get(at + offset_of!(LeftOutCalls, ends)),
            inside: self.counts.get(at + offset_of!(LeftOutCalls, inside)),
        }
    }
}
