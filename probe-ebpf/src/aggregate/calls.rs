//! The open calls of one thread. Only the thread itself changes them.

use super::{Caller, counting, counts, counts_at, deep, is_too_deep, paths};
use crate::{
    atomic::Counter,
    maps::{NO_OPEN_CALLS, OPEN_CALLS},
    output::now,
    settings,
};
use core::arch::asm;
use ctrace_common::{
    FULL_PATH, MOST_OPEN, NO_PATH, NO_VALUE, OpenCall, OpenCalls, PATHS_FULL, TOO_DEEP,
};

/// When a thread last looked for room and found none; 0: never.
static FULL: Counter = Counter::new();

/// The time after which one looks again: each look takes locks of all CPUs.
const FULL_NANOS: u64 = 1_000_000;

/// Returns true if threads may have calls that are not among those of [`OPEN_CALLS`].
#[inline(always)]
pub fn are_full() -> bool {
    FULL.get() != 0
}

/// Makes room for the calls of a thread.
#[inline(always)]
pub fn begin(caller: Caller, ts_ns: u64) -> Option<Calls> {
    if are_full() && ts_ns.wrapping_sub(FULL.get()) < FULL_NANOS {
        return None;
    }
    if OPEN_CALLS.insert(caller.key, NO_OPEN_CALLS.get(0)?, 0).is_err() {
        FULL.set(ts_ns);
        return None;
    }
    let calls = Calls(OPEN_CALLS.get_ptr_mut(caller.key)?);
    calls.set_changes(counting()?.changes);
    calls.set_owner(caller.owner);
    Some(calls)
}

/// An element of [`OPEN_CALLS`].
#[derive(Clone, Copy)]
pub struct Calls(pub *mut OpenCalls);

/// One of its calls, whether it is open or not.
#[derive(Clone, Copy)]
pub struct Call(*mut OpenCall);

// SAFETY of all below: the pointers are those of a map's element, which lives as long as the program
// runs, and lie within it.
impl Calls {
    #[inline(always)]
    pub fn depth(self) -> u32 {
        // SAFETY: see above.
        unsafe { (*self.0).depth }
    }

    #[inline(always)]
    pub fn set_depth(self, depth: u32) {
        // SAFETY: see above.
        unsafe { (*self.0).depth = depth }
    }

    /// Notes the number of calls to keep. In memory, since the verifier would follow what comes then for
    /// each number that it knows.
    #[inline(always)]
    pub fn keep(self, calls: u32) {
        // SAFETY: see above.
        unsafe { (&raw mut (*self.0).kept).write_volatile(calls) }
    }

    #[inline(always)]
    pub fn kept(self) -> u32 {
        // SAFETY: see above.
        unsafe { (&raw const (*self.0).kept).read_volatile() }
    }

    #[inline(always)]
    pub fn last(self) -> u64 {
        // SAFETY: see above.
        unsafe { (*self.0).last }
    }

    #[inline(always)]
    pub fn set_last(self, ts_ns: u64) {
        // SAFETY: see above.
        unsafe { (*self.0).last = ts_ns }
    }

    #[inline(always)]
    pub fn changes(self) -> u64 {
        // SAFETY: see above.
        unsafe { (*self.0).changes }
    }

    #[inline(always)]
    pub fn set_changes(self, changes: u64) {
        // SAFETY: see above.
        unsafe { (*self.0).changes = changes }
    }

    #[inline(always)]
    pub fn far(self) -> u32 {
        // SAFETY: see above.
        unsafe { (*self.0).far }
    }

    #[inline(always)]
    pub fn set_far(self, calls: u32) {
        // SAFETY: see above.
        unsafe { (*self.0).far = calls }
    }

    #[inline(always)]
    pub fn owner(self) -> u32 {
        // SAFETY: see above.
        unsafe { (*self.0).owner }
    }

    #[inline(always)]
    pub fn set_owner(self, owner: u32) {
        // SAFETY: see above.
        unsafe { (*self.0).owner = owner }
    }

    /// Returns a call by its number from the outermost one on.
    #[inline(always)]
    pub fn call(self, index: u32) -> Call {
        let mut index = index as u64;
        // SAFETY: the instruction keeps the index below the number of calls, a power of two. In Rust,
        // the compiler would drop it where it knows that, and the verifier does not.
        unsafe {
            asm!("{0} &= {1}", inout(reg) index, const MOST_OPEN - 1, options(nomem, nostack));
            Call((&raw mut (*self.0).calls).cast::<OpenCall>().add(index as usize))
        }
    }

    /// Returns the innermost open call.
    #[inline(always)]
    pub fn top(self) -> Option<Call> {
        let depth = self.depth();
        (depth > 0).then(|| self.call(depth.wrapping_sub(1)))
    }

    /// Opens a call, at a time as late as possible. `value`: the number of its value.
    #[inline(always)]
    pub fn push(self, function: u32, value: u32, sp: u64) {
        self.set_far(0);
        let depth = self.depth();
        let caller = match self.top() {
            Some(top) => top.path(),
            None => NO_PATH,
        };
        if depth >= MOST_OPEN as u32 {
            let ts_ns = now();
            if counts_at(ts_ns) {
                self.set_last(ts_ns);
                too_deep(caller, function, value);
            }
            return;
        }
        let call = self.call(depth);
        // SAFETY: see above.
        unsafe {
            let place = call.0;
            // Of the last call here, the value is not known any more. A function has values for all of its calls
            // or for none, so what is remembered of a call with one is never that of a call without.
            let is_known = value == NO_VALUE
                && (*place).caller == caller
                && (*place).function == function
                && (*place).path != NO_PATH
                && ((*place).path != FULL_PATH || caller == FULL_PATH || paths::are_full());
            if !is_known {
                (*place).path = paths::child(caller, function, value);
                (*place).caller = caller;
                (*place).function = function;
            }
            (*place).sp = sp;
            (*place).callees = 0;
            (*place).restored = 0;
            let start = now();
            if counts_at(start) {
                (*place).start = start;
                self.set_last(start);
                self.set_depth(depth + 1);
            }
        }
    }

    /// Returns true if the innermost call is deeper than asked for.
    #[inline(always)]
    fn is_top_too_deep(self) -> bool {
        is_too_deep(self.depth().wrapping_sub(1))
    }

    /// Opens a call that is too deep to be counted, if there is room, so that its end is known.
    #[inline(always)]
    pub fn push_deep(self, function: u32, sp: u64) {
        let depth = self.depth();
        if depth >= MOST_OPEN as u32 {
            return;
        }
        let call = self.call(depth);
        // SAFETY: see above.
        unsafe {
            let place = call.0;
            (*place).path = FULL_PATH;
            (*place).caller = FULL_PATH;
            (*place).function = function;
            (*place).sp = sp;
            (*place).callees = 0;
            (*place).restored = 0;
            let start = now();
            if counts_at(start) {
                (*place).start = start;
                self.set_last(start);
                self.set_depth(depth + 1);
            }
        }
    }

    /// Ends the innermost call, whose end was seen.
    #[inline(always)]
    pub fn end_top(self, ts_ns: u64) {
        let Some(top) = self.top() else { return };
        let duration = ts_ns.saturating_sub(top.start());
        let mut spent = duration;
        // Nearly all have a path, and none of these.
        if top.path() == FULL_PATH && self.is_top_too_deep() {
            deep::end(top.function());
            spent = top.callees();
        } else if duration < settings::SHORTEST_CALL.load() {
            counts::short(top.function());
            spent = top.callees();
        } else if top.path() == FULL_PATH {
            counts::unplaced(top.function(), PATHS_FULL);
        } else {
            counts::timed(top.path(), duration, duration.saturating_sub(top.callees()));
        }
        self.pop(spent);
    }

    /// Ends the innermost call, whose end was not seen.
    #[inline(always)]
    pub fn drop_top(self) {
        let Some(top) = self.top() else { return };
        if self.is_top_too_deep() {
            return self.pop(top.callees());
        }
        let lasted = self.last().saturating_sub(top.start());
        counts::untimed(top.path(), top.function(), lasted, lasted.saturating_sub(top.callees()));
        self.pop(lasted);
    }

    /// Removes the innermost call, and tells its caller the time that is not its own.
    #[inline(always)]
    fn pop(self, spent: u64) {
        let depth = self.depth().wrapping_sub(1);
        self.set_depth(depth);
        if depth > 0 {
            let caller = self.call(depth.wrapping_sub(1)).0;
            // SAFETY: see above.
            unsafe { (*caller).callees = (*caller).callees.saturating_add(spent) };
        }
    }
}

/// Counts a call that has no place among the open ones.
#[cold]
#[inline(never)]
fn too_deep(caller: u32, function: u32, value: u32) -> u32 {
    let path = paths::child(caller, function, value);
    if path == FULL_PATH {
        counts::unplaced(function, TOO_DEEP);
    } else {
        counts::untimed(path, function, 0, 0);
        counts::uncounted(TOO_DEEP);
    }
    0
}

impl Call {
    #[inline(always)]
    pub fn sp(self) -> u64 {
        // SAFETY: see above.
        unsafe { (*self.0).sp }
    }

    #[inline(always)]
    pub fn start(self) -> u64 {
        // SAFETY: see above.
        unsafe { (*self.0).start }
    }

    #[inline(always)]
    pub fn callees(self) -> u64 {
        // SAFETY: see above.
        unsafe { (*self.0).callees }
    }

    #[inline(always)]
    pub fn function(self) -> u32 {
        // SAFETY: see above.
        unsafe { (*self.0).function }
    }

    #[inline(always)]
    pub fn path(self) -> u32 {
        // SAFETY: see above.
        unsafe { (*self.0).path }
    }

    #[inline(always)]
    pub fn is_restored(self) -> bool {
        // SAFETY: see above.
        unsafe { (*self.0).restored != 0 }
    }

    #[inline(always)]
    pub fn set_restored(self) {
        // SAFETY: see above.
        unsafe { (*self.0).restored = 1 }
    }
}
