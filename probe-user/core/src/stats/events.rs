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
    /// The length of the union of its events.
    pub(crate) active: u64,
    /// The same of the events that its own events called directly. Calls of itself are no callees.
    pub(crate) callees: u64,
    /// The same of the events that those in its center called.
    pub(crate) center_callees: u64,
}

/// The lengths of all functions' unions.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventUnions {
    /// The length of the union of all events.
    pub(crate) tracked: u64,
    pub(crate) functions: Vec<FunctionEvents>,
}

impl EventUnions {
    /// Adds the lengths of another, disjoint window.
    pub(crate) fn add(&mut self, other: &Self) {
        self.tracked = self.tracked.saturating_add(other.tracked);
        self.functions.resize(other.functions.len().max(self.functions.len()), Default::default());
        for (mine, other) in self.functions.iter_mut().zip(&other.functions) {
            mine.active = mine.active.saturating_add(other.active);
            mine.callees = mine.callees.saturating_add(other.callees);
            mine.center_callees = mine.center_callees.saturating_add(other.center_callees);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::paths::Paths;
    use crate::calls::spool::Call;
    use crate::stats::unions::{ThreadCalls, Window, unions};
    use crate::units::FuncId;

    /// Returns active and callees of functions a, b and c. Calls are those of one thread, as they end:
    /// the path, start, end, and whether the end was seen.
    fn events(calls: &[(&str, u64, u64, bool)], max_depth: usize) -> [(u64, u64); 3] {
        let mut paths = Paths::new(100, max_depth);
        let calls = calls.iter().map(|&(path, start, end, timed)| {
            let step = |parent, letter: u8| paths.child(parent, FuncId(u32::from(letter - b'a')));
            let node = path.bytes().fold(ROOT, step);
            Call { start, duration: end - start, node, timed }
        });
        let calls: Vec<Call> = calls.collect();
        let thread = ThreadCalls { finished: calls.into_iter().rev(), open: Vec::new() };
        let window = Window { start: 0, end: 1_000 };
        let keep = [Default::default(); 3];
        let all = unions(window, vec![thread], paths.nodes(), &keep, true).events;
        let functions = all.expect("asked for").functions;
        [0, 1, 2].map(|at| (functions[at].active, functions[at].callees))
    }

    #[test]
    fn only_direct_callees_are_taken_away() {
        let nested = [("abc", 30, 40, true), ("ab", 20, 50, true), ("a", 10, 60, true)];
        assert_eq!(events(&nested, 99), [(50, 30), (30, 10), (10, 0)]);
    }

    #[test]
    fn calls_of_itself_are_no_callees() {
        let recursion = [("aab", 30, 40, true), ("aa", 20, 50, true), ("a", 10, 60, true)];
        assert_eq!(events(&recursion, 99), [(50, 10), (10, 0), (0, 0)]);
    }

    #[test]
    fn a_call_that_ended_unseen_is_no_event() {
        let unseen = [("ab", 20, 50, true), ("a", 10, 60, false)];
        assert_eq!(events(&unseen, 99), [(0, 0), (30, 0), (0, 0)]);
        let unseen = [("ab", 20, 50, false), ("a", 10, 60, true)];
        assert_eq!(events(&unseen, 99), [(50, 0), (0, 0), (0, 0)]);
    }

    /// Two stacks of a thread take turns. The call of b is not inside c, in which the other stack is.
    #[test]
    fn the_caller_is_on_the_same_stack() {
        let turns = [("ab", 20, 50, true), ("c", 15, 70, true), ("a", 10, 90, true)];
        assert_eq!(events(&turns, 99), [(80, 30), (30, 0), (55, 0)]);
    }

    #[test]
    fn beyond_the_bound_on_paths_the_caller_is_the_innermost_call() {
        let deep = [("abc", 30, 40, true), ("ab", 20, 50, true), ("a", 10, 60, true)];
        assert_eq!(events(&deep, 1), [(50, 30), (30, 10), (10, 0)]);
    }
}
