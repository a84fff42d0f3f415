//! Every call of a session for somebody who looks at it meanwhile: the newest, whenever they are asked
//! for.

use super::newest::{Held, Newest};
use ctrace_core::{
    recording::{Block, End, Start},
    units::Nanos,
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc::{Receiver, Sender, channel},
};

/// The side of the session.
pub(crate) struct LiveCalls {
    newest: Newest,
    is_wanted: Arc<AtomicBool>,
    to: Sender<(Held, End)>,
}

/// The side of who looks. When it is gone, the session goes on.
pub(crate) struct LiveLook {
    is_wanted: Arc<AtomicBool>,
    from: Receiver<(Held, End)>,
}

impl LiveCalls {
    /// Calls are kept for this time, in this many bytes.
    pub(crate) fn new(keep: Nanos, memory: usize) -> (Self, LiveLook) {
        let (to, from) = channel();
        let is_wanted = Arc::default();
        let look = LiveLook { is_wanted: Arc::clone(&is_wanted), from };
        (Self { newest: Newest::new(keep, memory), is_wanted, to }, look)
    }

    pub(crate) fn begin(&mut self, start: Start) {
        self.newest.begin(start);
    }

    pub(crate) fn take(&mut self, blocks: Vec<Block>) {
        self.newest.take(blocks);
    }

    /// Returns whether somebody waits for the calls.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Hands on what is kept, as a recording that ends here.
    pub(crate) fn show(&mut self, end: End) {
        self.is_wanted.store(false, Ordering::Relaxed);
        // Whoever looked may be gone.
        let _ = self.to.send((self.newest.held(), end));
    }
}

impl LiveLook {
    /// Returns what is kept now, or `None` at the end of the session.
    pub(crate) fn next(&self) -> Option<(Held, End)> {
        self.is_wanted.store(true, Ordering::Relaxed);
        self.from.recv().ok()
    }
}
