//! The call paths as an indented tree, with children ordered by the sorting column.

use super::super::text;
use super::Context;
use crate::ui::notes::marks::Marks;
use crate::ui::output::style::Tone;
use crate::ui::table::forest::{self, Forest, TreeLine};
use crate::ui::table::grid::{self, Cell, ColumnGroup, GridColumn};
use crate::ui::text::units::{Digits, count, percent, time};
use ctrace_core::report::PathReport;
use ctrace_core::report::render::clean::clean;
use ctrace_core::report::render::columns;
use ctrace_core::report::render::rows;

/// Said below shares of more than the whole.
const MORE: &str = "of time: total in percent of the report's time; calls that run at once in several \
                    threads add up to more than 100 %";

/// Said below a tree: a function may seem to call another that it does not name.
const IN_BETWEEN: &str = "a call is below the nearest traced function around it: functions in between that \
                          are not traced are not shown";

pub(super) fn draw(context: &Context<'_>) -> String {
    let paths = &context.report.paths;
    let lines = forest(context).lines();
    let marks = Marks::of(context.report);
    let functions: Vec<usize> = lines.iter().map(|line| paths[line.row].function).collect();
    text::title("Call tree")
        + &table(context, paths, &lines, |row| marks.behind(paths[row].function))
        + &context.left_out(paths.len() - lines.len(), "path", "paths")
        + &marks.legend(&functions, context.style)
        + &text::paragraph(IN_BETWEEN, Tone::Dim, context.style)
        + &more(context, &lines)
}

/// Explains shares of more than the whole.
fn more(context: &Context<'_>, lines: &[TreeLine]) -> String {
    let is_more = |line: &TreeLine| {
        let total = context.report.paths[line.row].total_ns;
        total.percent_of(context.report.duration_ns) > 100.0
    };
    match lines.iter().any(is_more) {
        true => text::paragraph(MORE, Tone::Dim, context.style),
        false => String::new(),
    }
}

/// Draws lines of a tree. `paths` has their numbers; `behind` is the text behind the name of a row.
pub(crate) fn table(
    context: &Context<'_>,
    paths: &[PathReport],
    lines: &[TreeLine],
    behind: impl Fn(usize) -> String,
) -> String {
    let groups: Vec<ColumnGroup> = [Digits::Full, Digits::Short]
        .map(|digits| {
            let at = |row: usize| &paths[row];
            let duration = context.report.duration_ns;
            ColumnGroup::untitled(vec![
                GridColumn::right("total", lines.iter().map(|l| time(at(l.row).total_ns, digits))),
                GridColumn::right("self", lines.iter().map(|l| time(at(l.row).self_ns, digits))),
                GridColumn::right("calls", lines.iter().map(|l| count(at(l.row).calls))),
                GridColumn::right(
                    "of time",
                    lines.iter().map(|l| {
                        let share = at(l.row).total_ns.percent_of(duration);
                        Cell::toned(percent(share), Tone::of_percent(share))
                    }),
                ),
            ])
        })
        .into();
    let wide = context.style.width.is_none_or(|width| width >= 100);
    let numbers = &groups[usize::from(!wide)];
    let room = context
        .style
        .width
        .map_or(usize::MAX, |width| width.saturating_sub(grid::total_width(&[numbers]) + 2));
    let room = room.max("function".len());
    let name = |line: &TreeLine| {
        let function = paths[line.row].function;
        let name = clean(&context.report.name_of(function)).into_owned();
        (name, context.report.colour_of(function), behind(line.row))
    };
    let functions = forest::cells(lines, name, room);
    let tree = ColumnGroup::untitled(vec![GridColumn::left("function", functions)]);
    grid::draw(&[numbers, &tree])
}

/// Returns the heaviest connected part, with siblings in order.
fn forest(context: &Context<'_>) -> Forest {
    let Context { report, selection, .. } = context;
    let paths = &report.paths;
    let large = |row: usize| rows::path_is_large_enough(report, selection, &paths[row]);
    let weight = |row: usize| large(row).then_some(paths[row].total_ns.0);
    let top = selection.top.unwrap_or(usize::MAX);
    let mut forest = Forest::choose(paths.iter().map(|path| path.parent), weight, top);
    let column = rows::sort_column(columns::PATHS, selection);
    forest.sort_children(|&a, &b| {
        (column.key)(&paths[a]).in_table(&(column.key)(&paths[b])).then(a.cmp(&b))
    });
    forest
}
