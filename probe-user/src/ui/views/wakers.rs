//! Who ended the waits of each function.

use super::Context;
use crate::ui::output::style::Tone;
use crate::ui::table::grid::{self, Cell, ColumnGroup, GridColumn};
use crate::ui::text;
use crate::ui::text::names;
use crate::ui::text::units::{Digits, count, maybe_time, time};
use ctrace_core::report::render::clean::clean;
use ctrace_core::report::render::rows;
use ctrace_core::report::{INTERRUPT, WakerReport, WokenWaits};

/// Rows shown without `--top`.
pub(super) const TOP: usize = 20;
/// The least width of a function's name, and of a waker.
const LEAST_ROOM: usize = 12;

/// Said where no wait was ended by anybody.
const NONE: &str = "No wait has a waker. --wakers tells who ends the waits of traced calls: trace the functions that \
                    wait, such as those that read, poll or lock.";
/// Said below an interrupt.
const BELOW_INTERRUPT: &str = "[interrupt]: a timer, a device or the network ended the wait. Over loopback, too, the kernel \
                           delivers in an interrupt; of a Unix socket or a pipe, the other end is known.";

/// The texts of a row, and its numbers.
struct Row {
    texts: [String; 3],
    tone: Tone,
    of: WokenWaits,
}

pub(super) fn draw(context: &Context<'_>) -> String {
    let title = text::title("Wakers");
    let Some(wakers) = context.report.wakers.as_ref().filter(|wakers| !wakers.rows.is_empty())
    else {
        return title + &text::paragraph(NONE, Tone::Plain, context.style);
    };
    let chosen = rows::wakers(context.report, context.selection);
    let mut rows: Vec<Row> =
        chosen.indices.iter().map(|&at| row(context, &wakers.rows[at])).collect();
    let others = |of| Row {
        texts: ["other waits".to_owned(), String::new(), String::new()],
        tone: Tone::Dim,
        of,
    };
    rows.extend(wakers.others.map(others));
    let digits = Digits::Short;
    let numbers = ColumnGroup::untitled(vec![
        GridColumn::right("waits", rows.iter().map(|row| count(row.of.waits))),
        GridColumn::right("total", rows.iter().map(|row| time(row.of.total_ns, digits))),
        GridColumn::right("mean", rows.iter().map(|row| maybe_time(row.of.mean_ns, digits))),
        GridColumn::right("max", rows.iter().map(|row| maybe_time(row.of.max_ns, digits))),
    ]);
    let why = |row: &Row| Cell::toned(row.texts[1].clone(), row.tone);
    let why = GridColumn::left("for", rows.iter().map(why));
    // Both names share what the other columns leave, with the gaps between them.
    let taken = grid::total_width(&[&numbers]) + why.width() + 6;
    let room = context.style.width.map_or(usize::MAX, |width| width.saturating_sub(taken));
    let longest = rows.iter().map(|row| names::width(&row.texts[0])).max().unwrap_or(0);
    let of_function = longest.min((room / 2).max(LEAST_ROOM));
    let of_waker = room.saturating_sub(of_function).max(LEAST_ROOM);
    let name = |at: usize, room: usize| {
        let name = move |row: &Row| Cell::toned(shortened(&row.texts[at], room), row.tone);
        rows.iter().map(name).collect::<Vec<_>>()
    };
    let texts = ColumnGroup::untitled(vec![
        GridColumn::left("function", name(0, of_function)),
        why,
        GridColumn::left("woken by", name(2, of_waker)),
    ]);
    let unsure = match wakers.unsure {
        true => text::paragraph(
            "There are too many wakers to compare all: one of the others may have taken more than one of \
             these.",
            Tone::Dim,
            context.style,
        ),
        false => String::new(),
    };
    let interrupted = match rows.iter().any(|row| row.texts[2] == INTERRUPT) {
        true => text::paragraph(BELOW_INTERRUPT, Tone::Dim, context.style),
        false => String::new(),
    };
    title
        + &grid::draw(&[&numbers, &texts])
        + &context.left_out(chosen.left_out, "waker", "wakers")
        + &unsure
        + &interrupted
}

/// Shortens a function's name in the middle, and keeps the thread behind it.
fn shortened(text: &str, room: usize) -> String {
    let thread = text.rfind(" (").filter(|_| text.ends_with(')')).unwrap_or(text.len());
    let (name, thread) = text.split_at(thread);
    match room.checked_sub(names::width(thread)) {
        Some(left) if left >= LEAST_ROOM => names::shorten(name, left) + thread,
        _ => names::cut_end(text, room),
    }
}

fn row(context: &Context<'_>, row: &WakerReport) -> Row {
    let label = |at: usize| context.report.functions.get(at).map(names::label).unwrap_or_default();
    let function = row.function.map_or_else(|| "?".to_owned(), label);
    let texts = [function, label(row.wait), clean(&row.waker).into_owned()];
    Row { texts, tone: Tone::Name, of: row.of }
}
