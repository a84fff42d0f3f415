//! Ends work for which nobody waits any more. Work that takes long asks between its parts; what it
//! returns after that is worth nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says whether a piece of work is to end. Clones speak of the same work.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the work soon.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// True if nobody waits for the work any more.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
