//! The request for a picture, and its bytes.
//!
//! All numbers are little endian. Times are 64-bit floating-point numbers: nanoseconds since the
//! start, exact for 104 days. The other numbers have 32 bits. A picture is
//!
//! 1. a head: "CTP2", the level, the numbers of cells, of rows and of lost stretches, 1 if a finer
//!    picture can be asked for, 2 if it will be as soon as all calls were read, else 0, the number of
//!    stretches of which not all was read, a 0, and the time at which the first cell begins (at byte 32);
//! 2. for each lost stretch the first cell and the one behind the last, and the same for those of which not
//!    all was read;
//! 3. for each row, in the order of the request: the numbers of its cells and of its spans, how many
//!    calls it has no room for, a 0; the cells in three columns: place + share covered × 2^16 (in
//!    255ths, rounded up) + ends × 2^24, function, count; a 0 if the number of cells is odd; the
//!    spans in four columns: beginnings, durations, functions, and 0, 1 or 2 for timed, untimed and
//!    open.

use super::params::Params;
use ctrace_core::{
    recording::Recording,
    timeline::{Cell, Picture, PictureRow, RowKey, Span, View},
    units::{Nanos, ThreadId},
};
use std::ops::Range;

/// Rows of a picture, at most.
const MOST_ROWS: usize = 512;

/// Returns the time that a parameter has in nanoseconds since the start.
pub(super) fn time(params: &Params<'_>, name: &str, start: Nanos) -> Result<Nanos, String> {
    let since: i64 = params.number(name)?;
    Ok(Nanos(start.0.saturating_add_signed(since)))
}

/// Returns the stretch of time `from` to `to`.
pub(super) fn stretch(params: &Params<'_>, start: Nanos) -> Result<Range<Nanos>, String> {
    let (from, to) = (time(params, "from", start)?, time(params, "to", start)?);
    match from < to {
        true => Ok(from..to),
        false => Err("from is not before to".to_owned()),
    }
}

/// Parses a view: `from`, `to`, `pixels` and `rows`, which has THREAD.FIRST-LAST for rows from one
/// depth to another.
pub(super) fn view(params: &Params<'_>, start: Nanos) -> Result<View, String> {
    let mut rows = Vec::new();
    for part in params.text("rows")?.split(',').filter(|part| !part.is_empty()) {
        let parse = || {
            let (thread, depths) = part.split_once('.')?;
            let (first, last) = depths.split_once('-')?;
            Some((thread.parse().ok()?, first.parse().ok()?, last.parse().ok()?))
        };
        let (thread, first, last): (u32, u32, u32) =
            parse().ok_or("rows has no THREAD.FIRST-LAST")?;
        if last.saturating_sub(first) as usize + rows.len() >= MOST_ROWS {
            return Err(format!("there are more than {MOST_ROWS} rows"));
        }
        rows.extend((first..=last).map(|depth| RowKey { thread: ThreadId(thread), depth }));
    }
    Ok(View::new(rows, stretch(params, start)?, params.number("pixels")?))
}

/// A picture that may come after this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// This one is as exact as it can be.
    None = 0,
    /// A finer one can be asked for.
    Finer = 1,
    /// There will be an exact one as soon as all calls were read.
    Exact = 2,
}

struct Bytes(Vec<u8>);

impl Bytes {
    fn words(&mut self, words: impl IntoIterator<Item = u32, IntoIter: ExactSizeIterator>) {
        self.column(words.into_iter().map(u32::to_le_bytes));
    }

    fn numbers(&mut self, numbers: impl IntoIterator<Item = f64, IntoIter: ExactSizeIterator>) {
        self.column(numbers.into_iter().map(f64::to_le_bytes));
    }

    /// Makes room once for all of a column: a picture has a hundred thousand numbers.
    fn column<const N: usize>(&mut self, parts: impl ExactSizeIterator<Item = [u8; N]>) {
        let first = self.0.len();
        self.0.resize(first + N * parts.len(), 0);
        let (places, _) = self.0[first..].as_chunks_mut();
        places.iter_mut().zip(parts).for_each(|(place, part)| *place = part);
    }

    fn row(&mut self, row: &PictureRow, view: &View, start: Nanos, recording: &Recording) {
        let left_out = u32::try_from(row.left_out).unwrap_or(u32::MAX);
        self.words([row.cells.len() as u32, row.spans.len() as u32, left_out, 0]);
        self.words(row.cells.iter().map(|cell| {
            let place = (cell.at - view.cells.start) as u32;
            place | share(cell, view.level) << 16 | u32::from(cell.ends) << 24
        }));
        self.words(row.cells.iter().map(|cell| cell.function));
        self.words(row.cells.iter().map(|cell| u32::try_from(cell.count).unwrap_or(u32::MAX)));
        self.words((0..row.cells.len() as u32 % 2).map(|_| 0));
        self.numbers(row.spans.iter().map(|span| since(span.start.0, start)));
        self.numbers(row.spans.iter().map(|span| span.duration.0 as f64));
        let function = |span: &Span| recording.path(span.path).map(|path| path.function.0);
        self.words(row.spans.iter().map(|span| function(span).unwrap_or(u32::MAX)));
        self.words(row.spans.iter().map(|span| span.ended as u32));
    }
}

/// Returns the share of a cell that is covered, in 255ths, rounded up.
fn share(cell: &Cell, level: u32) -> u32 {
    let covered = u128::from(cell.covered) * 255;
    let up = (1_u128 << level) - 1;
    ((covered + up) >> level).min(255) as u32
}

fn since(time: u64, start: Nanos) -> f64 {
    time.wrapping_sub(start.0) as i64 as f64
}

/// Returns the bytes of a picture. `start`: the start of the recording.
pub(super) fn encode(
    picture: &Picture,
    view: &View,
    next: Next,
    start: Nanos,
    recording: &Recording,
) -> Vec<u8> {
    let each = |row: &PictureRow| 24 + row.cells.len() * 12 + row.spans.len() * 24;
    let room = 64 + picture.rows.iter().map(each).sum::<usize>();
    let mut bytes = Bytes(Vec::with_capacity(room));
    bytes.0.extend(b"CTP2");
    let cells = (view.cells.end - view.cells.start) as u32;
    bytes.words([view.level, cells, picture.rows.len() as u32, picture.lost.len() as u32]);
    bytes.words([next as u32, picture.unread.len() as u32, 0]);
    bytes.numbers([since(view.cells.start << view.level, start)]);
    let place = |at: u64| (at - view.cells.start) as u32;
    let stretches = picture.lost.iter().chain(&picture.unread);
    stretches.for_each(|of| bytes.words([place(of.start), place(of.end)]));
    picture.rows.iter().for_each(|row| bytes.row(row, view, start, recording));
    bytes.0
}
