//! Plain entries and exits, which nearly all are. A few comparisons recognise them; the parent
//! module handles the others.
//!
//! They are always inlined: the tracker's loop exists twice, and for two callers a compiler makes
//! calls of them, which cost 7 % more instructions.

use super::{Frame, MAX_FRAMES, Place, Stacks};
use crate::calls::paths::ROOT;
use crate::calls::spool::Call;
use crate::engine::ledger::Ledger;
use crate::filter::Filter;
use crate::waits::Waits;

impl Stacks {
    /// Returns the path node of the caller of a function entered at `sp`, and the number of frames
    /// that enclose it, if they are plain. They nearly always are.
    #[inline]
    fn plain_caller(&self, at: Place, filter: &Filter) -> Option<(u32, u32)> {
        let stack = self.stacks.get(self.current)?;
        let sp = at.sp;
        let (parent, above, below_caller) = match stack.frames.last() {
            Some(caller) => {
                // Scopes of one function share a stack pointer.
                let beside = at.is_scope && sp == caller.sp && !caller.is_of(at);
                (caller.node, caller.depth, sp < caller.sp || beside)
            }
            None => (ROOT, 0, stack.below.is_none()),
        };
        let plain = below_caller
            && stack.covers.contains(&sp)
            && stack.frames.len() < MAX_FRAMES
            && self.selected
            && filter.selects_depth(above);
        plain.then_some((parent, above))
    }

    /// Enters a function, if its caller is plain.
    #[inline(always)]
    pub(crate) fn enter_plainly(&mut self, at: Place, ledger: &mut Ledger) -> bool {
        let Some((parent, above)) = self.plain_caller(at, &ledger.filter) else { return false };
        let stack = &mut self.stacks[self.current];
        stack.reach(at.sp);
        stack.frames.push(Frame {
            sp: at.sp,
            start: at.ts,
            callees: 0,
            func: at.func,
            site: at.site,
            node: ledger.node(parent, at.func),
            depth: above + 1,
            chain: 0,
            filtered: false,
            damaged: false,
            restored: false,
            restored_at: 0,
            has_jumped: false,
            waited: self.waited,
            wait: None,
        });
        true
    }

    /// Enters a function that the thread's next event left at `end`: the same as
    /// [`Self::enter_plainly`] and [`Self::exit_plainly`], without the frame.
    #[inline(always)]
    pub(crate) fn leaf_plainly(&mut self, at: Place, end: u64, ledger: &mut Ledger) -> bool {
        let Some((parent, _)) = self.plain_caller(at, &ledger.filter) else { return false };
        let stack = &mut self.stacks[self.current];
        stack.reach(at.sp);
        let node = ledger.node(parent, at.func);
        let call = Call { start: at.ts, duration: end - at.ts, node, timed: true };
        let spent = ledger.finish(&mut self.account, at.func, call, 0, Waits::default());
        if let Some(caller) = stack.frames.last_mut() {
            caller.callees = caller.callees.saturating_add(spent);
        }
        true
    }

    /// Leaves a function if the innermost frame is of it, which nearly always holds.
    #[inline(always)]
    pub(crate) fn exit_plainly(&mut self, at: Place, ledger: &mut Ledger) -> bool {
        let Some(stack) = self.stacks.get_mut(self.current) else { return false };
        let [callers @ .., top] = &mut stack.frames[..] else { return false };
        let caller = callers.last_mut();
        // A call that jumped to it ends with it.
        let plain = top.sp == at.sp
            && top.is_of(at)
            && !top.damaged
            && top.restored_at == 0
            && top.chain == 0
            && (caller.is_some() || stack.below.is_none());
        if plain {
            let spent = top.finish(&mut self.account, ledger, at.ts, true, self.waited);
            if let Some(caller) = caller {
                caller.callees = caller.callees.saturating_add(spent);
            }
            stack.frames.pop();
        }
        plain
    }
}
