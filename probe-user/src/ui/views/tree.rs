//! The call paths as an indented tree, with children ordered by the sorting column.

use super::super::text;
use super::Context;
use super::summary::is_net;
use crate::ui::notes::marks::Marks;
use crate::ui::output::style::Tone;
use crate::ui::table::forest::{self, Forest, TreeLine};
use crate::ui::table::grid::{self, Cell, ColumnGroup, GridColumn};
use crate::ui::table::net;
use crate::ui::text::units::{Digits, count, percent, time};
use ctrace_core::report::render::clean::clean;
use ctrace_core::report::render::columns;
use ctrace_core::report::render::rows;
use ctrace_core::report::{Net, NetPath, PathReport};
use ctrace_core::units::Nanos;

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
    let nets = if is_net(context) { context.report.net_paths() } else { Vec::new() };
    let shown = lines.iter().filter_map(|line| nets.get(line.row).copied().flatten());
    let signs = net::legend(shown.flat_map(|net| [net.total, net.own]), true);
    let signs = signs.into_iter().map(|line| text::paragraph(line, Tone::Dim, context.style));
    text::title("Call tree")
        + &table(context, paths, &lines, &nets, |row| marks.behind(paths[row].function))
        + &signs.collect::<String>()
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

/// Draws lines of a tree. `paths` has their numbers, and `nets` the times without the cost of probes if these are shown;
/// `behind` is the text behind the name of a row.
pub(crate) fn table(
    context: &Context<'_>,
    paths: &[PathReport],
    lines: &[TreeLine],
    nets: &[Option<NetPath>],
    behind: impl Fn(usize) -> String,
) -> String {
    let net_of =
        |row: usize| nets.get(row).copied().flatten().filter(|_| paths[row].total_ns.0 > 0);
    let duration_of = |row: usize, seen: Nanos, part: fn(NetPath) -> Net, digits| {
        let net = net_of(row).map(|net| net::cell(part(net)));
        net.unwrap_or_else(|| Cell::from(time(seen, digits)))
    };
    let groups: Vec<ColumnGroup> = [Digits::Full, Digits::Short]
        .map(|digits| {
            let at = |row: usize| &paths[row];
            let duration = context.report.duration_ns;
            ColumnGroup::untitled(vec![
                GridColumn::right(
                    "total",
                    lines
                        .iter()
                        .map(|l| duration_of(l.row, at(l.row).total_ns, |net| net.total, digits)),
                ),
                GridColumn::right(
                    "self",
                    lines
                        .iter()
                        .map(|l| duration_of(l.row, at(l.row).self_ns, |net| net.own, digits)),
                ),
                GridColumn::right("calls", lines.iter().map(|l| count(at(l.row).calls))),
                GridColumn::right(
                    "of time",
                    lines.iter().map(|l| {
                        let net = net_of(l.row).map(|net| net.total);
                        let known = net.map_or(Some(at(l.row).total_ns), Net::known);
                        let Some(total) = known else {
                            let most = net.map_or(at(l.row).total_ns, |net| net.most);
                            let share = percent(most.percent_of(duration));
                            return Cell::toned(
                                format!("<{}", share.trim_start_matches('<')),
                                Tone::Warm,
                            );
                        };
                        let share = total.percent_of(duration);
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
