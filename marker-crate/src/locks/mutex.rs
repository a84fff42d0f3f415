//! A mutex.

use super::{address, events, map, name::Name, taken, tried};
use core::{
    fmt,
    ops::{Deref, DerefMut},
};
use std::sync::{self, LockResult, TryLockResult};

/// A [`std::sync::Mutex`] whose waits and holds ctrace can follow.
///
/// ```
/// use ctrace_marker::Mutex;
///
/// static POOL: Mutex<Vec<u32>> = Mutex::named("pool", Vec::new());
///
/// POOL.lock().unwrap().push(7);
/// assert_eq!(POOL.lock().unwrap().len(), 1);
/// ```
///
/// `ctrace attach PID` shows how often and how long threads waited for each lock, how long it was held, and
/// by whom. The markers are in the group `locks`.
///
/// A lock has the name that [`named`](Self::named) gives it, of up to 63 bytes (a longer one ends in "…"); another one has that of
/// its variable, if it is static, or else its address.
///
/// **Cost:** dormant, that of a dormant scope for the lock, and for the unlock. Active, about that of two
/// `rdtsc` for both together. Nothing allocates.
pub struct Mutex<T: ?Sized> {
    name: Name,
    inner: sync::Mutex<T>,
}

impl<T> Mutex<T> {
    /// Makes a mutex without a name.
    #[must_use]
    pub const fn new(value: T) -> Mutex<T> {
        Mutex::named("", value)
    }

    /// Makes a mutex with a name.
    #[must_use]
    pub const fn named(name: &'static str, value: T) -> Mutex<T> {
        Mutex { name: Name::new(name), inner: sync::Mutex::new(value) }
    }

    /// See [`std::sync::Mutex::into_inner`].
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// See [`std::sync::Mutex::lock`].
    #[inline]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        match taken(self.inner.try_lock()) {
            Some(result) => map(result, |guard| self.taken_at_once(guard)),
            None => self.wait(),
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) -> LockResult<MutexGuard<'_, T>> {
        let lock = address(self);
        let waits = events::mutex_waits(lock);
        let result = self.inner.lock();
        waits.end();
        self.name.waited(lock);
        map(result, |guard| MutexGuard::of(lock, guard))
    }

    /// See [`std::sync::Mutex::try_lock`].
    #[inline]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let result = taken(self.inner.try_lock());
        if result.is_none() {
            events::mutex_refused(address(self));
        }
        tried(result.map(|result| map(result, |guard| self.taken_at_once(guard))))
    }

    #[inline]
    fn taken_at_once<'a>(&self, guard: sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let lock = address(self);
        self.name.acquired(lock, events::mutex_locked(lock));
        MutexGuard::of(lock, guard)
    }

    /// Returns its name, or an empty text.
    pub const fn name(&self) -> &'static str {
        self.name.text()
    }

    /// See [`std::sync::Mutex::is_poisoned`].
    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// See [`std::sync::Mutex::clear_poison`].
    #[inline]
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }

    /// See [`std::sync::Mutex::get_mut`].
    #[inline]
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Mutex<T> {
        Mutex::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// A held [`Mutex`]. It is released when this is dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    /// It is dropped first: the release is written before it happens, so before the next acquisition.
    hold: Hold,
    guard: sync::MutexGuard<'a, T>,
}

/// A hold of the lock with this number.
struct Hold(u64);

impl Drop for Hold {
    #[inline]
    fn drop(&mut self) {
        events::mutex_unlocked(self.0);
    }
}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    #[inline]
    pub(super) fn of(lock: u64, guard: sync::MutexGuard<'a, T>) -> Self {
        Self { hold: Hold(lock), guard }
    }

    /// Returns the lock's number and the guard of `std`. Whoever releases that tells of it.
    pub(super) fn into_parts(self) -> (u64, sync::MutexGuard<'a, T>) {
        let Self { hold, guard } = self;
        let lock = hold.0;
        core::mem::forget(hold);
        (lock, guard)
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.guard
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
