//! Locks: the functions of libc and the markers that tell of them, and what their calls tell about each
//! lock.
//!
//! A call of such a function has values beside it: the address of the lock and, of libc, where the
//! function was called from. [`event`] makes events of calls; [`ledger`] follows who holds which lock.

mod callers;
pub(crate) mod event;
mod history;
pub(crate) mod ledger;
#[cfg(test)]
mod ledger_tests;
mod marked;
pub(crate) mod waits;

pub(crate) use callers::CallerSums;
pub use marked::is_marked;
pub(crate) use marked::naming;

use crate::function::{FunctionInfo, FunctionKind};
use serde::Serialize;

/// The name of the value that is the lock's address.
pub const LOCK: &str = "lock";
/// The name of the value that is the return address.
pub const CALLER: &str = "caller";
/// The name of the value that is the type of a mutex, as glibc has it.
pub const TYPE: &str = "type";

/// The kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LockKind {
    Mutex,
    RwLock,
}

impl LockKind {
    /// Returns the name that people read.
    pub fn name(self, recursive: bool) -> &'static str {
        match self {
            Self::Mutex if recursive => "recursive mutex",
            Self::Mutex => "mutex",
            Self::RwLock => "rwlock",
        }
    }
}

/// The way of holding a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nobody else can hold it.
    Exclusive,
    /// Others can hold it in this way, too.
    Shared,
}

/// The effect of a function on a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It waits until the lock is free or the time is up.
    Take(Mode),
    /// It takes the lock if that is free.
    Try(Mode),
    Release,
    /// It releases the lock, waits for a condition, and takes the lock again.
    Await,
    /// A marker's scope: it waits for a lock that was not free, and ends with it.
    Wait(Mode),
    /// A marker's point: the lock was free, and was taken.
    Took(Mode),
    /// A marker's point: a try found that the lock was not free.
    Refused,
}

/// A function of libc, or a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockFunction {
    pub name: &'static str,
    pub kind: LockKind,
    pub operation: Operation,
    /// A thread can take the lock once more, if the function alone tells.
    pub recursive: Option<bool>,
}

const fn of_mutex(name: &'static str, operation: Operation) -> LockFunction {
    LockFunction { name, kind: LockKind::Mutex, operation, recursive: None }
}

const fn of_rwlock(name: &'static str, operation: Operation) -> LockFunction {
    LockFunction { name, kind: LockKind::RwLock, operation, recursive: None }
}

/// All functions of libc that are known.
pub static FUNCTIONS: [LockFunction; 17] = [
    of_mutex("pthread_mutex_lock", Operation::Take(Mode::Exclusive)),
    of_mutex("pthread_mutex_timedlock", Operation::Take(Mode::Exclusive)),
    of_mutex("pthread_mutex_clocklock", Operation::Take(Mode::Exclusive)),
    of_mutex("pthread_mutex_trylock", Operation::Try(Mode::Exclusive)),
    of_mutex("pthread_mutex_unlock", Operation::Release),
    of_mutex("pthread_cond_wait", Operation::Await),
    of_mutex("pthread_cond_timedwait", Operation::Await),
    of_mutex("pthread_cond_clockwait", Operation::Await),
    of_rwlock("pthread_rwlock_rdlock", Operation::Take(Mode::Shared)),
    of_rwlock("pthread_rwlock_timedrdlock", Operation::Take(Mode::Shared)),
    of_rwlock("pthread_rwlock_clockrdlock", Operation::Take(Mode::Shared)),
    of_rwlock("pthread_rwlock_tryrdlock", Operation::Try(Mode::Shared)),
    of_rwlock("pthread_rwlock_wrlock", Operation::Take(Mode::Exclusive)),
    of_rwlock("pthread_rwlock_timedwrlock", Operation::Take(Mode::Exclusive)),
    of_rwlock("pthread_rwlock_clockwrlock", Operation::Take(Mode::Exclusive)),
    of_rwlock("pthread_rwlock_trywrlock", Operation::Try(Mode::Exclusive)),
    of_rwlock("pthread_rwlock_unlock", Operation::Release),
];

/// Returns which of [`FUNCTIONS`], or which marker, a traced function is, if its calls tell the lock.
pub fn function_of(info: &FunctionInfo) -> Option<&'static LockFunction> {
    if !info.values.iter().any(|value| &*value.name == LOCK && !value.is_result) {
        return None;
    }
    if info.kind == FunctionKind::Marker {
        return marked::event_of(info);
    }
    let names = [&info.name, info.short(), info.full()].into_iter().chain(&info.aliases);
    let mut names = names.map(|name| &**name);
    names.find_map(|name| FUNCTIONS.iter().find(|function| function.name == name))
}
