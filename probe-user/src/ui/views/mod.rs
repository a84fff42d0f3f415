//! The registry of views. A new view is a file here and a line in [`VIEWS`]; help, completions and
//! tests derive from it.

mod calls;
mod counts;
mod ctrack;
mod detail;
pub(crate) mod hist;
mod needs;
mod options;
pub(crate) mod paths;
mod points;
mod summary;
mod threads;
mod timeline;
pub(crate) mod tree;

pub(crate) use needs::Needs;
pub use options::{ViewError, ViewName, ViewOptions};

use super::style::Style;
use super::text;
use ctrace_core::report::Report;
use ctrace_core::report::render::RowKind;
use ctrace_core::report::render::rows::Selection;

/// The input of a view.
pub(crate) struct Context<'a> {
    pub report: &'a Report,
    pub options: &'a ViewOptions,
    pub selection: &'a Selection,
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
    pub draw: fn(&Context<'_>) -> String,
}

pub(crate) static SUMMARY: View = View {
    name: "summary",
    help: "where the time goes: calls, total and own time, mean, percentiles of each function",
    table: RowKind::Functions,
    needs: Needs::Nothing,
    draw: summary::draw,
};

pub(crate) static DETAIL: View = View {
    name: "detail",
    help: "how long calls take: spread, percentiles, the fastest, the center and the slowest",
    table: RowKind::Functions,
    needs: Needs::Nothing,
    draw: detail::draw,
};

pub(crate) static TREE: View = View {
    name: "tree",
    help: "who calls whom, as an indented tree with total and self times",
    table: RowKind::Paths,
    needs: Needs::Nothing,
    draw: tree::draw,
};

pub(crate) static PATHS: View = View {
    name: "paths",
    help: "call paths from root to leaf that take the most time, with percentiles",
    table: RowKind::Paths,
    needs: Needs::PathHistograms,
    draw: paths::draw,
};

pub(crate) static COUNTS: View = View {
    name: "counts",
    help: "how often each call path was taken, and how often for each call of its caller",
    table: RowKind::Counts,
    needs: Needs::Nothing,
    draw: counts::draw,
};

pub(crate) static HIST: View = View {
    name: "hist",
    help: "how durations are distributed, on a logarithmic scale, and how that changes over time",
    table: RowKind::Histograms,
    needs: Needs::Histograms,
    draw: hist::draw,
};

pub(crate) static CALLS: View = View {
    name: "calls",
    help: "the slowest calls, each with what was inside it",
    table: RowKind::Calls,
    needs: Needs::SlowestCalls,
    draw: calls::draw,
};

pub(crate) static TIMELINE: View = View {
    name: "timeline",
    help: "what ran when in each thread, innermost and by depth",
    table: RowKind::Timeline,
    needs: Needs::Timeline,
    draw: timeline::draw,
};

pub(crate) static THREADS: View = View {
    name: "threads",
    help: "the threads: calls, and when the first and the last event was",
    table: RowKind::Threads,
    needs: Needs::Nothing,
    draw: threads::draw,
};

pub(crate) static CTRACK: View = View {
    name: "ctrack",
    help: "CTRACK's summary and details, with its columns and its definitions",
    table: RowKind::Ctrack,
    needs: Needs::Ctrack,
    draw: ctrack::draw,
};

/// All views.
pub(crate) static VIEWS: &[&View] =
    &[&SUMMARY, &DETAIL, &TREE, &PATHS, &COUNTS, &HIST, &CALLS, &TIMELINE, &THREADS, &CTRACK];

/// The default views.
pub(crate) static DEFAULT: &[&View] = &[&SUMMARY];

/// Returns the percents of the center, as in `[1-99]`.
fn center_range(report: &Report) -> (String, String) {
    let cut = report.center_cut_percent;
    let short = |value: f64| {
        let text = format!("{value:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    (short(cut), short(100.0 - cut))
}
