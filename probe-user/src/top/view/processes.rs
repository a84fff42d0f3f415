//! The list of the daemon's processes, to choose from.

use super::{MARK, look, paragraph, window};
use crate::ui::output::style::Tone;
use crate::{
    top::{model::Model, source::daemon::Traced},
    ui::{
        table::grid::{self, ColumnGroup, GridColumn},
        text::{
            names,
            units::{Digits, count, maybe_percent, time},
        },
    },
};
use ctrace_core::{report::render::clean::clean, units::Nanos};
use ratatui::{
    style::{Modifier, Style},
    text::Line,
};

pub(super) fn lines(model: &Model, width: usize, height: usize) -> Vec<Line<'static>> {
    let list = model.processes.as_deref().unwrap_or_default();
    if list.is_empty() {
        return paragraph(
            "The daemon traces no process now. Those that it begins to trace appear here.",
            width,
        );
    }
    // Leave room for the headings and the rule.
    let part = window(model.process, list.len(), height.saturating_sub(2));
    let first = part.start;
    let text = table(&list[part], width);
    let mut lines: Vec<Line<'static>> =
        text.lines().map(|line| Line::raw(format!(" {line}"))).collect();
    if let Some(heading) = lines.first_mut() {
        *heading = heading.clone().style(look(Tone::Heading, model.shades));
    }
    if let Some(chosen) = lines.get_mut(model.process - first + 2) {
        let text = chosen.to_string();
        let marked = format!("{MARK}{}", text.strip_prefix(' ').unwrap_or(&text));
        *chosen = Line::styled(marked, Style::default().add_modifier(Modifier::REVERSED));
    }
    lines
}

fn table(list: &[Traced], width: usize) -> String {
    let last = |of: &Traced| of.process.last.clone();
    let numbers = vec![
        GridColumn::right("pid", list.iter().map(|of| of.process.pid.to_string())),
        GridColumn::right(
            "since",
            list.iter().map(|of| {
                time(Nanos(of.process.since_s.saturating_mul(1_000_000_000)), Digits::Short)
            }),
        ),
        GridColumn::right("calls", list.iter().map(|of| count(last(of).calls))),
        GridColumn::right("lost", list.iter().map(|of| count(last(of).lost))),
        GridColumn::right("~cost %", list.iter().map(|of| maybe_percent(last(of).cost_percent))),
    ];
    let numbers = ColumnGroup::untitled(numbers);
    let name = |text: &str, most: usize| names::cut_middle(&clean(text), most);
    let targets = list.iter().map(|of| name(&of.target, 24));
    let target = ColumnGroup::untitled(vec![GridColumn::left("target", targets)]);
    let taken = grid::total_width(&[&target, &numbers]) + 3;
    let room = width.saturating_sub(taken).max(8);
    let programs = list.iter().map(|of| {
        let exe = of.process.exe.as_str().unwrap_or(&of.process.state);
        names::cut_start(&clean(exe), room)
    });
    let program = ColumnGroup::untitled(vec![GridColumn::left("program", programs)]);
    crate::ui::Style::default().resolve(&grid::draw(&[&target, &numbers, &program]))
}
