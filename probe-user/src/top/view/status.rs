//! The lines around the body: the target, losses and costs, the views, the keys.

use super::{look, texts};
use crate::{
    top::{
        data::figures::{FromHistograms, WITHIN_PERCENT},
        lines::{losses, stretch, title},
        model::{Mode, Model, View, tree::Root},
    },
    ui::{
        is_damaged,
        notes::head,
        output::style::Tone,
        text::{
            names,
            units::{ABSENT, Digits, count, percent, time},
        },
    },
};
use ctrace_core::{report::render::clean::clean, units::Nanos};
use ratatui::text::{Line, Span};
use std::time::Duration;

pub(super) fn seconds(duration: Duration) -> String {
    time(crate::session::run::session::nanos(duration), Digits::Short)
}

/// Returns the target, and the state at the right.
pub(super) fn title_line(model: &Model, width: usize) -> Line<'static> {
    let mut states = Vec::new();
    if model.is_paused() {
        states.push("PAUSED".to_owned());
    }
    if let Some(baseline) = &model.baseline {
        let since = model.figures().map(|figures| figures.report.end_ns.since(baseline.at));
        let since = time(since.unwrap_or(Nanos::ZERO), Digits::Short);
        states.push(format!("COMPARED with {since} ago"));
    }
    if model.ended {
        let exit = model.data().interval.as_ref().and_then(|last| last.report.target.exit);
        states.push(exit.map_or_else(|| "tracing ended".to_owned(), head::ending));
    }
    let state = names::cut_middle(&states.join(" · "), width);
    let room = width.saturating_sub(names::width(&state) + 1);
    let title = if room == 0 { String::new() } else { names::cut_middle(&title(model), room) };
    let fill = width.saturating_sub(names::width(&title) + names::width(&state));
    Line::from_iter([
        Span::styled(title, look(Tone::Title, model.shades)),
        Span::raw(" ".repeat(fill)),
        Span::styled(state, look(Tone::Warning, model.shades)),
    ])
}

/// Returns the cost of the probes, losses, and what is inexact. It is always visible.
pub(super) fn status_line(model: &Model, width: usize) -> Line<'static> {
    let (mut cost, mut rest) = (String::new(), String::new());
    if let Some(figures) = model.figures() {
        let report = &figures.report;
        cost += &match figures.percent_of_cpu(figures.cost) {
            Some(share) => format!("probes ~{} CPU · ", percent(share)),
            None => format!("probes ~{} · ", time(figures.cost, Digits::Short)),
        };
        if report.approximate {
            let within = match figures.from_histograms {
                FromHistograms::Nothing => "0.1".to_owned(),
                _ => WITHIN_PERCENT.to_string(),
            };
            rest += &format!(" · ~ within {within} %");
        }
        if let Some(tracked) = report.tracked_percent {
            rest += &format!(" · tracked {}", percent(tracked));
        }
        if report.filtered_calls > 0 {
            rest += &format!(" · {} calls filtered", count(report.filtered_calls));
        }
    }
    let tone = if is_damaged(&model.data().lost) || model.data().missed > 0 {
        Tone::Warning
    } else {
        Tone::Plain
    };
    let mut left = width;
    let mut part = |text: &str, tone| {
        let text = cut_end(text, left);
        left -= names::width(&text);
        Span::styled(text, look(tone, model.shades))
    };
    Line::from_iter([
        part(&cost, Tone::Plain),
        part(&losses(model), tone),
        part(&rest, Tone::Plain),
    ])
}

/// Returns the views, and what the current one shows.
pub(super) fn views_line(model: &Model, width: usize) -> Line<'static> {
    let mut text = String::new();
    for view in View::ALL {
        let facts = model.figures().map_or(0, |figures| texts::facts(figures).len());
        let number = match (view, facts) {
            (View::Notes, 1..) => format!(" {facts}"),
            _ => String::new(),
        };
        let name = format!("{}{number}", view.name());
        text += &if view == model.view { format!("[{name}]") } else { format!(" {name} ") };
    }
    text += &format!("· {}", stretch(model));
    let is_net = model.figures().is_some_and(|figures| figures.is_net);
    if is_net && matches!(model.view, View::Tree | View::Paths | View::Histogram) {
        text += " · as seen";
    }
    if let (View::Tree, Some(root)) = (model.view, root(model)) {
        text += &format!(" · {root}");
    }
    if matches!(model.view, View::Functions | View::Histogram) {
        let arrow = if model.sort.reversed { '▲' } else { '▼' };
        text += &format!(" · {} {arrow}", model.sort.column.heading());
    }
    if !model.filter.is_empty() && model.mode != Mode::Filter {
        text += &format!(" · /{}", model.filter);
    }
    Line::styled(cut_end(&text, width), look(Tone::Group, model.shades))
}

/// Names the root of the tree, if it is a function.
fn root(model: &Model) -> Option<String> {
    let (what, id) = match model.trees.shown().root {
        Root::All => return None,
        Root::Function(id) => ("below", id),
        Root::Callers(id) => ("callers of", id),
    };
    let figures = model.figures()?;
    let name = figures.place(id).map(|place| names::label(&figures.report.functions[place]));
    Some(format!("{what} {}", name.as_deref().unwrap_or(ABSENT)))
}

/// Returns the main keys, a message, or the input for a question.
pub(super) fn keys_line(model: &Model, width: usize) -> Line<'static> {
    let text = match (model.mode, &model.message) {
        (Mode::Filter, _) => {
            let behind = "▏  Enter: keep  Esc: none";
            let room = width.saturating_sub(names::width(behind) + 1);
            format!("/{}{behind}", names::cut_start(&model.filter, room.max(10)))
        }
        (Mode::Export, _) => "write as  t text  j JSON  c CSV  Esc: not at all".to_owned(),
        (Mode::Choose, Some(message)) => clean(message).into_owned(),
        (Mode::Choose, None) => "↑↓ choose   Enter look at it   q quit".to_owned(),
        (Mode::Help, _) => "↑↓ PgUp PgDn: more   Esc: back".to_owned(),
        (Mode::Look, Some(message)) => clean(message).into_owned(),
        (Mode::Look, None) => hints(model.view, width),
    };
    Line::styled(cut_end(&text, width), look(Tone::Dim, model.shades))
}

/// A key and its use.
type Hint = (&'static str, &'static str);

/// The most important keys of every view, before and behind those of one view.
const FIRST_HINTS: [Hint; 2] = [("q", "quit"), ("?", "help")];
const LAST_HINTS: [Hint; 6] = [
    ("/", "filter"),
    ("Tab", "view"),
    ("Space", "pause"),
    ("c", "since start"),
    ("b", "compare"),
    ("e", "export"),
];

/// Returns the most important keys of a view.
fn hints_of(view: View) -> &'static [Hint] {
    match view {
        View::Functions | View::Histogram => {
            &[("←", "→ sort"), ("Enter", "detail"), ("i", "into"), ("w", "callers")]
        }
        View::Tree => &[("←", "→ fold"), ("i", "into"), ("w", "callers"), ("u", "up")],
        View::Paths => &[("Enter", "in tree"), ("i", "into"), ("w", "callers")],
        View::Threads | View::Notes => &[],
    }
}

/// Returns as many hints as fit.
fn hints(view: View, width: usize) -> String {
    let mut text = String::new();
    for (key, what) in FIRST_HINTS.iter().chain(hints_of(view)).chain(&LAST_HINTS) {
        let next = format!("{}{key} {what}", if text.is_empty() { "" } else { "  " });
        if names::width(&text) + names::width(&next) > width {
            break;
        }
        text += &next;
    }
    text
}

/// Cuts off the end that does not fit.
fn cut_end(text: &str, room: usize) -> String {
    if names::width(text) <= room {
        return text.to_owned();
    }
    let start: String = names::head(text, room.saturating_sub(1)).to_owned();
    if room == 0 { String::new() } else { format!("{start}…") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::keys::BINDINGS;

    #[test]
    fn hints_are_of_keys_that_there_are() {
        let is_bound = |key: &str| BINDINGS.iter().any(|b| b.shown.split(' ').any(|k| k == key));
        let of_views = View::ALL.into_iter().flat_map(hints_of);
        for (key, _) in FIRST_HINTS.iter().chain(of_views).chain(&LAST_HINTS) {
            assert!(is_bound(key), "{key}");
        }
    }
}
