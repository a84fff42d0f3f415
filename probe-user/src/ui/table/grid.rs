//! Draws a table of columns in groups, with one rule under the headings and a bar between groups.
//!
//! prettytable-rs pads and aligns. Its own column spans would widen the columns below them, so
//! groups, gaps and headings are made here.

use crate::ui::output::style::Tone;
use crate::ui::text::names::width;
use prettytable::format::{Alignment, TableFormat};
use prettytable::{Cell as TableCell, Row, Table};

/// The space between columns of a group.
const GAP: usize = 2;
/// The space between groups with titles: a bar with a space on either side.
const BAR: usize = 3;

#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) tone: Tone,
    /// Shown instead of `text` if there is more than one tone.
    pub(crate) marked: Option<String>,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl Cell {
    pub(crate) fn toned(text: String, tone: Tone) -> Self {
        Self { text, tone, marked: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

#[derive(Clone, Debug)]
pub(crate) struct GridColumn {
    pub(crate) heading: String,
    pub(crate) align: Align,
    pub(crate) cells: Vec<Cell>,
}

impl GridColumn {
    pub(crate) fn right<T: Into<Cell>>(heading: &str, cells: impl IntoIterator<Item = T>) -> Self {
        Self::new(heading, Align::Right, cells)
    }

    pub(crate) fn left<T: Into<Cell>>(heading: &str, cells: impl IntoIterator<Item = T>) -> Self {
        Self::new(heading, Align::Left, cells)
    }

    fn new<T: Into<Cell>>(heading: &str, align: Align, cells: impl IntoIterator<Item = T>) -> Self {
        let cells = cells.into_iter().map(Into::into).collect();
        Self { heading: heading.to_owned(), align, cells }
    }

    pub(crate) fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| width(&cell.text)).max().unwrap_or(0);
        cells.max(width(&self.heading))
    }
}

/// Columns that stay together.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColumnGroup {
    pub(crate) title: Option<String>,
    pub(crate) columns: Vec<GridColumn>,
}

impl ColumnGroup {
    pub(crate) fn untitled(columns: Vec<GridColumn>) -> Self {
        Self { title: None, columns }
    }

    pub(crate) fn titled(title: String, columns: Vec<GridColumn>) -> Self {
        Self { title: Some(title), columns }
    }

    /// Returns the widths of the columns, each with the gap before it. A long title widens the
    /// first.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(GridColumn::width).collect();
        for later in widths.iter_mut().skip(1) {
            *later += GAP;
        }
        let total: usize = widths.iter().sum();
        let title = self.title.as_deref().map_or(0, width);
        if let Some(first) = widths.first_mut() {
            *first += title.saturating_sub(total);
        }
        widths
    }
}

/// Returns the width of the groups side by side.
pub(crate) fn total_width(groups: &[&ColumnGroup]) -> usize {
    let between: usize = groups.windows(2).map(|pair| joint_width(pair[0], pair[1])).sum();
    between + groups.iter().flat_map(|group| group.widths()).sum::<usize>()
}

fn joint_width(left: &ColumnGroup, right: &ColumnGroup) -> usize {
    if left.title.is_some() || right.title.is_some() { BAR } else { GAP }
}

/// Returns the lines of the table, each with its line feed.
pub(crate) fn draw(groups: &[&ColumnGroup]) -> String {
    let groups: Vec<(&ColumnGroup, Vec<usize>)> = groups.iter().map(|&g| (g, g.widths())).collect();
    let columns = groups.iter().flat_map(|(group, _)| &group.columns);
    let rows = columns.map(|column| column.cells.len()).max().unwrap_or(0);
    let mut table = Table::new();
    table.set_format(TableFormat::new());
    if groups.iter().any(|(group, _)| group.title.is_some()) {
        table.add_row(row(&groups, Joint::Bar, title_cells));
    }
    table.add_row(row(&groups, Joint::Bar, |group, widths| {
        cells(group, widths, |column| Cell::toned(column.heading.clone(), Tone::Heading))
    }));
    table.add_row(row(&groups, Joint::Rule, |_, widths| {
        widths.iter().map(|&room| TableCell::new(&Tone::Dim.mark(&"─".repeat(room)))).collect()
    }));
    for index in 0..rows {
        table.add_row(row(&groups, Joint::Bar, |group, widths| {
            cells(group, widths, |column| column.cells.get(index).cloned().unwrap_or_default())
        }));
    }
    trim_lines(&table.to_string())
}

/// The separator of groups.
#[derive(Clone, Copy)]
enum Joint {
    Bar,
    Rule,
}

impl Joint {
    fn text(self, width: usize) -> String {
        match (self, width) {
            (Self::Bar, BAR) => format!(" {} ", Tone::Dim.mark("│")),
            (Self::Rule, BAR) => Tone::Dim.mark("─┼─"),
            (Self::Bar, _) => "  ".to_owned(),
            (Self::Rule, _) => Tone::Dim.mark("──"),
        }
    }
}

/// Returns a row: the cells from `make` for each group, with the joints between groups.
fn row(
    groups: &[(&ColumnGroup, Vec<usize>)],
    joint: Joint,
    make: impl Fn(&ColumnGroup, &[usize]) -> Vec<TableCell>,
) -> Row {
    let mut cells = Vec::new();
    for (i, (group, widths)) in groups.iter().enumerate() {
        if i > 0 {
            let width = joint_width(groups[i - 1].0, group);
            cells.push(TableCell::new(&joint.text(width)));
        }
        cells.extend(make(group, widths));
    }
    Row::new(cells)
}

/// Returns the cells of one row of a group; `content` chooses the row.
fn cells(
    group: &ColumnGroup,
    widths: &[usize],
    content: impl Fn(&GridColumn) -> Cell,
) -> Vec<TableCell> {
    let columns = group.columns.iter().zip(widths).enumerate();
    columns.map(|(at, (column, &room))| cell(column, &content(column), at, room)).collect()
}

/// Returns the centred title of a group, cut into one piece for each column.
fn title_cells(group: &ColumnGroup, widths: &[usize]) -> Vec<TableCell> {
    let title = group.title.as_deref().unwrap_or("");
    let total: usize = widths.iter().sum();
    let before = total.saturating_sub(width(title)) / 2;
    let line = format!("{}{title}", " ".repeat(before));
    let mut rest = line.chars();
    let pieces = widths.iter().map(|&room| rest.by_ref().take(room).collect::<String>());
    pieces.map(|piece| TableCell::new(&Tone::Group.mark(piece.trim_end()))).collect()
}

/// Makes a cell, which includes the gap before its column.
fn cell(column: &GridColumn, content: &Cell, at: usize, room: usize) -> TableCell {
    let text = match &content.marked {
        Some(marked) => marked.clone(),
        None => content.tone.mark(&content.text),
    };
    match column.align {
        Align::Right => {
            let fill = room.saturating_sub(width(&content.text));
            TableCell::new_align(&format!("{}{text}", " ".repeat(fill)), Alignment::RIGHT)
        }
        Align::Left => TableCell::new(&format!("{}{text}", if at == 0 { "" } else { "  " })),
    }
}

fn trim_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}
