//! Entries of calls that do not meet the condition of their function: they are no calls, but prove
//! that earlier ones are over.

use super::{Place, StackFacts, Stacks};
use crate::engine::ledger::Ledger;

impl Stacks {
    /// Ends what an entry on the current stack shows to be over. A call that may have left by a jump
    /// goes on, unless it is one of the same function: the end that comes now is not its own.
    pub(crate) fn pass_unmet(&mut self, at: Place, facts: &[StackFacts], ledger: &mut Ledger) {
        self.bury(at.sp, at.ts, ledger);
        while let Some(top) = self.top_at(at.sp)
            && (top.func == at.func || !top.nests(at.func, facts))
        {
            self.end_top(self.current, ledger, self.last, false);
        }
    }
}
