//! The texts that the screen and the files share: the target, the stretch, losses, and the cells of
//! the table.

use crate::top::{
    data::{compare::NumberChange, figures::Figures},
    model::{Basis, Model, columns::TopColumn},
};
use crate::ui::notes::head::others;
use crate::ui::{
    loss_line,
    text::units::{ABSENT, Digits, counted, time},
};
use ctrace_core::report::render::clean::clean;

/// Returns the name of the target.
pub(super) fn title(model: &Model) -> String {
    let of_daemon = model.processes.is_some();
    let Some(figures) = &model.data().interval else {
        return if of_daemon { "what the daemon traces" } else { "ctrace top" }.to_owned();
    };
    let target = &figures.report.target;
    let command: Vec<_> = target.command.iter().map(|word| clean(word)).collect();
    let mut title = command.join(" ");
    if let (true, Some(exe)) = (title.is_empty(), &target.exe) {
        title = clean(exe).into_owned();
    }
    if let Some(pid) = target.pid {
        title += &format!(" · pid {}{}", pid.0, others(&figures.report));
    }
    title
}

/// Names the shown stretch of time.
pub(super) fn stretch(model: &Model) -> String {
    let duration = model.figures().map(|figures| figures.report.duration_ns);
    let duration = duration.map_or_else(|| ABSENT.to_owned(), |ns| time(ns, Digits::Short));
    match (model.basis, &model.baseline) {
        (Basis::Interval, _) => format!("last {duration}"),
        (Basis::Start, None) => format!("since start, {duration}"),
        (Basis::Start, Some(_)) => format!("since freeze, {duration}"),
    }
}

/// Describes all losses since the start, in the words of reports.
pub(super) fn losses(model: &Model) -> String {
    let data = model.data();
    let line = loss_line(&data.lost);
    match data.missed {
        0 => line,
        missed => format!("{} missing; {line}", counted(missed, "interval", "intervals")),
    }
}

/// Formats a number of the table, or its change while comparing.
pub(super) fn cell(model: &Model, figures: &Figures, column: TopColumn, place: usize) -> String {
    match model.before() {
        Some(before) => NumberChange::of(column, figures, before, figures.ids[place]).text(column),
        None => column.cell(figures, place),
    }
}
