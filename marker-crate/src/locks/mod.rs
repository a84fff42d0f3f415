//! Locks whose waits and holds ctrace can follow: those of `std`, with a marker at each step.
//!
//! An acquisition first tries the lock. If that succeeds, it writes one point, else a scope around the
//! wait: so it is known for sure which acquisitions had to wait. A release is a point as well. These are
//! no scopes around the hold, because holds may overlap in any way, and scopes may not.

mod condvar;
mod events;
mod mutex;
mod name;
mod rwlock;

pub use condvar::{Condvar, WaitTimeoutResult};
pub use mutex::{Mutex, MutexGuard};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

/// Makes a guard of ours of one of `std`, also of a poisoned lock.
#[inline]
fn map<G, H>(result: LockResult<G>, make: impl FnOnce(G) -> H) -> LockResult<H> {
    match result {
        Ok(guard) => Ok(make(guard)),
        Err(poisoned) => Err(PoisonError::new(make(poisoned.into_inner()))),
    }
}

/// Returns the guard of an attempt, or `None` if the lock was not free.
#[inline]
fn taken<G>(result: TryLockResult<G>) -> Option<LockResult<G>> {
    match result {
        Ok(guard) => Some(Ok(guard)),
        Err(TryLockError::Poisoned(poisoned)) => Some(Err(poisoned)),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Returns what an attempt of ours returns.
#[inline]
fn tried<G>(result: Option<LockResult<G>>) -> TryLockResult<G> {
    match result {
        Some(Ok(guard)) => Ok(guard),
        Some(Err(poisoned)) => Err(TryLockError::Poisoned(poisoned)),
        None => Err(TryLockError::WouldBlock),
    }
}

/// Returns the number by which ctrace knows a lock.
#[inline]
fn address<L: ?Sized>(lock: &L) -> u64 {
    core::ptr::from_ref(lock).cast::<()>() as usize as u64
}
