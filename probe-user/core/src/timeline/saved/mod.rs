//! A timeline as bytes: with them, the next start of `ctrace ui` reads no call.
//!
//! The bytes begin with a mark, the version of their form, and what the caller knows the recording by. Then come the
//! tree, node by node, with its tiles as they are in memory, and a checksum. Nothing in them is believed: what cannot
//! be a timeline of this recording is none, and all calls are read as before.

mod read;
#[cfg(test)]
mod tests;
mod write;

use super::Timeline;
use super::leaves::Leaves;
use crate::recording::Recording;
use std::io;

/// The first bytes. The last one counts the forms that there were: a file of another one is not read.
const MARK: [u8; 8] = *b"CTRTILE\x01";
/// Bytes of the checksum at the end.
const CHECKSUM: usize = 4;

impl Timeline {
    /// Writes it. `known_by`: what tells the recording from others.
    pub fn save(
        &self,
        recording: &Recording,
        known_by: &[u8],
        out: impl io::Write,
    ) -> io::Result<()> {
        write::pyramid(&self.pyramid, &header(recording, known_by), out)
    }

    /// Reads one. `None` if the bytes are not those of a timeline of this recording.
    pub fn load(recording: &Recording, known_by: &[u8], bytes: Vec<u8>) -> Option<Self> {
        let pyramid = read::pyramid(recording, &header(recording, known_by), bytes)?;
        Some(Self { pyramid, leaves: Leaves::default() })
    }
}

/// Returns what tells a recording from others, with the numbers that a wrong one would not have.
fn header(recording: &Recording, known_by: &[u8]) -> Vec<u8> {
    let (calls, (start, end)) = (recording.ended_calls(), recording.period());
    let sizes = [recording.chunks().len(), recording.nodes().len(), recording.functions().len()];
    let numbers = sizes.map(|size| size as u64).into_iter().chain([calls, start.0, end.0]);
    let numbers = numbers.flat_map(u64::to_le_bytes);
    known_by.iter().copied().chain(numbers).collect()
}
