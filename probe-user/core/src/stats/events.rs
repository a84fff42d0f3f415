//! Unions by CTRACK's definitions: the time of a function's calls, and the time of the calls that
//! these made.
//!
//! CTRACK knows a call as an *event*, which it writes when the call ends. So only timed calls are
//! events. Its active-exclusive time takes the union of all callees from the union of all calls. A
//! thread that is inside a callee thus hides the time of another thread that is not, which `exclusive`
//! in [`super::unions`] counts.

use crate::calls::paths::{Node, ROOT};
use crate::stats::unions::{Cover, Inside};

/// The calls around a call that are looked at, innermost first. Only stacks that take turns in one
/// thread put others than the caller there.
const MOST_AROUND: usize = 1 << 12;

/// The lengths of one function's unions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FunctionEvents {
    /// Of its events.
    pub(crate) active: u64,
    /// Of the events that its own events called directly. Calls of itself are no callees.
    pub(crate) callees: u64,
    /// Of the events that those in its center called.
    pub(crate) center_callees: u64,
}

/// The lengths of all functions' unions.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventUnions {
    /// Of all events.
    pub(crate) tracked: u64,
    pub(crate) functions: Vec<FunctionEvents>,
}

impl EventUnions {
    /// Adds the lengths of another, disjoint window.
    pub(crate) fn add(&mut self, other: &Self) {
        self.tracked += other.tracked;
        self.functions.resize(other.functions.len().max(self.functions.len()), Default::default());
        for (mine, other) in self.functions.iter_mut().zip(&other.functions) {
            mine.active += other.active;
            mine.callees += other.callees;
            mine.center_callees += other.center_callees;
        }
    }
}

#[derive(Clone, Copy)]
struct FunctionCovers {
    active: Cover,
    callees: Cover,
    center_callees: Cover,
}

/// The unions while calls arrive by descending end.
pub(crate) struct EventCovers {
    tracked: Cover,
    functions: Vec<FunctionCovers>,
}

impl EventCovers {
    pub(crate) fn new(functions: usize) -> Self {
        let none = FunctionCovers {
            active: Cover::EMPTY,
            callees: Cover::EMPTY,
            center_callees: Cover::EMPTY,
        };
        Self { tracked: Cover::EMPTY, functions: vec![none; functions] }
    }

    /// Adds a call until `end`; `around` has the calls around it, outermost first.
    #[inline]
    pub(crate) fn add(&mut self, call: Inside, end: u64, around: &[Inside], nodes: &[Node]) {
        if !call.timed || call.start >= end {
            return;
        }
        self.tracked.add(call.start, end);
        self.functions[call.function].active.add(call.start, end);
        let caller = caller(call, around, nodes);
        let Some(caller) = caller.filter(|by| by.timed && by.function != call.function) else {
            return;
        };
        let covers = &mut self.functions[caller.function];
        covers.callees.add(call.start, end);
        if caller.kept {
            covers.center_callees.add(call.start, end);
        }
    }

    pub(crate) fn lengths(&self) -> EventUnions {
        let functions = self.functions.iter().map(|function| FunctionEvents {
            active: function.active.length,
            callees: function.callees.length,
            center_callees: function.center_callees.length,
        });
        EventUnions { tracked: self.tracked.length, functions: functions.collect() }
    }
}

/// Returns the call that made this one. A call beyond the bounds on paths has the innermost one.
fn caller<'a>(call: Inside, around: &'a [Inside], nodes: &[Node]) -> Option<&'a Inside> {
    let Node { parent, other, .. } = nodes[call.node as usize];
    if parent == ROOT && !other {
        return None;
    }
    let mut near = around.iter().rev().take(MOST_AROUND);
    near.find(|by| by.start <= call.start && (other || by.node == parent))
}
