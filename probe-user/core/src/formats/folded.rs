//! Folded stacks: a line for each call path with the nanoseconds that were its own.
//!
//! Semicolons separate the frames, so a semicolon in a name becomes a colon. A stack that ends in a
//! blank and a number would be read as one with two counts, so the blank becomes an underscore.

use super::excerpt::Excerpt;
use super::labels::Labels;
use super::out::Out;
use super::path_sums::PathSums;
use super::{Coverage, ExportError};

/// Limit of bytes of all stacks, which are sorted in memory.
const ROOM: usize = 256 << 20;

/// A call path by the names of its frames.
pub(super) struct Stack {
    /// The frames, outermost first, separated by semicolons.
    pub(super) frames: String,
    pub(super) own: u64,
    pub(super) calls: u64,
}

pub(super) fn write(excerpt: &Excerpt<'_>, out: Out<'_>) -> Result<Coverage, ExportError> {
    let (stacks, told) = stacks(excerpt)?;
    write_lines(&stacks, out)?;
    Ok(told)
}

pub(super) fn write_lines(stacks: &[Stack], mut out: Out<'_>) -> Result<(), ExportError> {
    for stack in stacks.iter().filter(|stack| stack.own > 0) {
        out.text(&stack.frames);
        out.text(" ");
        out.number(stack.own);
        out.text("\n");
        out.relieve()?;
    }
    Ok(out.finish()?)
}

/// Returns all stacks, sorted by text.
pub(super) fn stacks(excerpt: &Excerpt<'_>) -> Result<(Vec<Stack>, Coverage), ExportError> {
    let (all, told) = PathSums::of(excerpt)?;
    let labels = Labels::of(excerpt.recording);
    let stacks = all.paths().into_iter().map(|(path, sum)| Stack {
        frames: joined(&labels.path(excerpt.nodes(), path)),
        own: sum.own,
        calls: sum.calls,
    });
    Ok((sorted(stacks)?, told))
}

/// Sorts stacks by text, and adds those up that have one.
pub(super) fn sorted(all: impl Iterator<Item = Stack>) -> Result<Vec<Stack>, ExportError> {
    let (mut stacks, mut room) = (Vec::new(), ROOM);
    for stack in all {
        room = room.checked_sub(stack.frames.len()).ok_or(ExportError::TooMuch)?;
        stacks.push(stack);
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
    Ok(stacks)
}

/// Returns the frames of a path, outermost first, as one text.
pub(super) fn joined(frames: &[&str]) -> String {
    frames.iter().map(|frame| harmless(frame)).collect::<Vec<_>>().join(";")
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
