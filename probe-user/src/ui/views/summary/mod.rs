//! The first screen: one row for each function, the one with the most time of its own first.

mod numbers;

pub(super) use numbers::{Numbered, Numbers, numbers};

use self::numbers::{
    PARTS, has_both, has_waits, left_out_for_width, numbers_of, shown, usual_order,
};
use super::{Context, SaidBelow, ViewOptions};
use crate::ui::notes::marks::Marks;
use crate::ui::notes::{few, head};
use crate::ui::output::style::{Style, Tone};
use crate::ui::table::armed;
use crate::ui::table::grid::{self, Cell, ColumnGroup, GridColumn};
use crate::ui::table::net;
use crate::ui::table::plot;
use crate::ui::table::row_names::{RowNames, place};
use crate::ui::table::stack;
use crate::ui::text;
use crate::ui::text::distinct::shorten_all;
use crate::ui::text::names;
use ctrace_core::function::FunctionKind;
use ctrace_core::report::numbers::{NumberId, Unit};
use ctrace_core::report::render::clean::clean;
use ctrace_core::report::render::rows::{self, RowChoice};
use ctrace_core::report::{FunctionReport, Report};
use ctrace_core::units::{Nanos, saturating_sum};
use std::borrow::Cow;
use std::cmp::Reverse;

use Numbered::{All, Few, More, Most};

/// The number of rows without `--top`.
const TOP: usize = 40;
/// The width of a name below which less important columns go.
const NAME_ROOM: usize = 28;
/// The same for the place in the source, which goes first.
const NAME_ROOM_BEFORE_PLACE: usize = 56;
const BAR_ROOM: usize = 12;
/// The width of a name in a line on inlined functions, and the most such lines.
const INLINED_ROOM: usize = 48;
const MOST_INLINED: usize = 2;
/// The least part of all self time for which such a line is worth reading.
const TELLING_PERCENT: f64 = 15.0;

/// Said below times without the cost of probes.
const NET: &str = "Times are wall time, waiting included, less the measured cost of probes (p50, p99 and \
                   max: less its mean in a call). --raw shows them as seen.";
/// Said below times both without and with that cost.
const BOTH: &str = "Times are wall time: waiting and the cost of probes are included. Those with net \
                    lack the measured cost of probes (p50, p99 and max: its mean in a call).";
/// Said below times with that cost alone.
const AS_SEEN: &str = "Times are wall time: waiting and the cost of probes are included.";
/// Said below times of markers and points alone.
const UNPROBED: &str = "Times are wall time: waiting is included.";
/// Said where waits are told apart.
const SPLIT: &str = "total = running + runnable (waiting for a processor) + blocked (waiting for something \
                     else), each with what was called. The rows in brackets say what was waited for.";
/// Said where rows are to be in the order of such a number, and waits are not told apart.
const NO_SPLIT: &str = "No waits are known, so rows have no order by them: a trace or recording with --cpu tells \
                        waiting from working.";
/// Said where no call has a time.
const NOT_ENDED: &str = "–: no call of it has ended yet";
/// Said where calls have ended, but not so that a time is known.
const NO_TIME: &str =
    "–: no call has an end that was seen, or the cost of its probes was not measured";

/// The contents of a table of some width.
struct Layout {
    numbers: Numbered,
    bar: bool,
    place: bool,
}

/// The layouts from the widest to the narrowest.
const LAYOUTS: [Layout; 7] = [
    Layout { numbers: All, bar: true, place: true },
    Layout { numbers: All, bar: true, place: false },
    Layout { numbers: All, bar: false, place: false },
    Layout { numbers: More, bar: false, place: false },
    Layout { numbers: Most, bar: true, place: false },
    Layout { numbers: Most, bar: false, place: false },
    Layout { numbers: Few, bar: false, place: false },
];

pub(super) fn draw(context: &Context<'_>) -> String {
    let marks = Marks::of(context.report);
    let net = is_net(context);
    let (rows, left_out) = choose(context, &marks, net);
    let (table, narrowed) = table(context, &rows, &marks, net);
    head::stretch(context)
        + &table
        + &narrowed.map(|line| text::paragraph(&line, Tone::Dim, context.style)).unwrap_or_default()
        + &context.left_out(left_out, "function", "functions")
        + &sentences(context, &marks, &rows, net)
            .iter()
            .filter(|line| !context.options.said.contains(*line))
            .map(|line| text::paragraph(&said(context, line), Tone::Dim, context.style))
            .collect::<String>()
}

/// Returns a sentence below the table, as long as there is room for it.
fn said<'a>(context: &Context<'_>, sentence: &'a str) -> Cow<'a, str> {
    match context.options.said_below {
        SaidBelow::FirstLines => few::first_line(sentence, context.style).into(),
        SaidBelow::Whole | SaidBelow::ShortNotes => sentence.into(),
    }
}

/// Returns the sentences below the table: the legend of the marks, and remarks.
fn sentences(context: &Context<'_>, marks: &Marks, rows: &[usize], net: bool) -> Vec<String> {
    let mut sentences = marks.sentences(rows);
    sentences.extend(inlined(context.report, rows));
    sentences.extend(remarks(context, rows, net).into_iter().map(str::to_owned));
    sentences.extend(as_seen(context, net));
    sentences
}

/// Returns the sentences below the table of a report.
pub(crate) fn sentences_of(report: &Report, options: &ViewOptions) -> Vec<String> {
    let style = Style::default();
    let context = Context { report, options, selection: &options.selection(), style: &style };
    let (marks, net) = (Marks::of(report), is_net(&context));
    let (rows, _) = choose(&context, &marks, net);
    sentences(&context, &marks, &rows, net)
}

/// Returns whether the times are shown without the cost of probes.
pub(super) fn is_net(context: &Context<'_>) -> bool {
    !context.options.raw && context.report.functions.iter().any(net::is_net)
}

/// The table for those who draw it otherwise: the same rows, texts, marks and remarks.
#[derive(serde::Serialize)]
pub(crate) struct Sheet {
    /// Of the numbers.
    headings: Vec<String>,
    rows: Vec<SheetRow>,
    left_out: usize,
    /// The legend of the marks and what else is said below.
    remarks: Vec<String>,
}

#[derive(serde::Serialize)]
struct SheetRow {
    name: String,
    marks: String,
    numbers: Vec<String>,
}

pub(crate) fn sheet(report: &Report, top: usize) -> Sheet {
    let options = ViewOptions { top: Some(top), ..ViewOptions::default() };
    let context = Context {
        report,
        options: &options,
        selection: &options.selection(),
        style: &Style::default(),
    };
    let (marks, net) = (Marks::of(report), is_net(&context));
    let (rows, left_out) = choose(&context, &marks, net);
    let list: Vec<&FunctionReport> = rows.iter().map(|&at| &report.functions[at]).collect();
    let layout = Layout { numbers: All, bar: false, place: false };
    let groups = columns_of(&shown(&context, All), &list, &[], None, &layout, net);
    let columns = || groups.iter().flat_map(|group| &group.columns);
    let text = |column: &GridColumn, row: usize| column.cells[row].text.clone();
    let row = |(row, &at): (usize, &usize)| SheetRow {
        name: names::bare(&report.functions[at]),
        marks: marks.letters(at),
        numbers: columns().map(|column| text(column, row)).collect(),
    };
    Sheet {
        headings: columns().map(|column| column.heading.clone()).collect(),
        rows: rows.iter().enumerate().map(row).collect(),
        left_out,
        remarks: sentences(&context, &marks, &rows, net),
    }
}

/// Says whose time is in the self time of the rows with the most of it. Once is enough: parts of a report do
/// not repeat it.
fn inlined(report: &Report, rows: &[usize]) -> Vec<String> {
    if report.part.is_some() {
        return Vec::new();
    }
    let rows = || rows.iter().map(|&at| &report.functions[at]);
    let all = Nanos(saturating_sum(rows().map(|row| row.self_ns.0)));
    let mut most: Vec<&FunctionReport> = rows()
        .filter(|row| !row.inlined.is_empty() && row.self_ns.percent_of(all) >= TELLING_PERCENT)
        .collect();
    most.sort_by_key(|row| Reverse(row.self_ns));
    most.truncate(MOST_INLINED);
    let own: Vec<String> = most.iter().map(|row| clean(&row.qualified()).into_owned()).collect();
    let line = |(row, own): (&FunctionReport, String)| {
        let names = row.inlined.iter().map(|name| names::of_source(&clean(name), INLINED_ROOM));
        let names: Vec<String> = names.collect();
        format!(
            "The self time of {own} is also that of what is inlined into it: {}.",
            names.join(", ")
        )
    };
    most.into_iter().zip(shorten_all(&own, INLINED_ROOM)).map(line).collect()
}

/// Says so if the time by which rows are sorted has the cost of probes in it, beside others without.
fn as_seen(context: &Context<'_>, net: bool) -> Option<String> {
    let number = NumberId::named(context.selection.sort.as_deref()?)?.number();
    let is_so = number.unit == Unit::Time && number.less.is_none() && !PARTS.contains(&number.key);
    let has_cost = is_so && net && !number.key.starts_with("net_");
    has_cost.then(|| format!("{} is as seen: the cost of probes is a part of it.", number.heading))
}

/// Explains absent times, and says what the times include.
fn remarks(context: &Context<'_>, rows: &[usize], net: bool) -> Vec<&'static str> {
    let rows: Vec<&FunctionReport> = rows.iter().map(|&at| &context.report.functions[at]).collect();
    let numbers = &numbers_of(context);
    let has_both = has_both(context);
    let has_net = net || has_both;
    let shown = |row| numbers.iter().filter_map(move |it| it.less(row).filter(|_| has_net));
    let has_times =
        |row: &&FunctionReport| row.ended() > 0 && row.wait.is_none() && !net::is_unknown(row);
    let mut lines = net::legend(rows.iter().copied().filter(has_times).flat_map(shown), net);
    lines.extend(net::unsubtracted(&rows).filter(|_| has_net));
    let lacks_time = |row: &&FunctionReport| {
        let has_time = row.timed > 0 && (!has_net || row.measured_probes().is_some());
        row.ended() > 0 && !row.is_point() && row.wait.is_none() && !has_time
    };
    let reasons = [
        (rows.iter().any(|row| row.ended() == 0), NOT_ENDED),
        (rows.iter().any(lacks_time), NO_TIME),
    ];
    lines.extend(reasons.into_iter().filter(|it| it.0).map(|it| it.1));
    let armed = armed::legend(&rows);
    lines.extend(armed.into_iter().chain(armed.map(|_| armed::ORDER)));
    let orders = context.selection.sort.as_deref().and_then(NumberId::named);
    match (has_waits(context), orders) {
        (true, _) => lines.push(SPLIT),
        (false, Some(number)) if PARTS.contains(&number.number().key) => lines.push(NO_SPLIT),
        _ => {}
    }
    lines.push(if has_both { BOTH } else { kind_of_times(&rows, net) });
    lines
}

/// Says what the times of these rows include.
pub(super) fn kind_of_times(rows: &[&FunctionReport], net: bool) -> &'static str {
    match net {
        true => NET,
        false if rows.iter().any(|row| row.kind == FunctionKind::Function) => AS_SEEN,
        false => UNPROBED,
    }
}

/// Returns the rows in order, and the number of those left out. Functions that frame the program
/// or wait are last: their own time is mostly time in which they wait for others.
fn choose(context: &Context<'_>, marks: &Marks, net: bool) -> (Vec<usize>, usize) {
    let sort = context.selection.sort.clone();
    let is_asked = sort.is_some();
    let sort = sort.or_else(|| Some(usual_order(context).to_owned()));
    let selection = RowChoice { sort, top: None, ..context.selection.clone() };
    let mut rows = rows::functions(context.report, &selection);
    let asked = context.selection.sort.as_deref().and_then(NumberId::named).map(NumberId::number);
    if !is_asked {
        let by = if has_waits(context) { net::running } else { net::own };
        rows.indices.sort_by_key(|&at| {
            let row = &context.report.functions[at];
            Reverse(armed::throughout(row, by(row, net)))
        });
    } else if let Some(number) = asked.filter(|it| net && it.less.is_some()) {
        let by = |at: usize| net::value(number, &context.report.functions[at], true);
        let key = |at: usize| by(at).unwrap_or(-1.0);
        rows.indices.sort_by(|&a, &b| key(b).total_cmp(&key(a)));
    }
    marks.cut(rows, is_asked, context.selection.top.unwrap_or(TOP))
}

/// Returns the table and, if there was no room for all numbers of a report with waits, a line that names
/// those left out.
fn table(
    context: &Context<'_>,
    rows: &[usize],
    marks: &Marks,
    net: bool,
) -> (String, Option<String>) {
    let list: Vec<&FunctionReport> = rows.iter().map(|&at| &context.report.functions[at]).collect();
    let names = RowNames::of(&list, names::bare);
    let works: Vec<bool> = rows.iter().map(|&at| !marks.hardly_works(at)).collect();
    let letters = marks.column(rows);
    let longest = names.width(stack::name_column(&RowNames::default(), 0).width());
    let mut groups = Vec::new();
    let (mut room, mut drawn) = (usize::MAX, All);
    let layouts = LAYOUTS.iter().filter(|it| it.numbers != More || has_waits(context));
    for layout in layouts {
        let numbers = shown(context, layout.numbers);
        groups = columns_of(&numbers, &list, &works, letters.as_ref(), layout, net);
        drawn = layout.numbers;
        let Some(width) = context.style.width else { break };
        let refs: Vec<&ColumnGroup> = groups.iter().collect();
        // Two spaces separate the name from the rest.
        room = width.saturating_sub(grid::total_width(&refs) + 2);
        let least = if layout.place { NAME_ROOM_BEFORE_PLACE } else { NAME_ROOM };
        if room >= longest.min(least) {
            break;
        }
    }
    groups.insert(0, ColumnGroup::untitled(vec![stack::name_column(&names, room)]));
    let narrowed = has_waits(context).then(|| left_out_for_width(context, drawn)).flatten();
    (grid::draw(&groups.iter().collect::<Vec<_>>()), narrowed)
}

/// Returns the columns after the name.
fn columns_of(
    numbers: &[Numbers],
    list: &[&FunctionReport],
    works: &[bool],
    letters: Option<&GridColumn>,
    layout: &Layout,
    net: bool,
) -> Vec<ColumnGroup> {
    let mut all: Vec<GridColumn> =
        letters.cloned().into_iter().chain(armed::column(list)).collect();
    let column =
        |it: &Numbers| GridColumn::right(&it.heading(), list.iter().map(|row| it.cell(row, net)));
    all.extend(numbers.iter().map(column));
    if layout.bar {
        all.push(bars(list, works, net));
    }
    if layout.place {
        all.push(GridColumn::left(
            "where",
            list.iter().map(|row| Cell::toned(place(row), Tone::Dim)),
        ));
    }
    vec![ColumnGroup::untitled(all)]
}

/// Draws the time of its own for each row that works. The longest bar is the most.
fn bars(list: &[&FunctionReport], works: &[bool], net: bool) -> GridColumn {
    let own = list.iter().zip(works).map(|(row, works)| match works {
        true => armed::throughout(row, net::own(row, net)).0,
        false => 0,
    });
    let (all, most) = (saturating_sum(own.clone()), own.clone().max().unwrap_or(0));
    let cells = own.map(|own| {
        let tone = Tone::of_percent(own as f64 * 100.0 / all.max(1) as f64);
        Cell::toned(plot::bar(own, most, BAR_ROOM), tone)
    });
    GridColumn::left("self bar", cells)
}
