//! A read-write lock.

use super::{address, events, map, name::Name, taken, tried};
use core::{
    fmt,
    ops::{Deref, DerefMut},
};
use std::sync::{self, LockResult, TryLockResult};

/// A [`std::sync::RwLock`] whose waits and holds ctrace can follow, as those of a
/// [`Mutex`](crate::Mutex).
///
/// ```
/// use ctrace_marker::RwLock;
///
/// static TABLE: RwLock<Vec<u32>> = RwLock::named("table", Vec::new());
///
/// TABLE.write().unwrap().push(7);
/// assert_eq!(TABLE.read().unwrap()[0], 7);
/// ```
pub struct RwLock<T: ?Sized> {
    name: Name,
    inner: sync::RwLock<T>,
}

impl<T> RwLock<T> {
    /// Makes a lock without a name.
    #[must_use]
    pub const fn new(value: T) -> RwLock<T> {
        RwLock::named("", value)
    }

    /// Makes a lock with a name.
    #[must_use]
    pub const fn named(name: &'static str, value: T) -> RwLock<T> {
        RwLock { name: Name::new(name), inner: sync::RwLock::new(value) }
    }

    /// See [`std::sync::RwLock::into_inner`].
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// See [`std::sync::RwLock::read`].
    #[inline]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        match taken(self.inner.try_read()) {
            Some(result) => map(result, |guard| self.read_at_once(guard)),
            None => self.wait_to_read(),
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_to_read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let lock = address(self);
        let waits = events::rwlock_waits_to_read(lock);
        let result = self.inner.read();
        waits.end();
        self.name.waited(lock);
        map(result, |guard| RwLockReadGuard { lock, guard })
    }

    /// See [`std::sync::RwLock::try_read`].
    #[inline]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let result = taken(self.inner.try_read());
        if result.is_none() {
            events::rwlock_refused(address(self));
        }
        tried(result.map(|result| map(result, |guard| self.read_at_once(guard))))
    }

    #[inline]
    fn read_at_once<'a>(&self, guard: sync::RwLockReadGuard<'a, T>) -> RwLockReadGuard<'a, T> {
        let lock = address(self);
        self.name.acquired(lock, events::rwlock_read(lock));
        RwLockReadGuard { lock, guard }
    }

    /// See [`std::sync::RwLock::write`].
    #[inline]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        match taken(self.inner.try_write()) {
            Some(result) => map(result, |guard| self.written_at_once(guard)),
            None => self.wait_to_write(),
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_to_write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let lock = address(self);
        let waits = events::rwlock_waits_to_write(lock);
        let result = self.inner.write();
        waits.end();
        self.name.waited(lock);
        map(result, |guard| RwLockWriteGuard { lock, guard })
    }

    /// See [`std::sync::RwLock::try_write`].
    #[inline]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let result = taken(self.inner.try_write());
        if result.is_none() {
            events::rwlock_refused(address(self));
        }
        tried(result.map(|result| map(result, |guard| self.written_at_once(guard))))
    }

    #[inline]
    fn written_at_once<'a>(&self, guard: sync::RwLockWriteGuard<'a, T>) -> RwLockWriteGuard<'a, T> {
        let lock = address(self);
        self.name.acquired(lock, events::rwlock_written(lock));
        RwLockWriteGuard { lock, guard }
    }

    /// Returns its name, or an empty text.
    pub const fn name(&self) -> &'static str {
        self.name.text()
    }

    /// See [`std::sync::RwLock::is_poisoned`].
    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.inner.is_poisoned()
    }

    /// See [`std::sync::RwLock::clear_poison`].
    #[inline]
    pub fn clear_poison(&self) {
        self.inner.clear_poison();
    }

    /// See [`std::sync::RwLock::get_mut`].
    #[inline]
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> RwLock<T> {
        RwLock::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> RwLock<T> {
        RwLock::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

/// An [`RwLock`] that is held for reading. It is released when this is dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: u64,
    guard: sync::RwLockReadGuard<'a, T>,
}

/// An [`RwLock`] that is held for writing. It is released when this is dropped.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: u64,
    guard: sync::RwLockWriteGuard<'a, T>,
}

macro_rules! guards {
    ($($guard:ident)*) => {$(
        impl<T: ?Sized> Drop for $guard<'_, T> {
            #[inline]
            fn drop(&mut self) {
                events::rwlock_unlocked(self.lock);
            }
        }

        impl<T: ?Sized> Deref for $guard<'_, T> {
            type Target = T;

            #[inline]
            fn deref(&self) -> &T {
                &self.guard
            }
        }

        impl<T: ?Sized + fmt::Debug> fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }

        impl<T: ?Sized + fmt::Display> fmt::Display for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }
    )*};
}
guards!(RwLockReadGuard RwLockWriteGuard);

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.guard
    }
}
