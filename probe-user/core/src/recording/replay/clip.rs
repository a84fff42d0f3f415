//! Cuts a chunk off at the end of a time window: calls that ended later become open ones, and calls
//! that began later are dropped.

use crate::recording::{Chunk, OpenCall};
use crate::units::Nanos;
use std::ops::Range;

pub(crate) fn clip(chunk: Chunk, window: &Range<u64>) -> Chunk {
    let at = window.end;
    if chunk.to.0 <= at {
        return chunk;
    }
    let mut clipped = Chunk::new(chunk.from.0..at.max(chunk.from.0));
    (clipped.loss, clipped.headless) = (chunk.loss, chunk.headless.clone());
    for thread in chunk.threads() {
        let calls = chunk.calls(thread).iter().map(|call| call.0);
        let began = |start: u64| start <= at;
        // Outermost first: calls open at the chunk's end enclose those that ended, latest first.
        let mut open: Vec<_> = thread.open.iter().copied().filter(|o| began(o.start.0)).collect();
        let later = calls.clone().filter(|c| c.end() > at && began(c.start));
        open.extend(later.map(|c| OpenCall { start: Nanos(c.start), path: c.node }));
        let ended = calls.filter(|c| c.end() <= at);
        clipped.push(thread.thread, ended, open);
    }
    clipped
}
