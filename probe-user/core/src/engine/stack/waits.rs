//! Waits of a thread inside its calls. A wait is a call that makes no calls. Its end is the thread's next
//! event, unless that was lost.

use super::{Frame, Stacks};
use crate::calls::paths::ROOT;
use crate::engine::ledger::Ledger;
use crate::units::FuncId;
use crate::waits::WaitClass;

/// The stack pointer of a wait. Every other event is above it, and so shows that the wait is over.
const BELOW_ALL: u64 = 0;

impl Stacks {
    /// Returns true if the thread is in a call that counts.
    pub(crate) fn is_inside(&self) -> bool {
        self.path() != ROOT
    }

    /// Returns the kind of the wait that is open.
    pub(crate) fn wait(&self) -> Option<WaitClass> {
        self.stacks.get(self.current)?.frames.last()?.wait
    }

    /// Returns the function and the start of the wait that is open, if it is one for something else than
    /// a processor.
    pub(crate) fn blocked(&self) -> Option<(FuncId, u64)> {
        let top = self.stacks.get(self.current)?.frames.last()?;
        (top.wait == Some(WaitClass::Blocked)).then_some((top.func, top.start))
    }

    /// Returns the path of the innermost call that counts. `None`: events were lost, so it may be another
    /// one.
    pub(crate) fn innermost_path(&self) -> Option<u32> {
        let top = self.stacks.get(self.current).and_then(|stack| stack.frames.last());
        if top.is_some_and(|top| top.damaged) { None } else { Some(self.path()) }
    }

    fn path(&self) -> u32 {
        if self.stacks.is_empty() { ROOT } else { self.parent().0 }
    }

    /// Begins a wait inside the innermost call, which counts.
    pub(crate) fn begin_wait(
        &mut self,
        (func, class): (FuncId, WaitClass),
        ts: u64,
        ledger: &mut Ledger,
    ) {
        self.end_wait(ts, ledger);
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
            restored: false,
            restored_at: 0,
            has_jumped: false,
            waited: self.waited,
            wait: Some(class),
        };
        self.stacks[self.current].frames.push(frame);
        self.last = ts;
    }

    /// Ends the wait that is open at an event of the thread itself, and counts it: the thread runs, although
    /// the kernel did not tell that the wait is over. Does nothing if its end may be lost.
    #[cold]
    pub(crate) fn end_untold_wait(&mut self, ts: u64, ledger: &mut Ledger) {
        let top = self.stacks.get(self.current).and_then(|stack| stack.frames.last());
        let is_untold = top.is_some_and(|top| top.wait.is_some() && !top.damaged);
        if is_untold {
            ledger.hidden_switches.back += 1;
            self.end_wait(ts, ledger);
        }
    }

    /// Ends the wait that is open, if there is one.
    pub(crate) fn end_wait(&mut self, ts: u64, ledger: &mut Ledger) {
        if self.wait().is_some() {
            self.end_top(self.current, ledger, ts, true);
            self.last = ts;
        }
    }
}
