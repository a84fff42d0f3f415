//! Tests of screens against golden files, and of keys.

mod daemon;
mod files;
#[path = "../../../core/tests/fixture/mod.rs"]
pub(super) mod fixture;
mod keys;
mod screens;
mod stretches;
mod summary;
mod sums;
mod trees;

use crate::session::keep::live::Snapshot;
use crate::top::{
    data::Data,
    keys::action,
    model::{Effect, Model},
    view,
};
use crate::ui::output::style::Shades;
use ctrace_core::{
    report::{Report, render::clean::is_harmful},
    units::Nanos,
};
pub(super) use fixture::SECOND;
use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    style::Color,
    text::Text,
};
use std::time::Duration;

/// Turns the report into that of the nth interval of a running target.
fn nth(report: &Report, n: u64) -> Report {
    let mut report = report.clone();
    let after = Nanos(n * report.duration_ns.0.min(10 * SECOND));
    report.start_ns = report.start_ns.saturating_add(after);
    report.end_ns = report.end_ns.saturating_add(after);
    report.target.exit = None;
    report
}

pub(super) fn snapshot(report: Report, cpu: u64) -> Snapshot {
    let spent = report.functions.iter().map(|f| Nanos(f.calls.min(SECOND) * 60)).collect();
    Snapshot { report, spent, cpu: Some(Nanos(cpu)) }
}

/// Makes a model after two intervals with the same numbers.
fn model_of(report: &Report) -> Model {
    let mut model = Model::new(Data::new(Some(Nanos::ZERO)), Duration::from_secs(1), Shades::None);
    model.add(vec![snapshot(nth(report, 0), SECOND)], 0);
    model.add(vec![snapshot(nth(report, 1), 2 * SECOND)], 0);
    model
}

fn model() -> Model {
    model_of(&fixture::typical())
}

fn press(model: &mut Model, code: KeyCode) -> Option<Effect> {
    let key = KeyEvent::new(code, KeyModifiers::NONE);
    action(model.mode, key).and_then(|action| model.act(action))
}

fn typed(model: &mut Model, text: &str) {
    text.chars().for_each(|c| {
        press(model, KeyCode::Char(c));
    });
}

/// Returns the screen's text, after checks that hold for every screen.
fn screen(model: &mut Model, width: u16, height: u16) -> String {
    model.size = (width.into(), height.into());
    let drawn = view::draw(model);
    model.limit_scroll(drawn.last_scroll);
    assert!(drawn.lines.len() <= height.into(), "{width}×{height}");
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a backend");
    let text = Text::from(drawn.lines);
    terminal.draw(|frame| frame.render_widget(text, frame.area())).expect("it draws");
    let buffer = terminal.backend().buffer();
    assert!(
        model.shades != Shades::None || buffer.content.iter().all(|cell| cell.fg == Color::Reset)
    );
    let mut out = String::new();
    for row in buffer.content.chunks(width.into()) {
        let mut line = String::new();
        let mut hidden = 0_usize;
        for cell in row {
            // A wide character hides the cell behind it.
            if hidden == 0 {
                line += cell.symbol();
                hidden = unicode_width::UnicodeWidthStr::width(cell.symbol()).max(1);
            }
            hidden -= 1;
        }
        out += line.trim_end();
        out.push('\n');
    }
    assert!(!out.chars().any(|c| c != '\n' && is_harmful(c)), "the target drives the terminal");
    out
}

fn functions(model: &Model) -> Vec<String> {
    let figures = model.figures().expect("numbers");
    model.rows().iter().map(|&row| figures.report.functions[row].name.to_string()).collect()
}
