//! Folded stacks: a line for each call path with the nanoseconds that were its own.
//!
//! Semicolons separate the frames, so a semicolon in a name becomes a colon. A stack that ends in a
//! blank and a number would be read as one with two counts, so the blank becomes an underscore.

use super::excerpt::Excerpt;
use super::labels::Labels;
use super::out::Out;
use super::path_sums::PathSums;
use super::{Coverage, ExportError};
use crate::calls::paths::Node;
use crate::recording::ReadAt;

/// Limit of bytes of all stacks, which are sorted in memory.
const ROOM: usize = 256 << 20;

/// A call path by the names of its frames.
pub(super) struct Stack {
    /// The frames, outermost first, separated by semicolons.
    pub(super) frames: String,
    pub(super) own: u64,
    pub(super) calls: u64,
}

pub(super) fn write<R: ReadAt>(
    excerpt: &Excerpt<'_, R>,
    mut out: Out<'_>,
) -> Result<Coverage, ExportError> {
    let (stacks, told) = stacks(excerpt)?;
    for stack in stacks.into_iter().filter(|stack| stack.own > 0) {
        out.text(&stack.frames);
        out.text(" ");
        out.number(stack.own);
        out.text("\n");
        out.relieve()?;
    }
    out.finish()?;
    Ok(told)
}

/// Returns all stacks, sorted by text.
pub(super) fn stacks<R: ReadAt>(
    excerpt: &Excerpt<'_, R>,
) -> Result<(Vec<Stack>, Coverage), ExportError> {
    let (all, told) = PathSums::of(excerpt)?;
    let labels = Labels::of(excerpt.recording);
    let (mut stacks, mut room) = (Vec::new(), ROOM);
    for (path, sum) in all.paths() {
        let frames = frames(excerpt.nodes(), &labels, path);
        room = room.checked_sub(frames.len()).ok_or(ExportError::TooMuch)?;
        stacks.push(Stack { frames, own: sum.own, calls: sum.calls });
    }
    stacks.sort_unstable_by(|a, b| a.frames.cmp(&b.frames));
    // Different functions can have one name.
    stacks.dedup_by(|next, kept| {
        let same = next.frames == kept.frames;
        if same {
            kept.own = kept.own.saturating_add(next.own);
            kept.calls = kept.calls.saturating_add(next.calls);
        }
        same
    });
    Ok((stacks, told))
}

fn frames(nodes: &[Node], labels: &Labels, path: u32) -> String {
    let frames = labels.path(nodes, path);
    frames.into_iter().map(harmless).collect::<Vec<_>>().join(";")
}

/// Returns a frame that readers cannot take for two, for a comment, or for one with a number behind
/// it.
fn harmless(frame: &str) -> String {
    let mut frame = frame.trim().replace(';', ":");
    if frame.starts_with("# ") {
        frame.replace_range(1..2, "_");
    }
    let digits = frame.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    if frame[..digits].ends_with(' ') {
        frame.replace_range(digits - 1..digits, "_");
    }
    frame
}
