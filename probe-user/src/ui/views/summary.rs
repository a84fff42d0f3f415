//! Shows where the time goes, in CTRACK's form: a head table and one row for each function.

use super::super::grid::{self, Cell, Column, Group};
use super::super::number::column;
use super::super::style::Tone;
use super::super::units::Digits;
use super::super::{head, names, stack, text};
use super::{Context, center_range};
use ctrace_core::report::FunctionReport;
use ctrace_core::report::numbers::{Number, number};
use ctrace_core::report::render::clean::clean;
use ctrace_core::report::render::rows;

/// Widths of names and files below which less important columns go.
const NAME_ROOM: usize = 28;
const FILE_ROOM: usize = 18;

pub(super) fn draw(context: &Context<'_>) -> String {
    let report = context.report;
    let rows = rows::functions(report, context.selection);
    let list: Vec<&FunctionReport> = rows.indices.iter().map(|&i| &report.functions[i]).collect();
    text::title("Summary")
        + &head::times(context)
        + &table(context, &list)
        + &text::left_out(rows.left_out, "function", "functions", context.style)
}

/// The contents of a table of some width.
struct Layout {
    digits: Digits,
    percentiles: bool,
    place: bool,
}

/// The layouts from the widest to the narrowest.
const LAYOUTS: [Layout; 5] = [
    Layout { digits: Digits::Full, percentiles: true, place: true },
    Layout { digits: Digits::Short, percentiles: true, place: true },
    Layout { digits: Digits::Full, percentiles: false, place: true },
    Layout { digits: Digits::Short, percentiles: false, place: true },
    Layout { digits: Digits::Short, percentiles: false, place: false },
];

fn table(context: &Context<'_>, list: &[&FunctionReport]) -> String {
    let names: Vec<String> = list.iter().map(|f| names::label(f)).collect();
    let heading = stack::name_column(&[], 0).width();
    let longest = names.iter().map(|name| names::width(name)).fold(heading, usize::max);
    let mut groups = Vec::new();
    let mut room = usize::MAX;
    for layout in &LAYOUTS {
        groups = columns(context, list, layout);
        let Some(width) = context.style.width else { break };
        // Leave two spaces before the numbers, and two after the file if there is one.
        let refs: Vec<&Group> = groups.iter().collect();
        room = width.saturating_sub(grid::total_width(&refs) + 2);
        if room >= longest.min(NAME_ROOM) {
            break;
        }
    }
    let name = Group::untitled(vec![stack::name_column(&names, room)]);
    let at = usize::from(groups.len() > 1);
    groups.insert(at, name);
    grid::draw(&groups.iter().collect::<Vec<_>>())
}

/// Returns the numbers, with the file if it is to be shown.
fn columns(context: &Context<'_>, list: &[&FunctionReport], layout: &Layout) -> Vec<Group> {
    let narrow = context.style.width.is_some();
    let mut groups = Vec::new();
    let mut numbers = Vec::new();
    if layout.place {
        groups.push(Group::untitled(vec![file_column(list, narrow)]));
        if list.iter().any(|f| f.line.is_some()) {
            let lines = list.iter().map(|f| f.line.map_or_else(String::new, |n| n.to_string()));
            numbers.push(Column::right("line", lines));
        }
    }
    let (low, high) = center_range(context.report);
    let center = format!("ae[{low}-{high}]%");
    let headings: [(&str, &Number); 5] = [
        ("calls", const { number("calls") }),
        (&center, const { number("center_active_exclusive_percent") }),
        ("ae[0-100]%", const { number("active_exclusive_percent") }),
        ("time ae", const { number("active_exclusive_ns") }),
        ("time a", const { number("active_ns") }),
    ];
    let percentiles: [(&str, &Number); 2] =
        [("p50", const { number("p50_ns") }), ("p99", const { number("p99_ns") })];
    let percentiles = percentiles.into_iter().filter(|_| layout.percentiles);
    let headings = headings.into_iter().chain(percentiles);
    numbers.extend(headings.map(|(heading, of)| column(heading, of, list, layout.digits)));
    groups.push(Group::untitled(numbers));
    groups
}

/// Returns the file, or the object if no file is known.
fn file_column(list: &[&FunctionReport], narrow: bool) -> Column {
    let heading = if list.iter().any(|f| f.file.is_some()) { "file" } else { "object" };
    let cells = list.iter().map(|f| {
        let place = clean(f.file.as_deref().unwrap_or(&f.object)).into_owned();
        let place = match place.rsplit_once('/') {
            Some((_, name)) if narrow => names::cut_start(name, FILE_ROOM),
            None if narrow => names::cut_start(&place, FILE_ROOM),
            _ => place,
        };
        Cell::toned(place, Tone::Dim)
    });
    Column::left(heading, cells)
}
