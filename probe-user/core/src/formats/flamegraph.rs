//! A flame graph as SVG, drawn by inferno. A frame's width is its path's own time plus that of the
//! callees above it.
//!
//! A reversed graph merges stacks from their innermost frames and is drawn downwards: it shows the
//! callers for which time was spent. With an older recording, colour shows which paths became
//! slower (red) and faster (blue).

use super::excerpt::Excerpt;
use super::folded;
use super::out::Out;
use super::{Coverage, ExportError, labels};
use crate::recording::ReadAt;
use inferno::flamegraph::{self, Direction};
use std::collections::BTreeMap;

pub(super) fn write<R: ReadAt>(
    excerpt: &Excerpt<'_, R>,
    mut out: Out<'_>,
) -> Result<Coverage, ExportError> {
    let (stacks, told) = folded::stacks(excerpt)?;
    let lines: Vec<String> = match excerpt.older() {
        None => stacks.into_iter().map(|(stack, own)| format!("{stack} {own}")).collect(),
        Some(older) => beside(folded::stacks(&Excerpt::new(&older, false))?.0, stacks),
    };
    if lines.is_empty() {
        return Err(ExportError::NothingToDraw);
    }
    let mut options = flamegraph::Options::default();
    options.title = labels::target(&excerpt.recording.start().target);
    options.subtitle = Some(told.in_short());
    options.count_name = "ns".to_owned();
    options.name_type = "Function:".to_owned();
    options.deterministic = true;
    if excerpt.options.reversed {
        options.reverse_stack_order = true;
        options.direction = Direction::Inverted;
    }
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut out)?;
    out.finish()?;
    Ok(told)
}

/// Returns lines with both times, the older first.
fn beside(older: Vec<(String, u64)>, newer: Vec<(String, u64)>) -> Vec<String> {
    let mut both: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    older.into_iter().for_each(|(stack, own)| both.entry(stack).or_default().0 = own);
    newer.into_iter().for_each(|(stack, own)| both.entry(stack).or_default().1 = own);
    both.into_iter().map(|(stack, (old, new))| format!("{stack} {old} {new}")).collect()
}
