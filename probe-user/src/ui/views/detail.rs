//! How long calls take: sums, spread and percentiles, and CTRACK's three groups: the fastest
//! calls, the center, and the slowest.

use super::super::grid::{Cell, Column, Group};
use super::super::names::label;
use super::super::stack::{self, Section};
use super::super::style::Tone;
use super::super::text;
use super::super::units::{Digits, count, maybe_time, ratio, time};
use super::{Context, center_range};
use ctrace_core::report::FunctionReport;
use ctrace_core::report::render::rows;
use ctrace_core::units::Nanos;

/// A spread beyond the mean itself deserves a look.
const REMARKABLE_CV: f64 = 1.0;

pub(super) fn draw(context: &Context<'_>) -> String {
    let report = context.report;
    let rows = rows::functions(report, context.selection);
    let list: Vec<&FunctionReport> = rows.indices.iter().map(|&i| &report.functions[i]).collect();
    let names: Vec<String> = list.iter().map(|f| label(f)).collect();
    let full = sections(context, &list, Digits::Full);
    let short = sections(context, &list, Digits::Short);
    let pairs = full.into_iter().zip(short);
    let sections = pairs.map(|(full, short)| Section { full, short }).collect();
    text::title("Details")
        + &stack::draw(&names, sections, context.style)
        + &text::left_out(rows.left_out, "function", "functions", context.style)
}

/// The columns: sums, what has no duration, percentiles, and the three parts of the calls.
fn sections(context: &Context<'_>, list: &[&FunctionReport], digits: Digits) -> Vec<Vec<Group>> {
    let (low, high) = center_range(context.report);
    let times = |heading: &str, get: fn(&FunctionReport) -> Option<Nanos>| {
        Column::right(heading, list.iter().map(|f| maybe_time(get(f), digits)))
    };
    let counts = |heading: &str, get: fn(&FunctionReport) -> u64| {
        Column::right(heading, list.iter().map(|f| count(get(f))))
    };
    let exceptions = |heading: &str, get: fn(&FunctionReport) -> u64| {
        let tone = |n| if n == 0 { Tone::Dim } else { Tone::Warm };
        Column::right(heading, list.iter().map(|f| Cell::toned(count(get(f)), tone(get(f)))))
    };
    let cv = list.iter().map(|f| {
        let remarkable = f.durations.cv.is_some_and(|cv| cv > REMARKABLE_CV);
        Cell::toned(ratio(f.durations.cv), if remarkable { Tone::Warm } else { Tone::Plain })
    });
    let sums = Group::untitled(vec![
        Column::right("time acc", list.iter().map(|f| time(f.total_ns, digits))),
        Column::right("self", list.iter().map(|f| time(f.self_ns, digits))),
        times("sd", |f| f.durations.sd_ns),
        Column::right("cv", cv),
        counts("calls", |f| f.calls),
        counts("threads", |f| f.threads),
    ]);
    let mut sections = vec![vec![sums]];
    if list.iter().any(|f| f.untimed > 0 || f.open > 0 || f.headless > 0) {
        let columns = vec![
            exceptions("untimed", |f| f.untimed),
            exceptions("open", |f| f.open),
            exceptions("headless", |f| f.headless),
        ];
        sections.push(vec![Group::titled("without a duration".to_owned(), columns)]);
    }
    sections.push(vec![Group::untitled(vec![
        times("p50", |f| f.durations.p50_ns),
        times("p90", |f| f.durations.p90_ns),
        times("p95", |f| f.durations.p95_ns),
        times("p99", |f| f.durations.p99_ns),
        times("p99.9", |f| f.durations.p999_ns),
    ])]);
    sections.push(vec![
        Group::titled(
            format!("fastest[0-{low}]%"),
            vec![times("min", |f| f.fastest.min_ns), times("mean", |f| f.fastest.mean_ns)],
        ),
        Group::titled(
            format!("center[{low}-{high}]%"),
            vec![
                times("min", |f| f.center.min_ns),
                times("mean", |f| f.center.mean_ns),
                times("med", |f| f.center.median_ns),
                times("time a", |f| f.center.active_ns),
                times("time ae", |f| f.center.active_exclusive_ns),
                times("max", |f| f.center.max_ns),
            ],
        ),
        Group::titled(
            format!("slowest[{high}-100]%"),
            vec![times("mean", |f| f.slowest.mean_ns), times("max", |f| f.slowest.max_ns)],
        ),
    ]);
    sections
}
