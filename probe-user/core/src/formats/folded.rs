//! Folded stacks: a line for each call path with the nanoseconds that were its own.
//!
//! Semicolons separate the frames, so a semicolon in a name becomes a colon. A stack that ends in a
//! blank and a number would be read as one with two counts, so the blank becomes an underscore.

use super::excerpt::Excerpt;
use super::labels::Labels;
use super::out::Out;
use super::totals::Totals;
use super::{Coverage, ExportError};
use crate::calls::paths::Node;
use crate::recording::ReadAt;

/// Limit of bytes of all stacks, which are sorted in memory.
const ROOM: usize = 256 << 20;

pub(super) fn write<R: ReadAt>(
    excerpt: &Excerpt<'_, R>,
    mut out: Out<'_>,
) -> Result<Coverage, ExportError> {
    let (stacks, told) = stacks(excerpt)?;
    for (stack, own) in stacks {
        out.text(&stack);
        out.text(" ");
        out.number(own);
        out.text("\n");
        out.relieve()?;
    }
    out.finish()?;
    Ok(told)
}

/// Returns stacks with own time, sorted by name.
pub(super) fn stacks<R: ReadAt>(
    excerpt: &Excerpt<'_, R>,
) -> Result<(Vec<(String, u64)>, Coverage), ExportError> {
    let (totals, told) = Totals::of(excerpt)?;
    let labels = Labels::of(excerpt.recording);
    let timed = totals.paths().into_iter().filter(|(_, sum)| sum.own > 0);
    let (mut stacks, mut room) = (Vec::new(), ROOM);
    for (path, sum) in timed {
        let stack = stack(excerpt.nodes(), &labels, path);
        room = room.checked_sub(stack.len()).ok_or(ExportError::TooMuch)?;
        stacks.push((stack, sum.own));
    }
    stacks.sort_unstable();
    // Different functions can have one name.
    stacks.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 = kept.1.saturating_add(if same { next.1 } else { 0 });
        same
    });
    Ok((stacks, told))
}

fn stack(nodes: &[Node], labels: &Labels, path: u32) -> String {
    let frames = labels.path(nodes, path);
    let frames: Vec<String> = frames.into_iter().map(|frame| frame.replace(';', ":")).collect();
    let mut stack = frames.join(";");
    let digits = stack.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    if stack[..digits].ends_with(' ') {
        stack.replace_range(digits - 1..digits, "_");
    }
    stack
}
