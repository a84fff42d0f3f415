//! What was traced, and when: the lines above the views.

use super::clock;
use super::grid::{self, Column, Group};
use super::style::{Style, Tone};
use super::text;
use super::units::{Digits, percent, time};
use super::views::Context;
use ctrace_core::export::clean::clean;
use ctrace_core::report::{Report, TargetExit};

/// The line that names the target; nothing when nothing is known of it.
pub(super) fn target(report: &Report, style: &Style) -> String {
    let target = &report.target;
    let mut parts = Vec::new();
    if !target.command.is_empty() {
        let words: Vec<_> = target.command.iter().map(|word| clean(word)).collect();
        parts.push(words.join(" "));
    } else if let Some(exe) = &target.exe {
        parts.push(clean(exe).into_owned());
    }
    if let Some(pid) = target.pid {
        parts.push(format!("pid {}", pid.0));
    }
    match target.exit {
        Some(TargetExit::Code(code)) => parts.push(format!("exited with {code}")),
        Some(TargetExit::Signal(signal)) => parts.push(format!("killed by {}", name_of(signal))),
        Some(TargetExit::Unknown) => parts.push("ended".to_owned()),
        None => {}
    }
    if parts.is_empty() {
        return String::new();
    }
    text::paragraph(&parts.join(" · "), Tone::Title, style) + "\n"
}

fn name_of(signal: i32) -> String {
    let name = rustix::process::Signal::from_named_raw(signal).map(|named| format!("{named:?}"));
    match name.as_deref().and_then(|text| text.strip_prefix("Signal::")) {
        Some(name) => format!("SIG{}", name.to_uppercase()),
        None => format!("signal {signal}"),
    }
}

/// Start, end, total and tracked time, as one row.
pub(super) fn times(context: &Context<'_>) -> String {
    let report = context.report;
    let mut columns = Vec::new();
    if let Some(offset) = context.options.epoch_offset_ns {
        columns.push(Column::left("start", [clock::date_time(report.start_ns, offset)]));
        columns.push(Column::left("end", [clock::date_time(report.end_ns, offset)]));
    }
    columns.push(Column::right("time total", [time(report.duration_ns, Digits::Full)]));
    columns.push(Column::right("time tracked", [time(report.tracked_ns, Digits::Full)]));
    columns.push(Column::right("tracked %", [percent(report.tracked_percent)]));
    let mut group = Group::untitled(columns);
    if context.style.width.is_some_and(|width| grid::total_width(&[&group]) > width) {
        group.columns.retain(|column| column.heading != "end");
    }
    grid::draw(&[&group], context.style) + "\n"
}
