//! The chunks that tell of the calls that ended in a window of time.
//!
//! A call's own time is what the calls inside it leave. Those may have ended long before the window, so all chunks since
//! the call's beginning are needed. Which calls these are, two chunks tell: a call that is open before the window, and
//! no more when the window ends, has ended in it.

use super::clip::clip;
use super::lens::Lens;
use crate::recording::{Chunk, ChunkEntry, RecordError, Recording};
use crate::units::{Nanos, ThreadId};
use std::collections::HashSet;

/// Returns the chunks that are needed for the calls that ended in the window, and for those that are open at its end. What
/// ran inside the latter before the window is not in them.
pub(super) fn needed<'c>(
    recording: &'c Recording,
    lens: &Lens<'_>,
) -> Result<&'c [ChunkEntry], RecordError> {
    let chunks = lens.chunks(recording.chunks());
    let of_window = lens.chunks_of_window(recording.chunks());
    let before = chunks.len() - of_window.len();
    let (Some(edge), Some(last)) = (before.checked_sub(1), chunks.last()) else {
        return Ok(chunks);
    };
    let at_edge = lens.read(recording, &chunks[edge])?;
    let at_end = clip(lens.read(recording, last)?, &lens.window);
    let go_on: HashSet<_> = open(&at_end).collect();
    let ended = open(&at_edge).filter(|call| !go_on.contains(call));
    let first = match ended.map(|(_, start, _)| start).min() {
        Some(start) => chunks.partition_point(|chunk| chunk.to < start).min(before),
        None => before,
    };
    Ok(&chunks[first..])
}

/// Returns the thread, the beginning and the path of each call that is open at the end of a chunk.
fn open(chunk: &Chunk) -> impl Iterator<Item = (ThreadId, Nanos, u32)> {
    let threads = chunk.threads().iter();
    threads.flat_map(|of| of.open.iter().map(|call| (of.thread, call.start, call.path)))
}
