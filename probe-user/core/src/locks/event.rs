//! Makes events of the calls of lock functions, and of the markers of locks: each is a moment in which a
//! thread's hold of a lock changes.

use super::{CALLER, LOCK, LockFunction, LockKind, Mode, Operation, TYPE};
use crate::function::{FunctionInfo, FunctionKind};
use crate::units::{FuncId, Pid, ThreadId};
use crate::values::Value;

const TIMED_OUT: i64 = 110;
/// The lock was taken; its last owner died with it.
const OWNER_DIED: i64 = 130;
/// The bits of glibc's type of a mutex that tell these, and the value of a recursive one.
const TYPE_BITS: i64 = 3;
const RECURSIVE: i64 = 1;

/// The code that called a lock function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Caller {
    /// The traced function around the call.
    Function(FuncId),
    /// The address behind the call.
    Address(u64),
    /// A thread of which nothing else is known.
    Thread(ThreadId),
    Unknown,
}

/// How a lock was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// By a try: it did not wait.
    Tried,
    /// By a call that may have waited.
    Called,
    /// By a wait: the lock was not free.
    Waited,
}

/// A lock of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LockId {
    pub(crate) pid: Pid,
    pub(crate) address: u64,
}

/// The change of a hold. Its order is that of changes of the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Released,
    /// A wait for a condition begins.
    Parted,
    /// A wait for a condition is over.
    Rejoined {
        since: u64,
    },
    /// `since`: the beginning of the call.
    Taken {
        mode: Mode,
        since: u64,
        /// The mutex is recursive, if that is known.
        recursive: Option<bool>,
        attempt: Attempt,
    },
    TimedOut {
        mode: Mode,
        since: u64,
    },
    /// No end of the call was seen. Unless events are missing, its thread has ended in it.
    Unended {
        mode: Mode,
        since: u64,
    },
    /// The call has not ended; the trace has.
    Waiting {
        mode: Mode,
        since: u64,
    },
    /// The lock was not free.
    Refused,
    /// The call failed otherwise.
    Failed,
    /// It is not known whether the lock was taken.
    Unclear,
    /// The call has gone on as one of another function, which it has jumped to: the thread's next event
    /// tells what became of it, if that function is known.
    Passed,
}

impl Change {
    fn rank(self) -> u8 {
        match self {
            Self::Released | Self::Parted => 0,
            _ => 1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockEvent {
    pub(crate) time: u64,
    pub(crate) thread: ThreadId,
    pub(crate) lock: LockId,
    pub(crate) kind: LockKind,
    pub(crate) caller: Caller,
    pub(crate) function: &'static str,
    /// The address behind the call.
    pub(crate) from: Option<u64>,
    pub(crate) change: Change,
}

impl LockEvent {
    /// Returns whether this is of the same call of the thread as the event before, which has passed it on:
    /// one place calls one function.
    pub(crate) fn goes_on_from(&self, before: &Self) -> bool {
        (before.lock, before.from) == (self.lock, self.from)
            && self.from.is_some()
            && self.function != before.function
    }

    /// Returns the key by which events are put in order: releases before what they make possible.
    pub(crate) fn order(&self) -> (u64, u8, ThreadId) {
        (self.time, self.change.rank(), self.thread)
    }

    /// Returns what this later end of a call was at an earlier time, if that is a wait.
    pub(crate) fn still_waiting_at(&self, time: u64) -> Option<Self> {
        match self.change {
            Change::Taken { mode, since, attempt: Attempt::Called | Attempt::Waited, .. }
            | Change::TimedOut { mode, since }
            | Change::Unended { mode, since }
                if since < time =>
            {
                Some(Self { time, change: Change::Waiting { mode, since }, ..*self })
            }
            _ => None,
        }
    }
}

/// A lock function among the functions of a recording, and the places of its values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TracedLockFunction {
    function: &'static LockFunction,
    lock: usize,
    caller: Option<usize>,
    of_type: Option<usize>,
    result: Option<usize>,
    /// A call may end where it jumps to another function.
    may_pass: bool,
    is_marker: bool,
}

/// A call of a lock function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LockCall<'a> {
    pub(crate) thread: ThreadId,
    pub(crate) pid: Pid,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Its end was seen.
    pub(crate) timed: bool,
    pub(crate) values: &'a [Option<Value>],
    /// The traced function around it.
    pub(crate) around: Option<FuncId>,
}

impl LockCall<'_> {
    fn number(&self, place: Option<usize>) -> Option<i64> {
        number(self.values.get(place?)?.as_ref()?)
    }
}

impl TracedLockFunction {
    pub(crate) fn of(info: &FunctionInfo) -> Option<Self> {
        let function = super::function_of(info)?;
        let place = |name: &str| info.values.iter().position(|value| &*value.name == name);
        let result = info.values.iter().position(|value| value.is_result);
        let (caller, of_type) = (place(CALLER), place(TYPE));
        let may_pass = info.ends_at_tail_call();
        let is_marker = info.kind == FunctionKind::Marker;
        Some(Self { function, lock: place(LOCK)?, caller, of_type, result, may_pass, is_marker })
    }

    /// Returns the events of a call, the one at its beginning first. `None` if its lock is unknown.
    pub(crate) fn events(&self, call: &LockCall<'_>) -> Option<[Option<LockEvent>; 2]> {
        let result = call.number(self.result).filter(|_| call.timed);
        let of_type = call.number(self.of_type);
        let by_type = of_type.map(|of_type| of_type & TYPE_BITS == RECURSIVE);
        let recursive = self.function.recursive.or(by_type);
        let since = call.start;
        let passes = self.may_pass && call.timed;
        let taken = |mode, attempt| Change::Taken { mode, since, recursive, attempt };
        let (begin, end) = match (self.function.operation, result) {
            // One that fails has released nothing.
            (Operation::Release, Some(error)) if error != 0 => (None, Some(Change::Failed)),
            (Operation::Release, _) => (Some(Change::Released), None),
            (Operation::Await, None) if passes => (Some(Change::Parted), Some(Change::Passed)),
            (Operation::Await, _) => {
                (Some(Change::Parted), call.timed.then_some(Change::Rejoined { since }))
            }
            (Operation::Take(mode), Some(0 | OWNER_DIED)) => {
                (None, Some(taken(mode, Attempt::Called)))
            }
            (Operation::Try(mode), Some(0 | OWNER_DIED)) => {
                (None, Some(taken(mode, Attempt::Tried)))
            }
            (Operation::Take(mode), Some(TIMED_OUT)) => {
                (None, Some(Change::TimedOut { mode, since }))
            }
            (Operation::Took(mode), _) => (None, Some(taken(mode, Attempt::Tried))),
            (Operation::Wait(mode), _) if call.timed => (None, Some(taken(mode, Attempt::Waited))),
            (Operation::Wait(mode), _) => (None, Some(Change::Unended { mode, since })),
            (Operation::Refused, _) => (None, Some(Change::Refused)),
            (Operation::Try(_), Some(_)) => (None, Some(Change::Refused)),
            (Operation::Take(_), Some(_)) => (None, Some(Change::Failed)),
            (Operation::Take(mode), None) if !call.timed => {
                (None, Some(Change::Unended { mode, since }))
            }
            (_, None) if passes => (None, Some(Change::Passed)),
            (Operation::Take(_) | Operation::Try(_), None) => (None, Some(Change::Unclear)),
        };
        let event = self.event(call)?;
        let at = |time, change| LockEvent { time, change, ..event };
        Some([begin.map(|it| at(call.start, it)), end.map(|it| at(call.end, it))])
    }

    /// Returns the event of a call that has not ended at the end that it is given. `None` if its lock is
    /// unknown, or if it does nothing to a lock.
    pub(crate) fn open_event(&self, call: &LockCall<'_>) -> Option<LockEvent> {
        let event = self.event(call)?;
        let (time, change) = match self.function.operation {
            Operation::Release => (call.start, Change::Released),
            Operation::Await => (call.start, Change::Parted),
            Operation::Take(mode) | Operation::Wait(mode) => {
                (call.end, Change::Waiting { mode, since: call.start })
            }
            Operation::Try(_) | Operation::Took(_) | Operation::Refused => return None,
        };
        Some(LockEvent { time, change, ..event })
    }

    /// Returns whether its calls wait for a lock.
    pub(crate) fn waits(&self) -> bool {
        matches!(self.function.operation, Operation::Take(_) | Operation::Wait(_))
    }

    /// Returns whether it tells nothing more where this one is around it: both are functions of libc.
    pub(crate) fn is_part_of(&self, around: &Self) -> bool {
        !self.is_marker && !around.is_marker
    }

    /// Returns an event of a call, whose time and change are to be set.
    fn event(&self, call: &LockCall<'_>) -> Option<LockEvent> {
        let address = call.number(Some(self.lock))? as u64;
        let from = call.number(self.caller).map(|at| at as u64);
        let caller = call.around.map(Caller::Function).or(from.map(Caller::Address));
        let caller = caller.or(self.is_marker.then_some(Caller::Thread(call.thread)));
        Some(LockEvent {
            time: call.end,
            thread: call.thread,
            lock: LockId { pid: call.pid, address },
            kind: self.function.kind,
            caller: caller.unwrap_or(Caller::Unknown),
            function: self.function.name,
            from,
            change: Change::Unclear,
        })
    }
}

pub(crate) fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Signed(number) => Some(*number),
        Value::Unsigned(number) | Value::Pointer(number) => Some(*number as i64),
        _ => None,
    }
}
