//! Waits of a thread inside its calls. A wait is a call that makes no calls. Its end is the thread's next
//! event, unless that was lost.

use super::{Frame, StackFacts, Stacks};
use crate::calls::paths::ROOT;
use crate::engine::ledger::Ledger;
use crate::units::FuncId;
use crate::waits::{WaitClass, Waits};

/// The stack pointer of a wait. Every other event is above it, and so shows that the wait is over.
const BELOW_ALL: u64 = 0;

impl Stacks {
    /// Returns true if the thread is in a call that counts.
    pub(crate) fn is_inside(&self) -> bool {
        !self.stacks.is_empty() && self.parent().0 != ROOT
    }

    /// Returns true if the thread is blocked inside a call.
    pub(crate) fn is_blocked(&self, facts: &[StackFacts]) -> bool {
        self.wait(facts).is_some_and(|(class, _)| class == WaitClass::Blocked)
    }

    /// Returns the wait that is open.
    fn wait(&self, facts: &[StackFacts]) -> Option<(WaitClass, &Frame)> {
        let frame = self.stacks.get(self.current)?.frames.last()?;
        Some((facts[frame.func.index()].wait?, frame))
    }

    /// Begins a wait inside the innermost call, which counts.
    pub(crate) fn begin_wait(
        &mut self,
        func: FuncId,
        ts: u64,
        facts: &[StackFacts],
        ledger: &mut Ledger,
    ) {
        self.end_wait(ts, facts, ledger);
        let (parent, above) = self.parent();
        let frame = Frame {
            sp: BELOW_ALL,
            start: ts,
            callees: 0,
            func,
            site: 0,
            node: ledger.node(parent, func),
            depth: above + 1,
            chain: 0,
            filtered: false,
            damaged: false,
            waited: self.waited,
        };
        self.stacks[self.current].frames.push(frame);
        self.last = ts;
    }

    /// Ends the wait that is open, if there is one.
    pub(crate) fn end_wait(&mut self, ts: u64, facts: &[StackFacts], ledger: &mut Ledger) {
        let Some((class, frame)) = self.wait(facts) else { return };
        let end = if frame.damaged { self.last } else { ts };
        let waited = Waits::one(class, end.saturating_sub(frame.start));
        self.waited.add(waited);
        self.end_top(self.current, ledger, ts, true);
        self.last = ts;
    }
}
