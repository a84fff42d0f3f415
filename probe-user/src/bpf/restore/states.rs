//! The states of threads that wait in the programs, in memory shared with them.

use super::{super::sys::Mapping, requests::FramesRequest};
use ctrace_common::{
    MAX_CPUS, RESTORE_CONTINUES, RESTORE_DONE, RESTORE_ENDING, RESTORE_ENDS, RESTORE_OVER,
    RESTORE_PHASES, RESTORE_WAITING, RESTORE_WORDS,
};
use std::{
    io,
    os::fd::{AsRawFd as _, OwnedFd},
    sync::atomic::{AtomicU64, Ordering},
};

/// The states of waiting threads, by CPU, and behind them two words: one lets no thread stop, the
/// other gives no call a return probe.
pub(super) struct States(Mapping);

// SAFETY: every access is to a whole aligned word, by atomic instructions.
unsafe impl Sync for States {}

impl States {
    pub(super) fn of(map: &OwnedFd) -> io::Result<Self> {
        Mapping::new(map.as_raw_fd(), RESTORE_WORDS * size_of::<u64>(), 0).map(Self)
    }

    /// Returns whether the thread of a request still waits in the program.
    pub(super) fn is_waiting(&self, request: &FramesRequest) -> bool {
        let waiting = request.number & !RESTORE_PHASES | RESTORE_WAITING;
        self.word(request.cpu % MAX_CPUS).load(Ordering::Acquire) == waiting
    }

    /// Lets the thread of a request go on. Returns `false` if it does not wait any more, because it
    /// stops.
    pub(super) fn finish(&self, request: &FramesRequest) -> bool {
        let number = request.number & !RESTORE_PHASES;
        let state = self.word(request.cpu % MAX_CPUS);
        let (waiting, done) = (number | RESTORE_WAITING, number | RESTORE_DONE);
        state.compare_exchange(waiting, done, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Lets no thread stop until the result is dropped.
    pub(super) fn continues(&self) -> Continues<'_> {
        let word = self.word(RESTORE_CONTINUES);
        word.store(1, Ordering::SeqCst);
        Continues(word)
    }

    /// Gives no call a return probe any more.
    pub(super) fn end_returns(&self) {
        self.word(RESTORE_ENDS).fetch_max(RESTORE_ENDING, Ordering::SeqCst);
    }

    /// Has no guard ask for anything any more: nobody would answer.
    pub(super) fn end_guards(&self) {
        self.word(RESTORE_ENDS).fetch_max(RESTORE_OVER, Ordering::SeqCst);
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < RESTORE_WORDS);
        let words = self.0.address().cast::<AtomicU64>();
        // SAFETY: within the mapping, which is aligned to pages and lives as long as `self`.
        unsafe { &*words.add(index) }
    }
}

/// The moment in which a process is continued.
pub(super) struct Continues<'a>(&'a AtomicU64);

impl Drop for Continues<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::SeqCst);
    }
}
