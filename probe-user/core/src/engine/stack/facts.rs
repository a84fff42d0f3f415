//! The facts about a function that the stack rule needs. It looks here at each event, so this is
//! small.

use crate::function::FunctionInfo;

/// The facts about a function that the stack rule needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackFacts {
    pub(super) loop_head: bool,
    /// A tail call leaves its frame open until its successor returns.
    pub(super) tail_calls_nest: bool,
    /// A seen end may be of a call that did not count, as its beginning did not meet the condition.
    pub(super) ends_may_be_none: bool,
}

impl From<&FunctionInfo> for StackFacts {
    fn from(info: &FunctionInfo) -> Self {
        Self {
            loop_head: info.entry_is_loop_head,
            tail_calls_nest: info.tail_calls_nest(info.exit),
            ends_may_be_none: info.condition.is_some(),
        }
    }
}
