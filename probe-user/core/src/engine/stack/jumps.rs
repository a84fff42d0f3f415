//! Tail calls of functions whose ways out are probed. The jump ends nothing but the function's own
//! code: its caller goes on when the function it jumped to returns. Where that one is traced, its end
//! is seen. So the call stays open at the jump, the next call is inside it, and both end together, as
//! return probes show it.
//!
//! An entry at the same stack pointer does not prove by itself that a call jumped there: its caller
//! may make its next call at that place. So only a call stays open that is known to jump to one of
//! a few functions, and only an entry of one of these is inside it.

use super::{Frame, Place, StackFacts, Stacks};
use crate::engine::ledger::Ledger;
use crate::units::FuncId;

impl Stacks {
    /// Notes that a call on the current stack leaves by a jump to a traced function.
    pub(crate) fn jump_on(&mut self, at: Place, ledger: &mut Ledger) {
        self.bury(at.sp, at.ts, ledger);
        if self.uncover(at, ledger)
            && let Some(top) = self.stacks[self.current].frames.last_mut()
        {
            top.has_jumped = true;
        }
    }

    /// Notes that the entry of a function to which a call has jumped may not have been seen.
    pub(super) fn give_up_jumps(&mut self) {
        for stack in &mut self.stacks {
            let mut above = None;
            for frame in stack.frames.iter_mut().rev() {
                // What it jumped to is open, at its stack pointer.
                frame.has_jumped &= above == Some(frame.sp);
                above = Some(frame.sp);
            }
        }
    }

    /// Ends the calls that share the stack pointer of this event's call and are inside it, so that it is
    /// the innermost one. Returns false if no such call is open.
    pub(super) fn uncover(&mut self, at: Place, ledger: &mut Ledger) -> bool {
        let is_open = self.is_open_at(at);
        while is_open && self.top_at(at.sp).is_some_and(|top| !top.is_of(at)) {
            self.end_top(self.current, ledger, self.last, false);
        }
        // It has ended along with them if it had jumped to one.
        is_open && self.top_at(at.sp).is_some_and(|top| top.is_of(at))
    }

    /// Returns the functions and starts of the calls that end with the call that this exit ends, because
    /// they left by a jump to it, if its stack is the current one. They are not filtered, and no events
    /// were lost since they began.
    #[cold]
    pub(crate) fn ended_beside(&self, at: Place) -> Vec<(FuncId, u64)> {
        let Some(stack) = self.stacks.get(self.current) else { return Vec::new() };
        let at_sp = stack.frames.iter().rev().skip_while(|frame| frame.sp < at.sp);
        let around = at_sp.skip_while(|frame| frame.sp == at.sp && !frame.is_of(at)).skip(1);
        let jumped = around.take_while(|frame| frame.sp == at.sp && frame.has_jumped);
        let counts = jumped.filter(|frame| !frame.filtered && !frame.damaged);
        counts.map(|frame| (frame.func, frame.start)).collect()
    }
}

impl Frame {
    /// Returns true if it may have left by a jump to this function, which is entered at its stack
    /// pointer, and is open until that returns.
    #[inline]
    pub(super) fn nests(&self, next: FuncId, facts: &[StackFacts]) -> bool {
        let facts = &facts[self.func.index()];
        match self.has_jumped {
            true => facts.may_jump_to(next),
            false => facts.tail_calls_nest && !self.restored,
        }
    }
}
