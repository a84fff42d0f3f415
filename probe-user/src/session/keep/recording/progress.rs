//! News for the session from the thread that writes a recording.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

#[derive(Default)]
pub(super) struct RecordingProgress {
    written: AtomicU64,
    remarks: Mutex<Vec<String>>,
}

impl RecordingProgress {
    /// Returns the number of bytes on disk.
    pub(super) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub(super) fn have_written(&self, bytes: u64) {
        self.written.store(bytes, Ordering::Relaxed);
    }

    /// Adds a remark for the user.
    pub(super) fn remark(&self, line: String) {
        self.remarks.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    /// Takes the remarks since the last time.
    pub(super) fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut *self.remarks.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
