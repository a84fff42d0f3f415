//! Maps of counts, read and changed without a system call: both sides share their memory.

use crate::bpf::{BpfError, sys::Mapping};
use ctrace_common::PAGE_LEN;
use std::{
    os::fd::{AsRawFd as _, OwnedFd},
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

/// See the module.
pub(crate) struct Words(Mapping);

// SAFETY: all threads read and change its words in one piece.
unsafe impl Sync for Words {}

impl Words {
    pub(crate) fn map(map: &OwnedFd, len: usize) -> Result<Self, BpfError> {
        let len = len.next_multiple_of(PAGE_LEN);
        let mapping = Mapping::new(map.as_raw_fd(), len, 0);
        mapping
            .map(Self)
            .map_err(|source| BpfError::Create { what: "a view of the counts".into(), source })
    }

    pub(crate) fn get(&self, offset: usize) -> u64 {
        self.word(offset).load(Ordering::Relaxed)
    }

    pub(crate) fn set(&self, offset: usize, value: u64) {
        self.word(offset).store(value, Ordering::Release);
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.0.len(), "a word of the map");
        // SAFETY: within the mapping, which lives as long as `self`, and aligned. Both sides change
        // such words in one piece.
        unsafe { AtomicU64::from_ptr(self.0.address().add(offset).cast()) }
    }

    pub(crate) fn half(&self, offset: usize) -> u32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.0.len(), "half a word of the map");
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(self.0.address().add(offset).cast()) }.load(Ordering::Relaxed)
    }
}
