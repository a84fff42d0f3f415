//! The points that an answer cannot have, because they are in no file.

use crate::recording::{ChunkEntry, Payload, Recording};
use serde::Serialize;

/// Points that may be missing from an answer, beside those for which it has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// The number of values that were lost in the chunks that were read. Some may be those of calls.
    pub values: u64,
    /// The number of chunks of which something cannot be read.
    pub chunks: u64,
    /// The number of plotted numbers that are infinite, or none.
    pub not_finite: u64,
}

impl Lost {
    /// Returns the values beside a chunk, as far as they can be read.
    pub(super) fn read(&mut self, recording: &Recording, entry: &ChunkEntry) -> Vec<Payload> {
        match recording.payloads(entry) {
            Ok(payloads) => {
                self.values = self.values.saturating_add(payloads.lost);
                payloads.each
            }
            Err(_) => {
                self.chunks += 1;
                Vec::new()
            }
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.values = self.values.saturating_add(other.values);
        self.chunks += other.chunks;
        self.not_finite += other.not_finite;
    }
}
