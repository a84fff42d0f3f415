//! CTRACK's two tables, with its columns in its order, and with its definitions of the numbers: for
//! people who know its output, or compare the two. docs/statistics.md says what differs from ours.

use super::{Context, center_range};
use crate::ui::notes::head;
use crate::ui::output::style::Tone;
use crate::ui::table::armed;
use crate::ui::table::grid::{self, ColumnGroup, GridColumn};
use crate::ui::table::number::{Heading, column, columns};
use crate::ui::table::place;
use crate::ui::table::row_names::RowNames;
use crate::ui::table::stack::{self, Section};
use crate::ui::text;
use crate::ui::text::names::bare;
use crate::ui::text::units::{Digits, counted};
use ctrace_core::report::ctrack::number;
use ctrace_core::report::render::rows;
use ctrace_core::report::{CtrackReport, CtrackRow, FunctionReport};

/// The width of names below which less important columns go.
const NAME_ROOM: usize = 28;

/// Stands behind the name of a function with calls that are not in its numbers.
const MARK: &str = "*";

static SUMS: [Heading<CtrackRow>; 5] = [
    ("time acc", number("time_acc_ns")),
    ("sd", number("sd_ns")),
    ("cv", number("cv")),
    ("calls", number("calls")),
    ("threads", number("threads")),
];

static FASTEST: [Heading<CtrackRow>; 2] =
    [("min", number("fastest_min_ns")), ("mean", number("fastest_mean_ns"))];

static CENTER: [Heading<CtrackRow>; 6] = [
    ("min", number("center_min_ns")),
    ("mean", number("center_mean_ns")),
    ("med", number("center_median_ns")),
    ("time a", number("center_active_ns")),
    ("time ae", number("center_active_exclusive_ns")),
    ("max", number("center_max_ns")),
];

static SLOWEST: [Heading<CtrackRow>; 2] =
    [("mean", number("slowest_mean_ns")), ("max", number("slowest_max_ns"))];

/// The shown rows.
struct Rows<'a> {
    functions: Vec<&'a FunctionReport>,
    numbers: Vec<&'a CtrackRow>,
    names: RowNames,
}

pub(super) fn draw(context: &Context<'_>) -> String {
    let Some(ctrack) = &context.report.ctrack else {
        return text::title("Summary")
            + &head::times(context)
            + &text::paragraph(
                "CTRACK's numbers need every call, and this interval had more calls than fit into \
                 memory: give it more (--spool), or less time (--interval).",
                Tone::Warning,
                context.style,
            );
    };
    let chosen = rows::ctrack(context.report, context.selection);
    let rows = Rows::new(context, ctrack, &chosen.indices);
    let left_out = text::left_out(chosen.left_out, "function", "functions", context.style);
    text::title("Summary")
        + &head::times_with(
            context,
            ("time ctracked", ctrack.tracked_ns),
            ("time ctracked %", ctrack.tracked_percent),
        )
        + &summary(context, &rows)
        + &left_out
        + "\n"
        + &text::title("Details")
        + &details(context, &rows)
        + &left_out
        + &remarks(context, ctrack, &rows)
}

impl<'a> Rows<'a> {
    fn new(context: &Context<'a>, ctrack: &'a CtrackReport, indices: &[usize]) -> Self {
        let numbers = indices.iter().filter_map(|&index| ctrack.functions.get(index));
        let known = numbers.filter_map(|row| Some((row.of(&context.report.functions)?, row)));
        let (functions, numbers): (Vec<_>, Vec<_>) = known.unzip();
        let name = |f: &FunctionReport| match f.untimed {
            0 => bare(f),
            _ => format!("{} {MARK}", bare(f)),
        };
        Self { names: RowNames::of(&functions, name), functions, numbers }
    }
}

/// The contents of a summary of some width.
struct Layout {
    digits: Digits,
    place: bool,
}

/// The layouts from the widest to the narrowest.
const LAYOUTS: [Layout; 3] = [
    Layout { digits: Digits::Full, place: true },
    Layout { digits: Digits::Short, place: true },
    Layout { digits: Digits::Short, place: false },
];

fn summary(context: &Context<'_>, rows: &Rows<'_>) -> String {
    let longest = rows.names.width(stack::name_column(&RowNames::default(), 0).width());
    let (mut groups, mut room) = (Vec::new(), usize::MAX);
    for layout in &LAYOUTS {
        groups = summary_columns(context, rows, layout);
        let Some(width) = context.style.width else { break };
        // Two spaces are between the names and the numbers.
        let beside: Vec<&ColumnGroup> = groups.iter().collect();
        room = width.saturating_sub(grid::total_width(&beside) + 2);
        if room >= longest.min(NAME_ROOM) {
            break;
        }
    }
    let names = ColumnGroup::untitled(vec![stack::name_column(&rows.names, room)]);
    groups.insert(groups.len().saturating_sub(1), names);
    grid::draw(&groups.iter().collect::<Vec<_>>())
}

/// Returns the file, if it is to be shown, and the numbers.
fn summary_columns(context: &Context<'_>, rows: &Rows<'_>, layout: &Layout) -> Vec<ColumnGroup> {
    let narrow = context.style.width.is_some();
    let (mut groups, mut numbers) = (Vec::new(), Vec::new());
    if layout.place {
        let file = place::file_column("filename", &rows.functions, narrow);
        groups.push(ColumnGroup::untitled(vec![file]));
        numbers.extend(place::line_column(&rows.functions));
    }
    numbers.extend(armed::column(&rows.functions));
    let (low, high) = center_range(context.report);
    let headings = [
        ("calls", number("calls")),
        (&*format!("ae[{low}-{high}]%"), number("center_active_exclusive_percent")),
        ("ae[0-100]%", number("active_exclusive_percent")),
        ("time ae[0-100]", number("active_exclusive_ns")),
        ("time a[0-100]", number("active_ns")),
    ];
    let made = headings.map(|(heading, of)| column(heading, of, &rows.numbers, layout.digits));
    numbers.extend(made);
    groups.push(ColumnGroup::untitled(numbers));
    groups
}

fn details(context: &Context<'_>, rows: &Rows<'_>) -> String {
    let (low, high) = center_range(context.report);
    let titles = [
        format!("fastest[0-{low}]%"),
        format!("center[{low}-{high}]%"),
        format!("slowest[{high}-100]%"),
    ];
    let sums = |digits| {
        let armed = armed::column(&rows.functions).into_iter();
        let all = armed.chain(columns(&SUMS, &rows.numbers, digits));
        vec![ColumnGroup::untitled(all.collect())]
    };
    let groups = |digits| -> Vec<ColumnGroup> {
        let made: [Vec<GridColumn>; 3] = [
            columns(&FASTEST, &rows.numbers, digits),
            columns(&CENTER, &rows.numbers, digits),
            columns(&SLOWEST, &rows.numbers, digits),
        ];
        titles.iter().cloned().zip(made).map(|(title, of)| ColumnGroup::titled(title, of)).collect()
    };
    let sections = vec![
        Section { full: sums(Digits::Full), short: sums(Digits::Short) },
        Section { full: groups(Digits::Full), short: groups(Digits::Short) },
    ];
    stack::draw(&rows.names, sections, context.style)
}

/// Says which calls are in no row, and in no number of a marked row.
fn remarks(context: &Context<'_>, ctrack: &CtrackReport, rows: &Rows<'_>) -> String {
    let mut lines: Vec<String> =
        armed::legend(&rows.functions).into_iter().map(str::to_owned).collect();
    if rows.functions.iter().any(|function| function.untimed > 0) {
        lines.push(format!(
            "{MARK} Some calls ended unseen, as by an exception, and are not in these numbers. \
             CTRACK's own scopes end there."
        ));
    }
    let called = context.report.functions.iter().filter(|f| f.calls > 0).count();
    let unlisted = called.saturating_sub(ctrack.functions.len()) as u64;
    let why = match unlisted {
        1 => "is not listed: none of its calls was seen to end.",
        _ => "are not listed: none of their calls was seen to end.",
    };
    if unlisted > 0 {
        lines.push(format!("{} {why}", counted(unlisted, "function", "functions")));
    }
    lines.iter().map(|line| text::paragraph(line, Tone::Dim, context.style)).collect()
}
