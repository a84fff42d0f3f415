//! The shadow stacks of one thread, kept correct by the stack pointer.
//!
//! Stacks grow down. An event with stack pointer S proves that every frame below S is gone. So a
//! longjmp, an exception or a lost return costs a duration, but never the structure. A thread may
//! run on several stacks (signal stacks, fibers); pointers are compared only within one of them.

mod by_order;
mod ends;
mod facts;
mod jumps;
mod plain;
mod restored;
mod unmet;
mod waits;

pub(crate) use facts::StackFacts;

use crate::calls::paths::ROOT;
use crate::calls::spool::Call;
use crate::engine::ledger::{Account, Ledger};
use crate::engine::region::Regions;
use crate::units::{FuncId, Pid, ThreadId};
use crate::waits::{WaitClass, Waits};
use ctrace_common::STACK_SIZE;
use std::ops::Range;

/// The number of stacks of one thread that are kept apart.
const MAX_STACKS: usize = 32;
/// The number of frames that can share a stack pointer. The kernel reports at most 64 returns per
/// thread, so further tail calls end unseen anyway.
const MAX_CHAIN: u16 = 128;
/// The number of frames on one stack; a real one of 8 MiB holds half as many.
const MAX_FRAMES: usize = 1 << 20;

/// A call that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    sp: u64,
    pub(crate) start: u64,
    /// The time in direct tracked callees.
    callees: u64,
    pub(crate) func: FuncId,
    site: u8,
    pub(crate) node: u32,
    /// The number of enclosing frames that count, including this one if it counts.
    depth: u32,
    /// The number of frames at the same stack pointer beneath this one.
    chain: u16,
    pub(crate) filtered: bool,
    /// Events were lost while it was open, so its exit proves nothing about its duration.
    damaged: bool,
    /// Its return address was put back, so no return probe sees its end.
    restored: bool,
    /// The time at which that was, as long as the thread may still be occupied with it. Otherwise 0.
    restored_at: u64,
    /// It has left by a jump to a traced function, and ends with the call of that one.
    has_jumped: bool,
    /// The waits of the thread before it.
    waited: Waits,
    /// Its kind if it is a wait.
    wait: Option<WaitClass>,
}

impl Frame {
    /// Enters the call, which is over. `waited`: the waits of the thread until then. Returns the time
    /// that does not belong to its caller itself.
    #[inline]
    fn finish(
        &self,
        who: &mut Account,
        ledger: &mut Ledger,
        end: u64,
        timed: bool,
        waited: Waits,
    ) -> u64 {
        if self.filtered {
            return self.callees;
        }
        let duration = end.saturating_sub(self.start);
        let call = Call { start: self.start, duration, node: self.node, timed };
        ledger.finish(who, self.func, call, self.callees, waited.since(self.waited))
    }
}

/// A reference to a frame; another frame may have replaced it since.
#[derive(Clone, Copy, Debug)]
struct FrameRef {
    stack: usize,
    index: usize,
    start: u64,
}

#[derive(Debug)]
struct Stack {
    /// The pointers that belong to this stack.
    covers: Range<u64>,
    /// The limits for the growth of `covers`.
    space: Range<u64>,
    frames: Vec<Frame>,
    /// The frame that the first frame interrupted.
    below: Option<FrameRef>,
    /// The thread's frame when it last switched to this stack. A new first frame interrupts that
    /// one.
    from: Option<FrameRef>,
    /// The time at which it was left; the oldest stack is replaced first.
    left: u64,
}

/// The position of an event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) func: FuncId,
    pub(crate) sp: u64,
    pub(crate) ts: u64,
    /// True for a marker, false for a function.
    pub(crate) is_scope: bool,
    /// The site within its scope: a function that was inlined into itself has several.
    pub(crate) site: u8,
}

/// All stacks of one thread.
#[derive(Debug)]
pub(crate) struct Stacks {
    stacks: Vec<Stack>,
    current: usize,
    /// True if the filter lets this thread's calls count.
    pub(crate) selected: bool,
    /// The time of the last event.
    pub(crate) last: u64,
    pub(crate) account: Account,
    /// All waits of the thread inside its calls.
    waited: Waits,
    /// For calls that are joined by order: the number of ends that may still come of calls that
    /// were given up.
    owed: u64,
}

impl Stacks {
    pub(crate) fn new(thread: ThreadId, selected: bool) -> Self {
        let account = Account::of(thread);
        let (stacks, waited) = (Vec::new(), Waits::default());
        Self { stacks, current: 0, selected, last: 0, account, waited, owed: 0 }
    }

    /// Returns the open calls, the earliest first.
    pub(crate) fn open(&self) -> Vec<&Frame> {
        let frames = self.stacks.iter().flat_map(|stack| &stack.frames);
        let mut open = frames.filter(|frame| !frame.filtered).collect::<Vec<_>>();
        open.sort_by_key(|frame| frame.start);
        open
    }

    /// Returns true if this call is open.
    #[cold]
    pub(crate) fn has_begun(&self, func: FuncId, sp: u64, start: u64) -> bool {
        let mut frames = self.stacks.iter().flat_map(|stack| stack.frames.iter().rev());
        frames.any(|frame| (frame.func, frame.sp, frame.start) == (func, sp, start))
    }

    /// Switches to the stack that `sp` is on, at an event of that time.
    #[inline]
    pub(crate) fn turn_to(
        &mut self,
        pid: Pid,
        (sp, ts): (u64, u64),
        regions: &Regions,
        ledger: &mut Ledger,
    ) {
        if !self.stacks.get(self.current).is_some_and(|stack| stack.covers.contains(&sp)) {
            self.leave_restored(ts, ledger);
            self.switch(pid, sp, regions, ledger);
        }
    }

    #[cold]
    fn switch(&mut self, pid: Pid, sp: u64, regions: &Regions, ledger: &mut Ledger) {
        // The thread runs, so the end of its wait was lost.
        if self.wait().is_some() {
            self.end_top(self.current, ledger, self.last, false);
        }
        let below = self.innermost();
        if let Some(stack) = self.stacks.get_mut(self.current) {
            stack.left = self.last;
        }
        let known = self.stacks.iter().position(|stack| stack.covers.contains(&sp));
        let next = known.unwrap_or_else(|| self.open_stack(pid, sp, regions, ledger));
        // A return to the interrupted stack is not inside the interrupting one.
        let from = below.filter(|_| !self.is_beneath(next));
        let has_frames = |at: usize| self.stacks.get(at).is_some_and(|it| !it.frames.is_empty());
        if has_frames(next) && has_frames(self.current) {
            self.mix(ledger);
        }
        let stack = &mut self.stacks[next];
        stack.from = from;
        if stack.frames.is_empty() {
            stack.below = below;
        }
        self.current = next;
    }

    /// Notes that calls which are open now are not inside each other.
    fn mix(&self, ledger: &mut Ledger) {
        if let Some(mixed) = &mut ledger.mixed {
            mixed.add(self.account.thread(), self.last);
        }
    }

    /// Returns true if the current stack's frames are inside those of `stack`.
    fn is_beneath(&self, stack: usize) -> bool {
        let below = |of: usize| self.stacks.get(of).and_then(|stack| stack.below);
        let chain = std::iter::successors(below(self.current), |at| below(at.stack));
        chain.take(MAX_STACKS).any(|at| at.stack == stack)
    }

    fn open_stack(&mut self, pid: Pid, sp: u64, regions: &Regions, ledger: &mut Ledger) -> usize {
        let (covers, space) = match regions.stack_of(pid, sp) {
            Some(stack) => (stack.clone(), stack),
            None => (sp..sp.saturating_add(1), regions.space_around(pid, sp)),
        };
        let left = self.last;
        let mut stack = Stack { covers, space, frames: Vec::new(), below: None, from: None, left };
        stack.reach(sp);
        let place = match self.stacks.iter().position(|stack| stack.frames.is_empty()) {
            Some(empty) => empty,
            None if self.stacks.len() < MAX_STACKS => {
                self.stacks.push(stack);
                return self.stacks.len() - 1;
            }
            None => {
                let ages = self.stacks.iter().enumerate().map(|(index, stack)| (stack.left, index));
                let oldest = ages.min().map_or(0, |(_, index)| index);
                self.mix(ledger);
                self.end_all(oldest, ledger);
                oldest
            }
        };
        self.stacks[place] = stack;
        place
    }

    /// Returns the frame in which an event on the current stack happens.
    fn innermost(&self) -> Option<FrameRef> {
        let stack = self.stacks.get(self.current)?;
        match stack.frames.last() {
            Some(frame) => {
                let index = stack.frames.len() - 1;
                Some(FrameRef { stack: self.current, index, start: frame.start })
            }
            None => self.interrupted_by(self.current),
        }
    }

    /// Returns the frame that the first frame of `stack` interrupted, while it is open.
    fn interrupted_by(&self, stack: usize) -> Option<FrameRef> {
        self.stacks[stack].below.filter(|&below| self.frame(below).is_some())
    }

    fn frame(&self, of: FrameRef) -> Option<&Frame> {
        let frame = self.stacks.get(of.stack)?.frames.get(of.index)?;
        (frame.start == of.start).then_some(frame)
    }

    /// Enters a function on the current stack. Returns true if a call began that counts.
    pub(crate) fn enter(&mut self, at: Place, facts: &[StackFacts], ledger: &mut Ledger) -> bool {
        self.bury(at.sp, at.ts, ledger);
        let mut chain = 0;
        if let Some(&top) = self.top_at(at.sp) {
            let beneath = top.chain;
            if top.func == at.func && facts[top.func.index()].loop_head {
                return false;
            }
            if !top.nests(at.func, facts) {
                // It cannot have jumped here, so its exit was lost, and with it the exits of the
                // frames that it replaced by a jump.
                self.bury(at.sp.saturating_add(1), at.ts, ledger);
            } else if beneath + 1 < MAX_CHAIN {
                chain = beneath + 1;
            } else {
                self.end_top(self.current, ledger, self.last, false);
                chain = self.top_at(at.sp).map_or(0, |top| top.chain + 1);
            }
        }
        self.push(at, chain, ledger)
    }

    /// Enters a marker scope on the current stack. Scopes of one function share a stack pointer.
    /// But if the same scope is already open there, its exit was not seen. Returns true if the new
    /// one counts.
    pub(crate) fn enter_scope(&mut self, at: Place, ledger: &mut Ledger) -> bool {
        self.bury(at.sp, at.ts, ledger);
        while self.is_open_at(at) {
            self.end_top(self.current, ledger, self.last, false);
        }
        self.push(at, 0, ledger)
    }

    fn push(&mut self, at: Place, chain: u16, ledger: &mut Ledger) -> bool {
        let (parent, above) = self.parent();
        let filtered = self.is_filtered(above, ledger);
        if filtered && self.selected {
            ledger.leave_out_in(parent);
        }
        let node = if filtered { parent } else { ledger.node(parent, at.func) };
        let stack = &mut self.stacks[self.current];
        if stack.frames.len() < MAX_FRAMES {
            stack.reach(at.sp);
            stack.frames.push(Frame {
                sp: at.sp,
                start: at.ts,
                callees: 0,
                func: at.func,
                site: at.site,
                node,
                depth: above + u32::from(!filtered),
                chain,
                filtered,
                damaged: false,
                restored: false,
                restored_at: 0,
                has_jumped: false,
                waited: self.waited,
                wait: None,
            });
        } else if !filtered {
            ledger.point(&mut self.account, at.func, at.ts, node);
        }
        !filtered
    }

    /// Leaves a function on the current stack. `may_be_none`: it is an end only if a frame fits, as for
    /// a jump.
    pub(crate) fn exit(
        &mut self,
        at: Place,
        may_be_none: bool,
        facts: &[StackFacts],
        ledger: &mut Ledger,
    ) {
        self.bury(at.sp, at.ts, ledger);
        if !self.uncover(at, ledger) {
            let may_be_none = may_be_none || facts[at.func.index()].ends_may_be_none;
            if !may_be_none && self.selected && !self.may_end_left_out(ledger) {
                ledger.headless(at.func);
            }
            return;
        }
        self.end_top(self.current, ledger, at.ts, true);
        if self.stacks[self.current].frames.is_empty()
            && let Some(interrupted) = self.interrupted_by(self.current)
        {
            self.stacks[self.current].left = at.ts;
            self.current = interrupted.stack;
        }
    }

    /// Returns true if an end on the current stack that fits no call may be of one that came without
    /// events, because it is too deep.
    fn may_end_left_out(&self, ledger: &Ledger) -> bool {
        ledger.thrifty && !ledger.filter.selects_depth(self.parent().1)
    }

    /// Returns the start of the call that this exit ends, if its stack is the current one. There is
    /// none if the call is filtered, or if events were lost since: it may be another one then.
    #[cold]
    pub(crate) fn ended_by(&self, at: Place) -> Option<u64> {
        let frames = self.stacks.get(self.current)?.frames.iter().rev();
        let mut at_sp = frames.skip_while(|frame| frame.sp < at.sp);
        let ended =
            at_sp.by_ref().take_while(|frame| frame.sp == at.sp).find(|top| top.is_of(at))?;
        (!ended.filtered && !ended.damaged).then_some(ended.start)
    }

    /// Passes a point, which has no duration. Returns true if it counts.
    pub(crate) fn point(&mut self, at: Place, ledger: &mut Ledger) -> bool {
        self.bury(at.sp, at.ts, ledger);
        let (parent, above) = self.parent();
        let counts = !self.is_filtered(above, ledger);
        if counts {
            let node = ledger.node(parent, at.func);
            ledger.point(&mut self.account, at.func, at.ts, node);
        }
        counts
    }

    /// Returns the current stack's innermost frame, if its stack pointer is `sp`.
    #[inline]
    fn top_at(&self, sp: u64) -> Option<&Frame> {
        self.stacks[self.current].frames.last().filter(|top| top.sp == sp)
    }

    fn is_open_at(&self, at: Place) -> bool {
        let frames = self.stacks[self.current].frames.iter().rev();
        frames.take_while(|frame| frame.sp == at.sp).any(|frame| frame.is_of(at))
    }

    /// Returns the path node of the innermost frame, and the number of frames that enclose a new
    /// one.
    #[inline]
    fn parent(&self) -> (u32, u32) {
        let frame = match self.stacks[self.current].frames.last() {
            Some(frame) => Some(frame),
            None => self.interrupted_by(self.current).and_then(|below| self.frame(below)),
        };
        frame.map_or((ROOT, 0), |frame| (frame.node, frame.depth))
    }

    #[inline]
    fn is_filtered(&self, above: u32, ledger: &mut Ledger) -> bool {
        let filtered = !(self.selected && ledger.filter.selects_depth(above));
        ledger.filtered += u64::from(filtered);
        filtered
    }
}

impl Frame {
    /// Returns true if it belongs to the function or scope of this event.
    #[inline]
    fn is_of(&self, at: Place) -> bool {
        (self.func, self.site) == (at.func, at.site)
    }
}

impl Stack {
    /// Claims the surroundings of `sp`, except known stacks.
    #[inline]
    fn reach(&mut self, sp: u64) {
        let low = sp.saturating_sub(STACK_SIZE).max(self.space.start);
        let high = sp.saturating_add(STACK_SIZE).min(self.space.end);
        self.covers = self.covers.start.min(low)..self.covers.end.max(high);
    }
}
