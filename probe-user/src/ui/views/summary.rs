//! The first screen: one row for each function, the one with the most time of its own first.

use super::super::grid::{self, Cell, Column, Group};
use super::super::marks::{Mark, Marks};
use super::super::number::cell;
use super::super::style::Tone;
use super::super::units::{ABSENT, Digits};
use super::super::{head, names, plot, stack, text};
use super::Context;
use ctrace_core::report::FunctionReport;
use ctrace_core::report::numbers::{Number, Unit, number};
use ctrace_core::report::render::clean::clean;
use ctrace_core::report::render::rows::{self, Selection};
use ctrace_core::units::saturating_sum;

/// The number of rows without `--top`.
const TOP: usize = 40;
/// The width of a name below which less important columns go.
const NAME_ROOM: usize = 28;
const PLACE_ROOM: usize = 24;
const BAR_ROOM: usize = 12;

/// Said below times without the cost of probes.
const NET: &str = "Times are without the cost of probes, as measured here; percentiles and max are less \
                   the mean cost in a call. --raw shows them as seen.";

/// A column of numbers.
struct Numbers {
    heading: &'static str,
    number: &'static Number,
    /// The same without the cost of probes.
    net: &'static Number,
    /// True if narrow tables have it, too.
    always: bool,
}

const fn numbers(
    heading: &'static str,
    key: &'static str,
    net: &'static str,
    always: bool,
) -> Numbers {
    Numbers { heading, number: number(key), net: number(net), always }
}

static NUMBERS: [Numbers; 7] = [
    numbers("calls", "calls", "calls", true),
    numbers("total", "total_ns", "net_total_ns", true),
    numbers("self", "self_ns", "net_self_ns", true),
    numbers("mean", "mean_ns", "net_mean_ns", false),
    numbers("p50", "p50_ns", "net_p50_ns", true),
    numbers("p99", "p99_ns", "net_p99_ns", true),
    numbers("max", "max_ns", "net_max_ns", false),
];

/// The contents of a table of some width.
struct Layout {
    all: bool,
    bar: bool,
    place: bool,
}

/// The layouts from the widest to the narrowest.
const LAYOUTS: [Layout; 5] = [
    Layout { all: true, bar: true, place: true },
    Layout { all: true, bar: true, place: false },
    Layout { all: true, bar: false, place: false },
    Layout { all: false, bar: true, place: false },
    Layout { all: false, bar: false, place: false },
];

pub(super) fn draw(context: &Context<'_>) -> String {
    let marks = Marks::of(context.report);
    let net = is_net(context);
    let (rows, left_out) = choose(context, &marks, net);
    head::stretch(context)
        + &table(context, &rows, &marks, net)
        + &context.left_out(left_out, "function", "functions")
        + &marks.legend(&rows, context.style)
        + &if net { text::paragraph(NET, Tone::Dim, context.style) } else { String::new() }
}

/// Returns whether the times are shown without the cost of probes.
fn is_net(context: &Context<'_>) -> bool {
    let mut functions = context.report.functions.iter();
    !context.options.raw && functions.any(|row| row.calls > 0 && row.measured_probes().is_some())
}

/// Returns the rows in order, and the number of those left out. Functions that frame the program
/// are last: their own time is mostly time in which they wait for others.
fn choose(context: &Context<'_>, marks: &Marks, net: bool) -> (Vec<usize>, usize) {
    let sort = context.selection.sort.clone();
    let is_asked = sort.is_some();
    let sort = sort.or_else(|| Some(if net { "net_self" } else { "self" }.to_owned()));
    let selection = Selection { sort, top: None, ..context.selection.clone() };
    let rows = rows::functions(context.report, &selection);
    let (frames, mut shown): (Vec<_>, Vec<_>) =
        rows.indices.into_iter().partition(|&at| !is_asked && marks.has(at, Mark::Frame));
    shown.extend(frames);
    let all = shown.len();
    shown.truncate(context.selection.top.unwrap_or(TOP));
    let left_out = rows.left_out + all - shown.len();
    (shown, left_out)
}

fn table(context: &Context<'_>, rows: &[usize], marks: &Marks, net: bool) -> String {
    let list: Vec<&FunctionReport> = rows.iter().map(|&at| &context.report.functions[at]).collect();
    let names: Vec<String> = list.iter().map(|row| names::label(row)).collect();
    let letters = rows.iter().map(|&at| Cell::toned(marks.letters(at), Tone::Warm));
    let letters = Column::left("", letters);
    let heading = stack::name_column(&[], 0).width();
    let longest = names.iter().map(|name| names::width(name)).fold(heading, usize::max);
    let mut groups = Vec::new();
    let mut room = usize::MAX;
    for layout in &LAYOUTS {
        groups = columns_of(&list, &letters, layout, net);
        let Some(width) = context.style.width else { break };
        let refs: Vec<&Group> = groups.iter().collect();
        // Two spaces separate the name from the rest.
        room = width.saturating_sub(grid::total_width(&refs) + 2);
        if room >= longest.min(NAME_ROOM) {
            break;
        }
    }
    groups.insert(0, Group::untitled(vec![stack::name_column(&names, room)]));
    grid::draw(&groups.iter().collect::<Vec<_>>())
}

/// Returns the columns after the name.
fn columns_of(
    list: &[&FunctionReport],
    letters: &Column,
    layout: &Layout,
    net: bool,
) -> Vec<Group> {
    let mut all = Vec::new();
    if letters.width() > 0 {
        all.push(letters.clone());
    }
    let numbers = NUMBERS.iter().filter(|it| layout.all || it.always);
    all.extend(numbers.map(|it| {
        let number = if net { it.net } else { it.number };
        let cells = list.iter().map(|row| match row.ended() {
            // Calls that have not ended have no time yet.
            0 if number.unit == Unit::Time => Cell::toned(ABSENT.to_owned(), Tone::Dim),
            _ => cell(number, row, Digits::Short),
        });
        Column::right(it.heading, cells)
    }));
    if layout.bar {
        all.push(bars(list, net));
    }
    if layout.place {
        all.push(Column::left("where", list.iter().map(|row| Cell::toned(place(row), Tone::Dim))));
    }
    vec![Group::untitled(all)]
}

/// Draws the time of its own for each row. The longest bar is the most.
fn bars(list: &[&FunctionReport], net: bool) -> Column {
    let own = list.iter().map(|row| row.net_self().filter(|_| net).unwrap_or(row.self_ns).0);
    let (all, most) = (saturating_sum(own.clone()), own.clone().max().unwrap_or(0));
    let cells = own.map(|own| {
        let tone = Tone::of_percent(own as f64 * 100.0 / all.max(1) as f64);
        Cell::toned(plot::bar(own, most, BAR_ROOM), tone)
    });
    Column::left("self", cells)
}

/// Returns the file and the line, or the object if they are not known.
fn place(row: &FunctionReport) -> String {
    let Some(file) = &row.file else { return names::cut_start(&clean(&row.object), PLACE_ROOM) };
    let file = clean(file);
    let name = file.rsplit_once('/').map_or(&*file, |(_, name)| name);
    let line = row.line.map_or_else(String::new, |line| format!(":{line}"));
    names::cut_start(&format!("{name}{line}"), PLACE_ROOM)
}
