//! The functions of a report in intervals of its time.
//!
//! An interval is a report of its own window, without what takes more than its own chunks. So all
//! intervals together read each chunk twice, and those at their edges once more: calls are counted, then
//! ranked. A query by callees alone reads all chunks before each interval as well.

use super::Query;
use super::count::count;
use super::lens::Lens;
use super::ranks::ranks;
use super::report::open;
use crate::calls::by_function::ByFunction;
use crate::recording::Recording;
use crate::report::assemble::Facts;
use crate::report::{
    FunctionTrend, LossReport, Report, ReportMeta, TrendAsked, TrendInterval, TrendReport,
};
use crate::stats::unions::Unions;
use crate::units::Nanos;
use std::cmp::Reverse;
use std::ops::Range;

/// The rows of all functions in all intervals, at most.
const MOST_ROWS: usize = 20_000;

/// Divides the time of `whole`, the report of this query. Where there are too many functions, those with
/// most self time are in it.
pub(super) fn trend(
    recording: &Recording,
    query: &Query,
    whole: &Report,
    asked: TrendAsked,
) -> TrendReport {
    let length = asked.length(whole.duration_ns);
    let count = whole.duration_ns.0.div_ceil(length.0).max(1);
    let rows = &whole.functions;
    let mut called: Vec<usize> = (0..rows.len()).filter(|&at| rows[at].calls > 0).collect();
    let all = called.len();
    called.sort_by_key(|&at| (Reverse(rows[at].self_ns), at));
    called.truncate((MOST_ROWS / count as usize).max(1));
    called.sort_unstable();
    let left_out = all - called.len();
    let mut functions: Vec<FunctionTrend> =
        called.into_iter().map(|function| FunctionTrend { function, rows: Vec::new() }).collect();
    let edge = |n: u64| {
        let offset = Nanos(length.0.saturating_mul(n));
        whole.start_ns.saturating_add(offset).min(whole.end_ns)
    };
    let intervals = (0..count).map(|n| {
        let (start_ns, end_ns) = (edge(n), edge(n + 1));
        let report = of_interval(recording, query, start_ns..end_ns);
        for of in &mut functions {
            let mut row = report.functions[of.function].clone();
            row.summary = None;
            of.rows.push(row);
        }
        TrendInterval { start_ns, end_ns, loss: report.loss }
    });
    let intervals = intervals.collect();
    TrendReport { interval_ns: length, intervals, functions, functions_left_out: left_out as u64 }
}

/// Returns a report with the numbers of functions that calls alone tell which ended in the window.
fn of_interval(recording: &Recording, query: &Query, window: Range<Nanos>) -> Report {
    let (start, end) = (window.start, window.end);
    let query = Query { window: Some(window), ..query.clone() };
    let lens = Lens::new(&query, recording.nodes(), recording.functions());
    let chunks = lens.chunks_of_window(recording.chunks());
    let mut counted = count(recording, &lens, chunks);
    let by_function = ByFunction::new(lens.paths.nodes());
    let ranks = ranks(recording, &lens, chunks, &counted, &by_function, 0.0);
    let open = open(&mut counted, &lens, recording.functions().len());
    let counts = counted.counts.by_function(recording);
    let loss = counted.counts.loss;
    Facts {
        functions: recording.functions(),
        nodes: lens.paths.nodes(),
        by_function: &by_function,
        tallies: &counted.counts.tallies,
        counts: &counts,
        open,
        ranks,
        unions: Unions::default(),
        histograms: None,
        heat: None,
        threads: (Vec::new(), 0),
        start,
        end,
        approximate: false,
        counted: false,
        filtered: 0,
        min_duration: query.filter.min_duration,
        some_functions: query.functions.is_some(),
        loss: LossReport {
            events: loss.lost_events(),
            late: loss.late,
            decode_errors: loss.decode_errors,
            unreadable_calls: counted.counts.unreadable,
            ..LossReport::default()
        },
    }
    .report(ReportMeta::default())
}
