//! The registry of views. A new view is a file here and a line in [`VIEWS`]; help, completions and
//! tests derive from it.

mod calls;
mod counts;
mod ctrack;
mod detail;
pub(crate) mod frames;
pub(crate) mod hist;
mod locks;
mod needs;
mod options;
pub(crate) mod paths;
mod plots;
mod points;
mod summary;
mod threads;
mod timeline;
pub(crate) mod tree;
mod trend;
pub(super) mod values;
mod wakers;

pub(crate) use needs::Needs;
pub use options::{SaidBelow, ViewError, ViewName, ViewOptions};
pub(crate) use summary::{Sheet, sentences_of, sheet};

use super::text;
use crate::ui::output::style::Style;
use crate::ui::table::net;
use ctrace_core::report::Report;
use ctrace_core::report::render::RowKind;
use ctrace_core::report::render::rows::RowChoice;

/// The input of a view.
pub(crate) struct Context<'a> {
    pub report: &'a Report,
    pub options: &'a ViewOptions,
    pub selection: &'a RowChoice,
    pub style: &'a Style,
}

impl Context<'_> {
    /// Returns the line below a table that omits rows.
    fn left_out(&self, count: usize, one: &str, many: &str) -> String {
        match self.options.fixed {
            true => text::not_shown(count, one, many, "", self.style),
            false => text::left_out(count, one, many, self.style),
        }
    }
}

/// A way to look at a report.
pub(crate) struct View {
    /// The name for `--view`.
    pub name: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// The rows it shows, which are also those of its CSV.
    pub table: RowKind,
    /// The data that the report must hold besides its sums.
    pub needs: Needs,
    /// True if its times include the cost of probes, even where that is known.
    pub as_seen: bool,
    pub draw: fn(&Context<'_>) -> String,
}

pub(crate) static SUMMARY: View = View {
    name: "summary",
    help: "where the time goes: calls, total and self time, mean, percentiles of each function",
    table: RowKind::Functions,
    needs: Needs::Nothing,
    as_seen: false,
    draw: summary::draw,
};

pub(crate) static DETAIL: View = View {
    name: "detail",
    help: "how long calls take: spread, percentiles, the fastest, the center and the slowest",
    table: RowKind::Functions,
    needs: Needs::Nothing,
    as_seen: true,
    draw: detail::draw,
};

pub(crate) static TREE: View = View {
    name: "tree",
    help: "who calls whom, as an indented tree with total and self times",
    table: RowKind::Paths,
    needs: Needs::Nothing,
    as_seen: false,
    draw: tree::draw,
};

pub(crate) static PATHS: View = View {
    name: "paths",
    help: "call paths from root to leaf that take the most time, with percentiles",
    table: RowKind::Paths,
    needs: Needs::PathHistograms,
    as_seen: true,
    draw: paths::draw,
};

pub(crate) static COUNTS: View = View {
    name: "counts",
    help: "how often each call path was taken, and how often for each call of its caller",
    table: RowKind::Counts,
    needs: Needs::Nothing,
    as_seen: false,
    draw: counts::draw,
};

pub(crate) static HIST: View = View {
    name: "hist",
    help: "how durations are distributed, on a logarithmic scale, and how that changes over time",
    table: RowKind::Histograms,
    needs: Needs::Histograms,
    as_seen: true,
    draw: hist::draw,
};

pub(crate) static TREND: View = View {
    name: "trend",
    help: "functions over time: calls, mean, percentiles in each of some intervals (--interval)",
    table: RowKind::Trend,
    needs: Needs::Trend,
    as_seen: false,
    draw: trend::draw,
};

pub(crate) static CALLS: View = View {
    name: "calls",
    help: "the slowest calls, each with what was inside it",
    table: RowKind::Calls,
    needs: Needs::SlowestCalls,
    as_seen: true,
    draw: calls::draw,
};

pub(crate) static FRAMES: View = View {
    name: "frames",
    help: "calls of a function or times between marks as frames (--frame): what makes the longest longer than others",
    table: RowKind::Frames,
    needs: Needs::Frames,
    as_seen: true,
    draw: frames::draw,
};

pub(crate) static VALUES: View = View {
    name: "values",
    help: "calls by their arguments and results (--arg, --ret, -u): for which of them they are slow",
    table: RowKind::Values,
    needs: Needs::Values,
    as_seen: true,
    draw: values::draw,
};

pub(crate) static WAKERS: View = View {
    name: "wakers",
    help: "who ended the waits of each function (--wakers): another function and its thread, or an interrupt",
    table: RowKind::Wakers,
    needs: Needs::Wakers,
    as_seen: true,
    draw: wakers::draw,
};

pub(crate) static PLOTS: View = View {
    name: "plots",
    help: "numbers that markers plot: count, least, mean, greatest, last, and how they change over time",
    table: RowKind::Plots,
    needs: Needs::Plots,
    as_seen: false,
    draw: plots::draw,
};

pub(crate) static LOCKS: View = View {
    name: "locks",
    help: "locks (--locks, or those of markers): how often and how long threads waited for each, and who held it meanwhile",
    table: RowKind::Locks,
    needs: Needs::Locks,
    as_seen: true,
    draw: locks::draw,
};

pub(crate) static TIMELINE: View = View {
    name: "timeline",
    help: "what ran when in each thread, innermost and by depth",
    table: RowKind::Timeline,
    needs: Needs::Timeline,
    as_seen: true,
    draw: timeline::draw,
};

pub(crate) static THREADS: View = View {
    name: "threads",
    help: "the threads: calls, and when the first and the last event was",
    table: RowKind::Threads,
    needs: Needs::Nothing,
    as_seen: false,
    draw: threads::draw,
};

pub(crate) static CTRACK: View = View {
    name: "ctrack",
    help: "CTRACK's summary and details, with its columns and its definitions",
    table: RowKind::Ctrack,
    needs: Needs::Ctrack,
    as_seen: true,
    draw: ctrack::draw,
};

/// All views.
pub(crate) static VIEWS: &[&View] = &[
    &SUMMARY, &DETAIL, &TREE, &PATHS, &COUNTS, &HIST, &TREND, &CALLS, &VALUES, &WAKERS, &PLOTS,
    &LOCKS, &FRAMES, &TIMELINE, &THREADS, &CTRACK,
];

/// The default views.
pub(crate) static DEFAULT: &[&View] = &[&SUMMARY];

/// Returns a note if some of these views show times with the cost of probes although it is known.
pub(super) fn as_seen(report: &Report, options: &ViewOptions) -> Option<String> {
    let views = options.views_or_default();
    let seen: Vec<&str> =
        views.iter().map(|it| it.view()).filter(|it| it.as_seen).map(|it| it.name).collect();
    let (last, first) = seen.split_last()?;
    let names = match first {
        [] => (*last).to_owned(),
        _ => format!("{} and {last}", first.join(", ")),
    };
    (!options.raw && report.functions.iter().any(net::is_net)).then(|| {
        format!(
            "Times in {names} are as seen, with the cost of probes; --view summary subtracts it."
        )
    })
}

/// Returns the percents of the center, as in `[1-99]`.
fn center_range(report: &Report) -> (String, String) {
    let cut = report.center_cut_percent;
    let short = |value: f64| {
        let text = format!("{value:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    (short(cut), short(100.0 - cut))
}
