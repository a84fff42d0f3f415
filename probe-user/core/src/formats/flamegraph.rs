//! A flame graph as SVG, drawn by inferno. A frame's width is its path's own time plus that of the
//! callees above it. Its title, which browsers show, also has the number of its calls.
//!
//! A reversed graph merges stacks from their innermost frames and is drawn downwards: it shows the
//! callers for which time was spent. With an older recording, colour shows which paths became
//! slower (red) and faster (blue).

use super::excerpt::Excerpt;
use super::folded::{self, Stack};
use super::frame_titles::{Titles, retitle};
use super::labels::{self, Labels};
use super::out::Out;
use super::{Coverage, ExportError};
use crate::colour::Colour;
use inferno::flamegraph::{self, Direction};
use std::collections::{BTreeMap, HashMap};

/// A stack of the graph.
#[derive(Default)]
struct Row {
    own: u64,
    /// Its time in the older recording.
    before: Option<u64>,
    calls: u64,
}

pub(super) fn write(excerpt: &Excerpt<'_>, out: Out<'_>) -> Result<Coverage, ExportError> {
    let (stacks, told) = folded::stacks(excerpt)?;
    let older = excerpt.older().map(|older| folded::stacks(&Excerpt::new(&older, false)));
    let drawing = Drawing {
        title: labels::target(&excerpt.recording.start().target),
        subtitle: told.in_short(),
        reversed: excerpt.options.reversed,
        colours: own_colours(excerpt),
    };
    draw(stacks, older.transpose()?.map(|(stacks, _)| stacks), drawing, out)?;
    Ok(told)
}

/// The texts and the form of a drawing.
pub struct Drawing {
    pub title: String,
    pub subtitle: String,
    /// Merge stacks from their innermost frames.
    pub reversed: bool,
    /// The colours that programs give functions, by the names of their frames.
    pub colours: HashMap<String, Colour>,
}

/// Returns the colours that the program gives its scopes. Of several with one name, the first counts.
fn own_colours(excerpt: &Excerpt<'_>) -> HashMap<String, Colour> {
    let labels = Labels::of(excerpt.recording);
    let functions = excerpt.recording.functions().iter().zip(labels.all()).rev();
    let own = functions.filter_map(|(info, name)| Some((folded::joined(&[name]), info.colour?)));
    own.collect()
}

pub(super) fn draw(
    stacks: Vec<Stack>,
    older: Option<Vec<Stack>>,
    Drawing { title, subtitle, reversed, colours }: Drawing,
    mut out: Out<'_>,
) -> Result<(), ExportError> {
    // With an older recording, colours tell what became slower.
    let colours = if older.is_some() { HashMap::new() } else { colours };
    let rows = rows(stacks, older, reversed);
    let mut titles = Titles::with_colours(colours);
    let mut lines = Vec::new();
    for (frames, row) in &rows {
        titles.count(frames, row.calls, reversed);
        let numbers = match row.before {
            Some(before) => format!("{before} {}", row.own),
            None => row.own.to_string(),
        };
        if row.own > 0 || row.before.is_some_and(|before| before > 0) {
            lines.push((format!("{frames} {numbers}"), frames, row.own));
        }
    }
    // In the order in which inferno draws them.
    lines.sort_unstable();
    lines.iter().for_each(|(_, frames, width)| titles.place(frames, *width));
    if lines.is_empty() {
        return Err(ExportError::NothingToDraw);
    }
    let mut options = flamegraph::Options::default();
    options.title = title;
    options.subtitle = Some(subtitle);
    options.count_name = "ns".to_owned();
    options.name_type = "Function:".to_owned();
    options.deterministic = true;
    if reversed {
        options.direction = Direction::Inverted;
    }
    let mut drawing = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(|(line, ..)| &**line), &mut drawing)?;
    retitle(&String::from_utf8_lossy(&drawing), &titles, reversed, &mut out)?;
    Ok(out.finish()?)
}

/// Returns the stacks of one or both recordings by their frames.
fn rows(newer: Vec<Stack>, older: Option<Vec<Stack>>, reversed: bool) -> BTreeMap<String, Row> {
    let frames = |stack: Stack| match reversed {
        true => stack.frames.rsplit(';').collect::<Vec<_>>().join(";"),
        false => stack.frames,
    };
    let before = older.as_ref().map(|_| 0);
    let mut rows = BTreeMap::<String, Row>::new();
    for stack in newer {
        let row = Row { own: stack.own, before, calls: stack.calls };
        rows.insert(frames(stack), row);
    }
    for stack in older.into_iter().flatten() {
        let own = stack.own;
        rows.entry(frames(stack)).or_default().before = Some(own);
    }
    rows
}
