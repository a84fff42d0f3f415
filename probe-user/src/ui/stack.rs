//! More columns than a line holds: the same rows in tables one below the other, each with the
//! name in front, rather than lines that wrap or numbers that are cut.

use super::grid::{self, Column, Group};
use super::names;
use super::style::{Style, Tone};

/// Room that a name gets before a group of columns moves to a table of its own.
const NAME_ROOM: usize = 24;

/// The rows' names and, for each table, the groups in it.
pub(super) struct Stack {
    groups: Vec<Group>,
    /// Indices into `groups`, table by table.
    tables: Vec<Vec<usize>>,
}

impl Stack {
    /// Puts each group into the first table with room for it.
    pub(super) fn pack(names: &[String], groups: Vec<Group>, style: &Style) -> Self {
        let groups = match style.width {
            Some(width) => narrow_groups(names, groups, width),
            None => groups,
        };
        let least = Group::untitled(vec![name_column(names, least_room(names))]);
        let mut tables: Vec<Vec<usize>> = Vec::new();
        for index in 0..groups.len() {
            let place = tables.iter_mut().find(|table| {
                let mut all = vec![&least];
                all.extend(table.iter().map(|&i| &groups[i]));
                all.push(&groups[index]);
                style.width.is_none_or(|width| grid::total_width(&all) <= width)
            });
            match place {
                Some(table) => table.push(index),
                None => tables.push(vec![index]),
            }
        }
        Self { groups, tables }
    }

    /// How many tables there are.
    pub(super) fn len(&self) -> usize {
        self.tables.len()
    }

    pub(super) fn draw(&self, names: &[String], style: &Style) -> String {
        let room = style.width.map_or(usize::MAX, |width| {
            let left = self.tables.iter().map(|table| {
                let mut all = vec![Group::default()];
                all.extend(table.iter().map(|&i| self.groups[i].clone()));
                width.saturating_sub(grid::total_width(&all.iter().collect::<Vec<_>>()))
            });
            left.min().unwrap_or(width).max(least_room(names))
        });
        let name = Group::untitled(vec![name_column(names, room)]);
        let mut out = String::new();
        for table in &self.tables {
            if !out.is_empty() {
                out.push('\n');
            }
            let mut all = vec![&name];
            all.extend(table.iter().map(|&i| &self.groups[i]));
            out += &grid::draw(&all, style);
        }
        out
    }
}

/// Splits groups that alone are too wide, column by column.
fn narrow_groups(names: &[String], groups: Vec<Group>, width: usize) -> Vec<Group> {
    let least = Group::untitled(vec![name_column(names, least_room(names))]);
    let mut out = Vec::new();
    for group in groups {
        let mut part = Group { title: group.title.clone(), columns: Vec::new() };
        for column in group.columns {
            part.columns.push(column);
            if part.columns.len() > 1 && grid::total_width(&[&least, &part]) > width {
                let next = part.columns.pop().into_iter().collect();
                let title = part.title.clone();
                out.push(std::mem::replace(&mut part, Group { title, columns: next }));
            }
        }
        out.push(part);
    }
    out
}

fn least_room(names: &[String]) -> usize {
    names.iter().map(|name| names::width(name)).max().unwrap_or(0).min(NAME_ROOM)
}

/// The column of names, in at most `room` columns.
pub(super) fn name_column(names: &[String], room: usize) -> Column {
    let room = room.max("function".len());
    let cells = names.iter().map(|name| grid::Cell::toned(names::shorten(name, room), Tone::Name));
    Column::left("function", cells)
}
