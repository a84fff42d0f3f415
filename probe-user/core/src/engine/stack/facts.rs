//! The facts about a function that the stack rule needs. It looks here at each event that is not plain,
//! so this is small.

use crate::function::{ExitSeen, FunctionInfo};
use crate::units::FuncId;
use std::collections::HashMap;

/// The facts about a function that the stack rule needs.
#[derive(Clone, Debug)]
pub(crate) struct StackFacts {
    pub(super) loop_head: bool,
    /// A tail call leaves its frame open until its successor returns.
    pub(super) tail_calls_nest: bool,
    /// A seen end may be of a call that did not count, as its beginning did not meet the condition.
    pub(super) ends_may_be_none: bool,
    /// A call goes on behind the jump by which it leaves, until its successor returns.
    pub(crate) goes_on: bool,
    /// The traced functions to which it may jump, if all its jumps lead to such.
    successors: Box<[FuncId]>,
}

impl StackFacts {
    /// Returns those of a function that may jump to these.
    pub(crate) fn new(info: &FunctionInfo, successors: Box<[FuncId]>) -> Self {
        Self {
            loop_head: info.entry_is_loop_head,
            tail_calls_nest: info.tail_calls_nest(info.exit),
            ends_may_be_none: info.condition.is_some(),
            goes_on: info.exit == ExitSeen::ByExitSites && !successors.is_empty(),
            successors,
        }
    }

    /// Takes over that the function is another by now.
    pub(crate) fn renew(&mut self, info: &FunctionInfo) {
        *self = Self::new(info, std::mem::take(&mut self.successors));
    }

    pub(super) fn may_jump_to(&self, next: FuncId) -> bool {
        self.successors.contains(&next)
    }

    /// Lets calls that jump to functions whose ends are lost end at their jumps, and so on for calls that
    /// jump to these. Returns the functions whose calls do that from now on.
    pub(crate) fn lose_ends(facts: &mut [Self], mut lost: Vec<FuncId>) -> Vec<FuncId> {
        let mut jump_to: HashMap<FuncId, Vec<FuncId>> = HashMap::new();
        for (index, one) in facts.iter().enumerate() {
            for next in &one.successors {
                jump_to.entry(*next).or_default().push(FuncId(index as u32));
            }
        }
        let mut ends_at_jump = Vec::new();
        while let Some(function) = lost.pop() {
            for before in jump_to.remove(&function).unwrap_or_default() {
                let facts = &mut facts[before.index()];
                // Its own end is seen where a return probe sees it.
                let depends = facts.goes_on;
                if !facts.successors.is_empty() {
                    (facts.successors, facts.goes_on) = (Box::default(), false);
                    ends_at_jump.push(before);
                    lost.extend(depends.then_some(before));
                }
            }
        }
        ends_at_jump
    }
}
