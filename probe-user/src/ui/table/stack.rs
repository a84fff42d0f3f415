//! Splits wide tables: the same rows appear in several tables, one below the other, each with the
//! names in front. So lines do not wrap and numbers are not cut.

use crate::ui::output::style::Style;
use crate::ui::table::grid::{self, ColumnGroup, GridColumn};
use crate::ui::table::row_names::RowNames;
use crate::ui::text::distinct;

/// The least width of a name before a group of columns moves to its own table.
const NAME_ROOM: usize = 24;

/// Groups of columns that belong together, with all digits and with few.
pub(crate) struct Section {
    pub(crate) full: Vec<ColumnGroup>,
    pub(crate) short: Vec<ColumnGroup>,
}

/// Draws the sections in as few tables as the width allows, with the names in front of each.
pub(crate) fn draw(names: &RowNames, sections: Vec<Section>, style: &Style) -> String {
    let tables = pack(names, sections, style.width);
    let room = style.width.map_or(usize::MAX, |width| {
        let left = tables.iter().map(|table| width.saturating_sub(width_of(table, names, 0)));
        left.min().unwrap_or(width) + name_column(names, 0).width()
    });
    let name = ColumnGroup::untitled(vec![name_column(names, room.max(least_room(names)))]);
    let drawn = tables.iter().map(|table| {
        let all: Vec<&ColumnGroup> = std::iter::once(&name).chain(table).collect();
        grid::draw(&all)
    });
    drawn.collect::<Vec<_>>().join("\n")
}

/// Returns the groups of each table.
fn pack(names: &RowNames, sections: Vec<Section>, width: Option<usize>) -> Vec<Vec<ColumnGroup>> {
    let room = least_room(names);
    let fits =
        |table: &[ColumnGroup]| width.is_none_or(|width| width_of(table, names, room) <= width);
    let mut tables: Vec<Vec<ColumnGroup>> = Vec::new();
    for section in sections {
        let whole = if fits(&section.full) {
            section.full
        } else if fits(&section.short) {
            section.short
        } else {
            // The parts of this section share tables only among themselves.
            let start = tables.len();
            for group in narrow_groups(names, section.short, width.unwrap_or(usize::MAX)) {
                add(&mut tables, start, vec![group], fits);
            }
            continue;
        };
        let last = tables.len().saturating_sub(1);
        add(&mut tables, last, whole, fits);
    }
    tables
}

/// Adds groups to the first table from `start` on that has room, or to a new one.
fn add(
    tables: &mut Vec<Vec<ColumnGroup>>,
    start: usize,
    groups: Vec<ColumnGroup>,
    fits: impl Fn(&[ColumnGroup]) -> bool,
) {
    for table in tables.iter_mut().skip(start) {
        let before = table.len();
        table.extend(groups.iter().cloned());
        if fits(table) {
            return;
        }
        table.truncate(before);
    }
    tables.push(groups);
}

/// Returns the width of a table whose names have `room`.
fn width_of(table: &[ColumnGroup], names: &RowNames, room: usize) -> usize {
    let name = ColumnGroup::untitled(vec![name_column(names, room)]);
    grid::total_width(&std::iter::once(&name).chain(table).collect::<Vec<_>>())
}

/// Splits groups that are too wide by themselves, column by column.
fn narrow_groups(names: &RowNames, groups: Vec<ColumnGroup>, width: usize) -> Vec<ColumnGroup> {
    let least = ColumnGroup::untitled(vec![name_column(names, least_room(names))]);
    let mut out = Vec::new();
    for group in groups {
        let mut part = ColumnGroup { title: group.title.clone(), columns: Vec::new() };
        for column in group.columns {
            part.columns.push(column);
            if part.columns.len() > 1 && grid::total_width(&[&least, &part]) > width {
                let next = part.columns.pop().into_iter().collect();
                let title = part.title.clone();
                out.push(std::mem::replace(&mut part, ColumnGroup { title, columns: next }));
            }
        }
        out.push(part);
    }
    out
}

fn least_room(names: &RowNames) -> usize {
    names.width(0).min(NAME_ROOM)
}

/// Returns the column of names, in at most `room` columns.
pub(crate) fn name_column(names: &RowNames, room: usize) -> GridColumn {
    let room = room.max("function".len());
    let short = distinct::shorten_all(&names.texts, room).into_iter();
    let cells = short.zip(&names.tones).map(|(short, tone)| grid::Cell::toned(short, *tone));
    GridColumn::left("function", cells)
}
