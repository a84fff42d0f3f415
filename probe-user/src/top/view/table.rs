//! The table of functions: names, as many numbers as fit, and their recent trend.

use super::{MARK, look, window};
use crate::{
    top::{
        data::figures::Figures,
        lines::cell,
        model::{
            Model,
            columns::{TopColumn, shown, trend_room},
        },
    },
    ui::{
        output::style::Tone,
        table::plot,
        text::{distinct::shorten_all, names},
    },
};
use ratatui::{
    style::{Modifier, Style},
    text::{Line, Span},
};

/// The least width of a number, so that columns stay in place.
const LEAST: usize = 7;
/// The least width of a window with the letters of marks.
const ROOM_OF_MARKS: usize = 60;

pub(super) fn lines(model: &Model, width: usize, height: usize) -> Vec<Line<'static>> {
    let Some(figures) = model.figures() else { return Vec::new() };
    let rows = model.rows();
    let selected = model.selected_row(&rows);
    let part = window(selected, rows.len(), height.saturating_sub(1));
    let first = part.start;
    let visible = &rows[part];
    let layout = Layout::new(model, figures, (&rows, visible), width);
    let labels = visible.iter().map(|&place| names::bare(&figures.report.functions[place]));
    let labels = shorten_all(&labels.collect::<Vec<_>>(), layout.name);
    let mut lines = vec![layout.headings(model)];
    for (at, (&place, name)) in visible.iter().zip(&labels).enumerate() {
        let is_selected = first + at == selected;
        lines.push(layout.row(model, figures, (at, place, name), is_selected));
    }
    lines
}

/// The texts of the visible cells, and the widths of the columns.
struct Layout {
    columns: Vec<TopColumn>,
    /// By column, then by row.
    cells: Vec<Vec<String>>,
    widths: Vec<usize>,
    name: usize,
    /// The letters of the marks, and the width of the widest.
    letters: (Vec<String>, usize),
    trend: usize,
}

impl Layout {
    /// Lays out the `visible` ones of these rows.
    fn new(
        model: &Model,
        figures: &Figures,
        (rows, visible): (&[usize], &[usize]),
        width: usize,
    ) -> Self {
        let columns = shown(width, model.sort.column, model.is_sampled());
        let texts = |&column: &TopColumn| -> Vec<String> {
            visible.iter().map(|&place| cell(model, figures, column, place)).collect()
        };
        let cells: Vec<Vec<String>> = columns.iter().map(texts).collect();
        let width_of = |(column, cells): (&TopColumn, &Vec<String>)| {
            let heading = names::width(&heading(model, *column));
            cells.iter().map(|cell| names::width(cell)).fold(heading.max(LEAST), usize::max)
        };
        let widths: Vec<usize> = columns.iter().zip(&cells).map(width_of).collect();
        let trend = trend_room(width);
        let numbers: usize = widths.iter().map(|width| width + 1).sum();
        let letters = |&place: &usize| figures.marks.letters(place);
        // Of all rows, so that nothing moves while they do. A narrow window has no room for more than names.
        let marked = rows.iter().map(|place| letters(place).len()).max();
        let marked = marked.filter(|_| width >= ROOM_OF_MARKS).unwrap_or(0);
        let letters: Vec<String> = visible.iter().map(letters).collect();
        let gap = usize::from(marked > 0);
        // Leave room for the mark of the chosen row.
        let name = width.saturating_sub(numbers + trend + 1 + marked + gap).max(4);
        Self { columns, cells, widths, name, letters: (letters, marked), trend }
    }

    fn headings(&self, model: &Model) -> Line<'static> {
        let name = padded(&heading(model, TopColumn::Name), self.name);
        let mut text = format!(" {name}{}", self.marks(""));
        for (column, width) in self.columns.iter().zip(&self.widths) {
            text += &format!(" {:>width$}", heading(model, *column));
        }
        if self.trend > 0 {
            text += " trend";
        }
        Line::styled(text, look(Tone::Heading, model.shades))
    }

    fn row(
        &self,
        model: &Model,
        figures: &Figures,
        (at, place, name): (usize, usize, &str),
        is_selected: bool,
    ) -> Line<'static> {
        let label = names::bare(&figures.report.functions[place]);
        let mark = if is_selected { MARK } else { ' ' };
        let letters = self.letters.0.get(at).map_or("", String::as_str);
        let idle = figures.report.functions[place].calls == 0;
        let tone =
            if idle { Tone::Dim } else { Tone::of(&label, figures.report.functions[place].colour) };
        let mut spans = vec![
            Span::raw(mark.to_string()),
            Span::styled(padded(name, self.name), look(tone, model.shades)),
            Span::styled(self.marks(letters), look(Tone::Warm, model.shades)),
        ];
        for ((column, cells), width) in self.columns.iter().zip(&self.cells).zip(&self.widths) {
            let value = column.value(figures, place);
            let tone = match (*column, value) {
                (TopColumn::EXCLUSIVE, Some(share)) => Tone::of_percent(share),
                _ => Tone::Plain,
            };
            let fill = width.saturating_sub(names::width(&cells[at])) + 1;
            let text = format!("{}{}", " ".repeat(fill), cells[at]);
            spans.push(Span::styled(text, look(tone, model.shades)));
        }
        if self.trend > 0 {
            let id = figures.ids[place];
            let numbers = model.data().trend.of(id, trend_column(model), self.trend - 1);
            spans.push(Span::raw(format!(" {}", plot::sparkline(&numbers))));
        }
        let whole = match is_selected {
            true => Style::default().add_modifier(Modifier::REVERSED),
            false => Style::default(),
        };
        Line::from(spans).style(whole)
    }

    /// Returns a cell of the column of marks, which is only there if a visible row has some.
    fn marks(&self, letters: &str) -> String {
        match self.letters.1 {
            0 => String::new(),
            width => format!(" {}", padded(letters, width)),
        }
    }
}

/// Returns the column of the sparklines: the sorting one.
fn trend_column(model: &Model) -> TopColumn {
    if model.sort.column == TopColumn::Name { TopColumn::RATE } else { model.sort.column }
}

fn heading(model: &Model, column: TopColumn) -> String {
    match (model.sort.column == column, model.sort.reversed) {
        (true, false) => format!("{}▼", column.heading()),
        (true, true) => format!("{}▲", column.heading()),
        (false, _) => column.heading().to_owned(),
    }
}

fn padded(text: &str, room: usize) -> String {
    format!("{text}{}", " ".repeat(room.saturating_sub(names::width(text))))
}
