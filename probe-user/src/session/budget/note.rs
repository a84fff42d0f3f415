//! The note on a budget for the reader of a report.

use crate::ui::units;
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
            let name = &function.name;
            let armed = sampled.armed_percent;
            let calls = match (sampled.calls, sampled.calls_error) {
                (Some(calls), Some(error)) => {
                    let (calls, error) = (units::count(calls), units::count(error));
                    format!("about {calls} ± {error} calls in all")
                }
                _ => "calls in all not known".to_owned(),
            };
            format!("{name} {armed:.2} % of the time ({calls})")
        })
        .collect();
    if sampled.len() > NAMED {
        told.push(format!("{} more", sampled.len() - NAMED));
    }
    Some(format!(
        "to keep within the budget of {percent} % of the target's CPU time, these were probed for a \
         part of the time only. The tables show what was seen then; outside of it their time is in \
         the self time of their callers: {}",
        told.join("; ")
    ))
}
