//! The note on a budget for the reader of a report.

use super::sampling::FEWEST_WINDOWS;
use crate::ui::text::units;
use ctrace_core::report::{FunctionReport, Report, SampledReport};

/// The number of functions that the note names.
const NAMED: usize = 5;

/// Returns a note for tables on functions that were armed for a part of the time.
pub(crate) fn sampled_note(report: &Report, percent: f64) -> Option<String> {
    let mut sampled: Vec<(&FunctionReport, SampledReport)> =
        report.functions.iter().filter_map(|f| Some((f, f.sampled?))).collect();
    if sampled.is_empty() {
        return None;
    }
    // By the calls that were seen: not all functions have an estimate.
    sampled.sort_by_key(|(function, _)| std::cmp::Reverse(function.calls));
    let mut told: Vec<String> = sampled
        .iter()
        .take(NAMED)
        .map(|(function, sampled)| {
            let estimate = match (sampled.calls, sampled.calls_error) {
                (Some(calls), Some(error)) => {
                    let (calls, error) = (units::count(calls), units::count(error));
                    format!(" (about {calls} ± {error} calls in all)")
                }
                _ if sampled.windows < FEWEST_WINDOWS => {
                    format!(
                        " (no estimate from {})",
                        units::counted(sampled.windows, "window", "windows")
                    )
                }
                _ => " (no estimate: its windows differ too much, or probes took most of them)"
                    .to_owned(),
            };
            format!("{} {:.2} %{estimate}", function.name, sampled.armed_percent)
        })
        .collect();
    if sampled.len() > NAMED {
        told.push(format!("{} more", sampled.len() - NAMED));
    }
    Some(format!(
        "to keep within the budget of {percent} % of the target's CPU time, these functions were \
         armed for a part of the time. Their rows show that part; the rest of their time is in the \
         self time of their callers. Armed: {}",
        told.join("; ")
    ))
}
