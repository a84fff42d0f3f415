//! A table of columns in groups, drawn light: one rule under the headings, a bar between groups.
//!
//! prettytable-rs pads and aligns; here the cells are made so that groups, gaps and headings come
//! out as wanted, since its own spans stretch the columns below them.

use super::names::width;
use super::style::{Style, Tone};
use prettytable::format::{Alignment, TableFormat};
use prettytable::{Cell as TableCell, Row, Table};

/// Space between columns of a group.
const GAP: usize = 2;
/// Space between groups with titles: a bar with a space on either side.
const BAR: usize = 3;

#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) tone: Tone,
    /// Painted text to show for `text`, when it has more than one tone.
    pub(super) painted: Option<String>,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl Cell {
    pub(super) fn toned(text: String, tone: Tone) -> Self {
        Self { text, tone, painted: None }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) heading: String,
    pub(super) align: Align,
    pub(super) cells: Vec<Cell>,
}

impl Column {
    pub(super) fn right<T: Into<Cell>>(heading: &str, cells: impl IntoIterator<Item = T>) -> Self {
        Self::new(heading, Align::Right, cells)
    }

    pub(super) fn left<T: Into<Cell>>(heading: &str, cells: impl IntoIterator<Item = T>) -> Self {
        Self::new(heading, Align::Left, cells)
    }

    fn new<T: Into<Cell>>(heading: &str, align: Align, cells: impl IntoIterator<Item = T>) -> Self {
        let cells = cells.into_iter().map(Into::into).collect();
        Self { heading: heading.to_owned(), align, cells }
    }

    pub(super) fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| width(&cell.text)).max().unwrap_or(0);
        cells.max(width(&self.heading))
    }
}

/// Columns that stay together.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) title: Option<String>,
    pub(super) columns: Vec<Column>,
}

impl Group {
    pub(super) fn untitled(columns: Vec<Column>) -> Self {
        Self { title: None, columns }
    }

    pub(super) fn titled(title: String, columns: Vec<Column>) -> Self {
        Self { title: Some(title), columns }
    }

    /// Widths of the columns, each with the gap before it; a long title widens the first.
    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.columns.iter().map(Column::width).collect();
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

/// Columns that the groups take side by side.
pub(super) fn total_width(groups: &[&Group]) -> usize {
    let between: usize = groups.windows(2).map(|pair| joint_width(pair[0], pair[1])).sum();
    between + groups.iter().flat_map(|group| group.widths()).sum::<usize>()
}

fn joint_width(left: &Group, right: &Group) -> usize {
    if left.title.is_some() || right.title.is_some() { BAR } else { GAP }
}

/// The lines of the table, each ended.
pub(super) fn draw(groups: &[&Group], style: &Style) -> String {
    let rows = groups.iter().flat_map(|g| &g.columns).map(|c| c.cells.len()).max().unwrap_or(0);
    let mut table = Table::new();
    table.set_format(TableFormat::new());
    if groups.iter().any(|group| group.title.is_some()) {
        table.add_row(row(groups, style, Joint::Bar, |group, widths| {
            title_cells(group, widths, style)
        }));
    }
    table.add_row(row(groups, style, Joint::Bar, |group, widths| {
        let heading = |column: &Column| Cell::toned(column.heading.clone(), Tone::Heading);
        cells(group, widths, style, heading)
    }));
    table.add_row(row(groups, style, Joint::Rule, |_, widths| {
        let line = |&room: &usize| TableCell::new(&style.paint(Tone::Dim, &"─".repeat(room)));
        widths.iter().map(line).collect()
    }));
    for index in 0..rows {
        table.add_row(row(groups, style, Joint::Bar, |group, widths| {
            cells(group, widths, style, |column| {
                column.cells.get(index).cloned().unwrap_or_default()
            })
        }));
    }
    trim_lines(&table.to_string())
}

/// What stands between groups.
#[derive(Clone, Copy)]
enum Joint {
    Bar,
    Rule,
}

impl Joint {
    fn text(self, width: usize) -> &'static str {
        match (self, width) {
            (Self::Bar, BAR) => " │ ",
            (Self::Rule, BAR) => "─┼─",
            (Self::Bar, _) => "  ",
            (Self::Rule, _) => "──",
        }
    }
}

/// A row: the cells that `make` gives for each group, and the joints between groups.
fn row(
    groups: &[&Group],
    style: &Style,
    joint: Joint,
    make: impl Fn(&Group, &[usize]) -> Vec<TableCell>,
) -> Row {
    let mut cells = Vec::new();
    for (i, group) in groups.iter().enumerate() {
        if i > 0 {
            let text = joint.text(joint_width(groups[i - 1], group));
            cells.push(TableCell::new(&style.paint(Tone::Dim, text)));
        }
        cells.extend(make(group, &group.widths()));
    }
    Row::new(cells)
}

/// The cells of one row of a group; `content` chooses the row.
fn cells(
    group: &Group,
    widths: &[usize],
    style: &Style,
    content: impl Fn(&Column) -> Cell,
) -> Vec<TableCell> {
    let columns = group.columns.iter().zip(widths).enumerate();
    columns.map(|(at, (column, &room))| cell(column, &content(column), at, room, style)).collect()
}

/// The title of a group, in its middle, cut into the pieces that fall into its columns.
fn title_cells(group: &Group, widths: &[usize], style: &Style) -> Vec<TableCell> {
    let title = group.title.as_deref().unwrap_or("");
    let total: usize = widths.iter().sum();
    let before = total.saturating_sub(width(title)) / 2;
    let line = format!("{}{title}", " ".repeat(before));
    let mut rest = line.chars();
    widths
        .iter()
        .map(|&room| {
            let piece: String = rest.by_ref().take(room).collect();
            let padded = format!("{piece:room$}");
            TableCell::new(&style.paint(Tone::Group, &padded))
        })
        .collect()
}

fn cell(column: &Column, content: &Cell, at: usize, room: usize, style: &Style) -> TableCell {
    let painted = match (&content.painted, style.colour) {
        (Some(painted), true) => painted.clone(),
        _ => style.paint(content.tone, &content.text),
    };
    let fill = " ".repeat(room.saturating_sub(width(&content.text)));
    // The gap is part of the cell; filling it here keeps widths right under colour, too.
    match column.align {
        Align::Right => TableCell::new_align(&format!("{fill}{painted}"), Alignment::RIGHT),
        Align::Left => {
            let gap = if at == 0 { 0 } else { GAP.min(fill.len()) };
            TableCell::new(&format!("{}{painted}{}", &fill[..gap], &fill[gap..]))
        }
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
