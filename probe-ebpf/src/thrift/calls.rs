//! The open calls of one thread that have made events, or may do so yet. Only the thread itself changes them.

use crate::{
    aggregate::counting,
    atomic::Counter,
    loss,
    maps::{KEPT_CALLS, NO_KEPT_CALLS},
    output::Task,
    ring::reserve,
    settings,
    turns::repeat,
};
use core::arch::asm;
use ctrace_common::{KeptCall, KeptCalls, Kind, MOST_KEPT, Record, STACK_SIZE};

/// When a thread last looked for room and found none; 0: never.
static FULL: Counter = Counter::new();

/// The time after which one looks again: each look takes locks of all CPUs.
const FULL_NANOS: u64 = 1_000_000;

/// The least distance of stack pointers on different stacks: between two mappings is a page or more.
const LEAST_BETWEEN_STACKS: u64 = 4096;

/// An element of [`KEPT_CALLS`].
#[derive(Clone, Copy)]
pub struct Calls(pub *mut KeptCalls);

/// One of its calls.
#[derive(Clone, Copy)]
pub struct Call(*mut KeptCall);

// SAFETY of all below: the pointers are those of a map's element, which lives as long as the program
// runs, and lie within it.
impl Calls {
    /// Returns those of a thread, for which room is made if there is any.
    #[inline(always)]
    pub fn of(task: Task, time: u64) -> Option<Self> {
        match KEPT_CALLS.get_ptr_mut(task.tid) {
            Some(calls) => Some(Self(calls)),
            None => Self::begin(task, time),
        }
    }

    #[inline(always)]
    fn begin(task: Task, time: u64) -> Option<Self> {
        if FULL.get() != 0 && time.wrapping_sub(FULL.get()) < FULL_NANOS {
            return None;
        }
        if KEPT_CALLS.insert(task.tid, NO_KEPT_CALLS.get(0)?, 0).is_err() {
            FULL.set(time);
            return None;
        }
        let calls = KEPT_CALLS.get_ptr_mut(task.tid)?;
        // SAFETY: see above.
        unsafe {
            (*calls).pid = task.pid;
            (*calls).changes = counting()?.changes;
        }
        Some(Self(calls))
    }

    #[inline(always)]
    pub fn depth(self) -> u32 {
        // SAFETY: see above.
        unsafe { (*self.0).depth }
    }

    #[inline(always)]
    fn set_depth(self, depth: u32) {
        // SAFETY: see above.
        unsafe { (&raw mut (*self.0).depth).write_volatile(depth) }
    }

    /// Returns true if calls were taken from here that may not have ended.
    #[inline(always)]
    pub fn is_doubtful(self) -> bool {
        // SAFETY: see above.
        unsafe { (*self.0).is_doubtful != 0 }
    }

    #[inline(always)]
    fn doubt(self) {
        // SAFETY: see above.
        unsafe { (*self.0).is_doubtful = 1 }
    }

    /// Returns true if the thread may have several stacks.
    #[inline(always)]
    pub fn may_have_stacks(self) -> bool {
        // SAFETY: see above.
        unsafe { (*self.0).has_stacks != 0 }
    }

    #[inline(always)]
    fn note_stacks(self) {
        // SAFETY: see above.
        unsafe { (*self.0).has_stacks = 1 }
    }

    /// Returns the number of calls whose entries were delivered.
    #[inline(always)]
    fn delivered(self) -> u32 {
        // SAFETY: see above.
        unsafe { (*self.0).delivered }
    }

    #[inline(always)]
    fn set_delivered(self, calls: u32) {
        // SAFETY: see above.
        unsafe { (&raw mut (*self.0).delivered).write_volatile(calls) }
    }

    #[inline(always)]
    pub fn all_are_delivered(self) {
        self.set_delivered(self.depth());
    }

    /// Returns true if the entry of the innermost call is held.
    #[inline(always)]
    pub fn holds_top(self) -> bool {
        self.delivered() < self.depth()
    }

    /// Returns true if entries are held of calls that have lasted long enough by now.
    #[inline(always)]
    pub fn is_overdue(self, time: u64) -> bool {
        let first = self.call(self.delivered());
        let lasts = time.wrapping_sub(first.start());
        self.holds_top() && lasts >= settings::SHORTEST_EVENTS.load()
    }

    /// Returns true if functions have lost their probes since the thread last knew of that.
    #[inline(always)]
    pub fn are_outdated(self) -> bool {
        // SAFETY: see above.
        counting().is_some_and(|counting| counting.changes != unsafe { (*self.0).changes })
    }

    /// Tells readers that something is about to change, or has changed.
    #[inline(always)]
    pub fn note_change(self) {
        // SAFETY: see above. The empty instructions keep the compiler from moving a change across.
        unsafe {
            let changed = &raw mut (*self.0).changed;
            asm!("", options(nostack));
            changed.write_volatile(changed.read_volatile().wrapping_add(1));
            asm!("", options(nostack));
        }
    }

    /// Notes that a call at `sp` has left by a jump.
    #[inline(always)]
    pub fn note_jump(self, sp: u64) {
        // SAFETY: see above.
        unsafe { (*self.0).jumped = sp }
    }

    /// Returns true if the last jump by which a call has left was at `sp`.
    #[inline(always)]
    pub fn has_jumped_at(self, sp: u64) -> bool {
        // SAFETY: see above.
        unsafe { (*self.0).jumped == sp }
    }

    /// Returns a call by its number from the outermost one on.
    #[inline(always)]
    fn call(self, index: u32) -> Call {
        let mut index = index as u64;
        // SAFETY: the instruction keeps the index below the number of calls, a power of two. In Rust,
        // the compiler would drop it where it knows that, and the verifier does not.
        unsafe {
            asm!("{0} &= {1}", inout(reg) index, const MOST_KEPT - 1, options(nomem, nostack));
            Call((&raw mut (*self.0).calls).cast::<KeptCall>().add(index as usize))
        }
    }

    /// Returns the innermost open call.
    #[inline(always)]
    pub fn top(self) -> Option<Call> {
        let depth = self.depth();
        (depth > 0).then(|| self.call(depth.wrapping_sub(1)))
    }

    #[inline(always)]
    pub fn push(self, function: u32, sp: u64, start: u64) {
        let depth = self.depth();
        let call = self.call(depth);
        // SAFETY: see above.
        unsafe {
            (*call.0).sp = sp;
            (*call.0).start = start;
            (&raw mut (*call.0).function).write_volatile(function);
        }
        self.set_depth(depth + 1);
    }

    #[inline(always)]
    pub fn pop(self) {
        self.set_depth(self.depth().wrapping_sub(1));
    }
}

impl Call {
    #[inline(always)]
    pub fn start(self) -> u64 {
        // SAFETY: see above.
        unsafe { (*self.0).start }
    }

    #[inline(always)]
    pub fn sp(self) -> u64 {
        // SAFETY: see above.
        unsafe { (*self.0).sp }
    }

    #[inline(always)]
    pub fn function(self) -> u32 {
        // SAFETY: see above.
        unsafe { (*self.0).function }
    }
}

/// Takes away the calls that an event at `sp` proves to be over, and those at the same place, which are
/// replaced or end here. If it is on another stack, all are taken away: they may go on, but what is
/// entered there is not known to be inside them.
#[cold]
#[inline(never)]
pub fn replace(calls: *mut KeptCalls, sp: u64) -> u32 {
    let calls = Calls(calls);
    let Some(top) = calls.top() else { return 0 };
    if top.sp() != sp {
        calls.doubt();
    }
    if top.sp().abs_diff(sp) >= LEAST_BETWEEN_STACKS {
        calls.note_stacks();
    }
    if top.sp().abs_diff(sp) > STACK_SIZE {
        calls.set_depth(0);
        return 0;
    }
    repeat(MOST_KEPT as u32, |_| {
        let is_over = calls.top().is_some_and(|top| top.sp() <= sp);
        if is_over {
            calls.pop();
        }
        is_over
    });
    0
}

/// Delivers the entries that are held, those of the outermost calls first. Room is taken for all at once: the
/// verifier follows what is done for each of them as often as there can be calls.
#[cold]
#[inline(never)]
pub fn deliver(calls: *mut KeptCalls, tid: u32) -> u32 {
    let calls = Calls(calls);
    let first = calls.delivered();
    let count = calls.depth().wrapping_sub(first);
    if count == 0 || count > MOST_KEPT as u32 {
        return 0;
    }
    calls.all_are_delivered();
    let Some(room) = reserve(count as usize) else { return loss::note_some(tid, count) };
    let (pid, mut lost_before) = (Task::current().pid, loss::take(tid));
    // Of a loop of turns, the compiler makes one here that old kernels refuse even where it is dead: its
    // last instruction goes on with the first one, without a jump.
    for nth in 0..MOST_KEPT as u32 {
        if nth >= count {
            break;
        }
        let call = calls.call(first.wrapping_add(nth));
        room.commit_nth(
            nth,
            Record {
                ts_ns: call.start(),
                sp: call.sp(),
                pid,
                tid,
                probe: call.function(),
                kind: Kind::Enter as u8,
                reserved: 0,
                lost_before,
            },
        );
        lost_before = 0;
    }
    0
}

/// Gives up the calls of a thread, as functions have lost their probes: user space knows which of them are over.
#[cold]
#[inline(never)]
pub fn give_up(calls: *mut KeptCalls, tid: u32) -> u32 {
    if settings::SHORTEST_EVENTS.load() != 0 {
        deliver(calls, tid);
    }
    let calls = Calls(calls);
    let Some(counting) = counting() else { return 0 };
    // SAFETY: see above.
    unsafe { (*calls.0).changes = counting.changes };
    calls.doubt();
    calls.set_depth(0);
    calls.all_are_delivered();
    calls.note_jump(0);
    0
}
