//! Counts the room in the guard's table of open files.
//!
//! When the table is full, the kernel drops the descriptors of a request. So a link that would fill
//! it is refused before it is made.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

/// Entries kept free for descriptors of requests, the guard's own files, and healing.
const SPARE: usize = 32;

/// The number of links that still fit.
pub(super) struct LinkRoom {
    free: AtomicUsize,
}

/// Room for some links, taken until drop.
pub(super) struct Taken {
    room: Arc<LinkRoom>,
    links: usize,
}

impl LinkRoom {
    /// Counts for a table of this many files; `None` means no limit.
    pub(super) fn new(limit: Option<u64>) -> Arc<Self> {
        let limit = limit.map_or(usize::MAX, |limit| limit as usize);
        Arc::new(Self { free: AtomicUsize::new(limit.saturating_sub(SPARE)) })
    }

    /// Takes room. Returns `None` if it does not suffice.
    pub(super) fn take(self: &Arc<Self>, links: usize) -> Option<Taken> {
        let less = |free: usize| free.checked_sub(links);
        let taken = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        taken.is_ok().then(|| Taken { room: Arc::clone(self), links })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.room.free.fetch_add(self.links, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_comes_back() {
        let room = LinkRoom::new(Some(SPARE as u64 + 10));
        let first = room.take(6);
        assert!(first.is_some() && room.take(5).is_none());
        let second = room.take(4);
        assert!(second.is_some() && room.take(1).is_none());
        drop(first);
        assert!(room.take(7).is_none() && room.take(6).is_some());
    }

    #[test]
    fn a_small_table_has_room_for_none() {
        assert!(LinkRoom::new(Some(3)).take(1).is_none());
        assert!(LinkRoom::new(None).take(1 << 20).is_some());
    }
}
