//! A condition variable.

use super::{MutexGuard, events, map};
use core::fmt;
use std::{
    sync::{self, LockResult},
    time::{Duration, Instant},
};

/// A [`std::sync::Condvar`] for a [`Mutex`](crate::Mutex) of this crate.
///
/// ```
/// use ctrace_marker::{Condvar, Mutex};
/// use std::time::Duration;
///
/// static JOBS: Mutex<Vec<u32>> = Mutex::named("jobs", Vec::new());
/// static NEW: Condvar = Condvar::new();
///
/// JOBS.lock().unwrap().push(7);
/// NEW.notify_one();
/// let jobs = NEW.wait_while(JOBS.lock().unwrap(), |jobs| jobs.is_empty()).unwrap();
/// assert_eq!(jobs.len(), 1);
/// let (_jobs, result) = NEW.wait_timeout(jobs, Duration::from_millis(1)).unwrap();
/// assert!(result.timed_out());
/// ```
///
/// A wait for a condition is a scope of its own. It ends the hold of the mutex, and the mutex is held again
/// from its end on.
///
/// **Cost:** that of a scope for each wait.
#[derive(Default)]
pub struct Condvar {
    inner: sync::Condvar,
}

/// Tells whether a wait ended because its time was up, as [`std::sync::WaitTimeoutResult`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Returns true if the time was up.
    #[must_use]
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

type Waited<'a, T> = LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)>;

impl Condvar {
    /// Makes a condition variable.
    #[must_use]
    pub const fn new() -> Condvar {
        Condvar { inner: sync::Condvar::new() }
    }

    /// See [`std::sync::Condvar::wait`].
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let (lock, result) = awaits(guard, |inner| self.inner.wait(inner));
        map(result, |inner| MutexGuard::of(lock, inner))
    }

    /// See [`std::sync::Condvar::wait_while`]. Each wake-up ends a wait.
    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// See [`std::sync::Condvar::wait_timeout`].
    pub fn wait_timeout<'a, T>(&self, guard: MutexGuard<'a, T>, most: Duration) -> Waited<'a, T> {
        let (lock, result) = awaits(guard, |inner| self.inner.wait_timeout(inner, most));
        map(result, |(inner, result)| {
            (MutexGuard::of(lock, inner), WaitTimeoutResult(result.timed_out()))
        })
    }

    /// See [`std::sync::Condvar::wait_timeout_while`]. Each wake-up ends a wait.
    pub fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        most: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> Waited<'a, T> {
        let begun = Instant::now();
        while condition(&mut guard) {
            let Some(left) = most.checked_sub(begun.elapsed()) else {
                return Ok((guard, WaitTimeoutResult(true)));
            };
            guard = self.wait_timeout(guard, left)?.0;
        }
        Ok((guard, WaitTimeoutResult(false)))
    }

    /// See [`std::sync::Condvar::notify_one`].
    pub fn notify_one(&self) {
        self.inner.notify_one();
    }

    /// See [`std::sync::Condvar::notify_all`].
    pub fn notify_all(&self) {
        self.inner.notify_all();
    }
}

/// Has a scope around a wait that releases the mutex and takes it again. Returns the lock's number, too.
fn awaits<'a, T, R>(
    guard: MutexGuard<'a, T>,
    wait: impl FnOnce(sync::MutexGuard<'a, T>) -> R,
) -> (u64, R) {
    let (lock, inner) = guard.into_parts();
    let waits = events::mutex_awaits(lock);
    let result = wait(inner);
    waits.end();
    (lock, result)
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
