//! The ends of calls, by an event or because something shows that they are over. Each end passes
//! through one function, so that the calls around it learn of its time and of its waits.

use super::{Frame, Stack, Stacks};
use crate::engine::ledger::Ledger;
use crate::function::ExitSeen;
use crate::units::FuncId;
use crate::waits::Waits;
use ctrace_common::MOST_HIJACKED;
use std::collections::HashSet;

impl Stacks {
    /// Notes that events of this thread were lost.
    #[cold]
    pub(crate) fn damage(&mut self) {
        for stack in &mut self.stacks {
            stack.frames.iter_mut().for_each(|frame| frame.damaged = true);
        }
        self.give_up_jumps();
    }

    /// Ends the open calls of these functions, and the calls inside them: their ends are not seen from `at`
    /// on. What comes later may be no part of them, except calls that seemed to be inside and have ended.
    pub(crate) fn forsake(&mut self, functions: &HashSet<FuncId>, at: u64, ledger: &mut Ledger) {
        let last = self.last;
        self.last = last.min(at.max(ledger.latest_end(&self.account)));
        for stack in 0..self.stacks.len() {
            let frames = &self.stacks[stack].frames;
            let first = frames.iter().position(|frame| functions.contains(&frame.func));
            let Some(first) = first else { continue };
            while self.stacks[stack].frames.len() > first {
                self.end_top(stack, ledger, self.last, false);
            }
        }
        self.last = last;
        self.give_up_jumps();
    }

    /// Ends every frame, because the thread or its stacks are gone.
    pub(crate) fn close(&mut self, ledger: &mut Ledger) {
        for stack in (0..self.stacks.len()).rev() {
            self.end_all(stack, ledger);
        }
        self.stacks.clear();
        (self.current, self.owed) = (0, 0);
    }

    /// Ends the innermost frame of a stack, and those that left by jumps to it.
    #[cold]
    pub(super) fn end_top(&mut self, stack: usize, ledger: &mut Ledger, end: u64, timed: bool) {
        let Some(sp) = self.stacks[stack].frames.last().map(|top| top.sp) else { return };
        self.end_one(stack, ledger, end, timed);
        let jumped =
            |stack: &Stack| stack.frames.last().is_some_and(|top| top.sp == sp && top.has_jumped);
        while jumped(&self.stacks[stack]) {
            self.end_one(stack, ledger, end, timed);
        }
    }

    fn end_one(&mut self, stack: usize, ledger: &mut Ledger, end: u64, timed: bool) {
        let Some(frame) = self.stacks[stack].frames.pop() else { return };
        let timed = timed && !frame.damaged;
        let end = if timed { end } else { self.last };
        if let Some(class) = frame.wait {
            ledger.ended_waits += 1;
            self.waited.add(Waits::one(class, end.saturating_sub(frame.start)));
        }
        if frame.restored_at != 0 {
            self.end_restored(&frame, end, timed, ledger);
        }
        let spent = frame.finish(&mut self.account, ledger, end, timed, self.waited);
        let caller = match self.stacks[stack].frames.last_mut() {
            Some(caller) => Some(caller),
            None => {
                self.interrupted_by(stack).map(|at| &mut self.stacks[at.stack].frames[at.index])
            }
        };
        if let Some(caller) = caller {
            caller.callees = caller.callees.saturating_add(spent);
        }
    }

    pub(super) fn end_all(&mut self, stack: usize, ledger: &mut Ledger) {
        while !self.stacks[stack].frames.is_empty() {
            self.end_top(stack, ledger, self.last, false);
        }
    }

    /// Counts the innermost call of the current stack, whose end was not seen, if the kernel had no return
    /// probe left for it.
    #[cold]
    fn count_if_too_deep(&self, ledger: &mut Ledger) {
        let [around @ .., top] = &self.stacks[self.current].frames[..] else { return };
        let has_return_probe =
            |frame: &Frame| ledger.exits[frame.func.index()] == ExitSeen::ByReturnProbe;
        if top.restored || top.damaged || around.len() < MOST_HIJACKED || !has_return_probe(top) {
            return;
        }
        let around = around.iter().filter(|frame| has_return_probe(frame)).take(MOST_HIJACKED);
        ledger.too_deep += u64::from(around.count() == MOST_HIJACKED);
    }

    /// Ends the frames of the current stack that the stack pointer proves dead. If none remain, as
    /// when a signal handler that left by a jump runs again, the next frame is inside the code that
    /// it interrupts now. `ts` is the time of the event.
    #[inline]
    pub(super) fn bury(&mut self, sp: u64, ts: u64, ledger: &mut Ledger) {
        while let Some(top) = self.stacks[self.current].frames.last()
            && top.sp < sp
        {
            let was_restored = top.restored_at != 0;
            self.count_if_too_deep(ledger);
            self.end_top(self.current, ledger, self.last, false);
            let stack = &mut self.stacks[self.current];
            if stack.frames.is_empty() {
                stack.below = stack.from;
            }
            if was_restored && stack.frames.last().is_none_or(|top| top.sp >= sp) {
                self.settle_restored(ts, ledger);
            }
        }
    }
}
