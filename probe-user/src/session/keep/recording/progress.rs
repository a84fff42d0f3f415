//! What the thread that writes a recording tells the session meanwhile.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

#[derive(Default)]
pub(super) struct Progress {
    written: AtomicU64,
    remarks: Mutex<Vec<String>>,
}

impl Progress {
    /// Bytes on disk.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(super) fn have_written(&self, bytes: u64) {
        self.written.store(bytes, Ordering::Relaxed);
    }

    /// Something that people are to hear of.
    pub(super) fn remark(&self, line: String) {
        self.remarks.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    /// Since the last time.
    pub(super) fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut *self.remarks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
