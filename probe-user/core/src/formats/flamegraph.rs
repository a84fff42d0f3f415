//! A flame graph as SVG, drawn by inferno. A frame's width is its path's own time plus that of the
//! callees above it. Its title, which browsers show, also has the number of its calls.
//!
//! A reversed graph merges stacks from their innermost frames and is drawn downwards: it shows the
//! callers for which time was spent. With an older recording, colour shows which paths became
//! slower (red) and faster (blue).

use super::excerpt::Excerpt;
use super::folded::{self, Stack};
use super::frame_titles::{Titles, retitle};
use super::out::Out;
use super::{Coverage, ExportError, labels};
use crate::recording::ReadAt;
use inferno::flamegraph::{self, Direction};
use std::collections::BTreeMap;

/// A stack of the graph.
#[derive(Default)]
struct Row {
    own: u64,
    /// Its time in the older recording.
    before: Option<u64>,
    calls: u64,
}

pub(super) fn write<R: ReadAt>(
    excerpt: &Excerpt<'_, R>,
    mut out: Out<'_>,
) -> Result<Coverage, ExportError> {
    let reversed = excerpt.options.reversed;
    let (stacks, told) = folded::stacks(excerpt)?;
    let older = excerpt.older().map(|older| folded::stacks(&Excerpt::new(&older, false)));
    let rows = rows(stacks, older.transpose()?.map(|(stacks, _)| stacks), reversed);
    let (mut lines, mut titles) = (Vec::new(), Titles::new(reversed));
    for (frames, row) in &rows {
        titles.add(frames, row.own, row.calls);
        let line = folded::line(&frames.join(";"));
        match row.before {
            None if row.own > 0 => lines.push(format!("{line} {}", row.own)),
            Some(before) if row.own > 0 || before > 0 => {
                lines.push(format!("{line} {before} {}", row.own));
            }
            _ => {}
        }
    }
    if lines.is_empty() {
        return Err(ExportError::NothingToDraw);
    }
    let mut options = flamegraph::Options::default();
    options.title = labels::target(&excerpt.recording.start().target);
    options.subtitle = Some(told.in_short());
    options.count_name = "ns".to_owned();
    options.name_type = "Function:".to_owned();
    options.deterministic = true;
    options.no_sort = true;
    if reversed {
        options.direction = Direction::Inverted;
    }
    let mut drawing = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut drawing)?;
    retitle(&String::from_utf8_lossy(&drawing), &titles.finish(), reversed, &mut out)?;
    out.finish()?;
    Ok(told)
}

/// Returns the stacks of one or both recordings in the order of their frames. Sorted by text, a
/// frame could come twice, with others between.
fn rows(
    newer: Vec<Stack>,
    older: Option<Vec<Stack>>,
    reversed: bool,
) -> BTreeMap<Vec<String>, Row> {
    let frames = |stack: &Stack| -> Vec<String> {
        let mut frames: Vec<String> = stack.frames.split(';').map(str::to_owned).collect();
        if reversed {
            frames.reverse();
        }
        frames
    };
    let before = older.as_ref().map(|_| 0);
    let mut rows = BTreeMap::<Vec<String>, Row>::new();
    for stack in newer {
        rows.insert(frames(&stack), Row { own: stack.own, before, calls: stack.calls });
    }
    for stack in older.into_iter().flatten() {
        rows.entry(frames(&stack)).or_default().before = Some(stack.own);
    }
    rows
}
