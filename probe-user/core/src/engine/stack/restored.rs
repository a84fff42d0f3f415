//! Return addresses that are put back while calls are open: for an exception, a backtrace, a change of stacks or
//! a signal. The thread is held meanwhile, and the unwinder hits guards.
//!
//! Nothing measures how long that takes. It is over when the thread is seen to have left what was innermost
//! then. So each call that was open notes the time until there: how much of it is the cost is not known.

use super::{Frame, Stacks};
use crate::engine::ledger::Ledger;
use crate::function::ExitSeen;
use crate::units::Nanos;
use ctrace_common::{MOST_HIJACKED, STACK_SIZE};

impl Stacks {
    /// Notes that the open calls may end unseen: something unwinds, or no return probe sees them any more.
    /// `sp` is the thread's stack pointer, or 0. The innermost one goes on now, so this is an event of it, if
    /// its end would have been seen and the stack does not show that it is over.
    pub(crate) fn restore(&mut self, now: Nanos, sp: u64, ledger: &Ledger) {
        let frames = self.stacks.get(self.current).map_or(&[][..], |stack| &stack.frames);
        let goes_on = |top: &Frame| {
            let is_whole = !top.restored && !top.damaged && !top.has_jumped;
            let is_inside = sp != 0 && top.sp.wrapping_sub(sp) <= STACK_SIZE;
            is_whole
                && match ledger.exits[top.func.index()] {
                    ExitSeen::ByReturnProbe => {
                        frames.len() <= MOST_HIJACKED && (is_inside || sp == 0)
                    }
                    ExitSeen::ByExitSites => is_inside,
                    ExitSeen::Never => false,
                }
        };
        if frames.last().is_some_and(goes_on) {
            self.last = self.last.max(now.0);
        }
        for frame in self.stacks.iter_mut().flat_map(|stack| &mut stack.frames) {
            if frame.restored_at == 0 {
                frame.restored_at = now.0.max(1);
            }
            frame.restored = true;
        }
    }

    /// Notes the time of a call that ends, from when its return address was put back on. An end that was
    /// seen shows that this is over.
    #[cold]
    pub(super) fn end_restored(
        &mut self,
        frame: &Frame,
        end: u64,
        timed: bool,
        ledger: &mut Ledger,
    ) {
        frame.note_restored(end, true, ledger);
        if timed {
            self.settle_restored(end, ledger);
        }
    }

    /// Notes that the thread goes on on another stack, so that what it did for this one is over.
    #[cold]
    pub(super) fn leave_restored(&mut self, now: u64, ledger: &mut Ledger) {
        let top = self.stacks.get(self.current).and_then(|stack| stack.frames.last());
        if top.is_some_and(|top| top.restored_at != 0) {
            self.settle_restored(now, ledger);
        }
    }

    /// Notes for the calls that are open that what was done at the putting back is over. Of self times, the
    /// innermost call of the current stack may have some of that.
    #[cold]
    pub(super) fn settle_restored(&mut self, now: u64, ledger: &mut Ledger) {
        for (index, stack) in self.stacks.iter_mut().enumerate() {
            let innermost = stack.frames.len().checked_sub(1).filter(|_| index == self.current);
            for (place, frame) in stack.frames.iter_mut().enumerate() {
                if frame.restored_at != 0 {
                    frame.note_restored(now, Some(place) == innermost, ledger);
                    frame.restored_at = 0;
                }
            }
        }
    }
}

impl Frame {
    fn note_restored(&self, end: u64, is_innermost: bool, ledger: &mut Ledger) {
        if self.filtered {
            return;
        }
        let restored = &mut ledger.functions[self.func.index()].restored;
        let time = Nanos(end.saturating_sub(self.restored_at));
        restored.calls += 1;
        restored.total_ns = restored.total_ns.saturating_add(time);
        if is_innermost {
            restored.self_ns = restored.self_ns.saturating_add(time);
        }
    }
}
