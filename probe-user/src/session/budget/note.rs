//! The note on a budget for the reader of a report.

use super::sampling::FEWEST_WINDOWS;
use crate::ui::text::units;
use ctrace_core::report::{FunctionReport, Report, SampledReport};

/// The number of functions that the note names.
const NAMED: usize = 5;

/// The words in front of the budget's percentage.
const BEGIN: &str = "to keep within the budget of ";

/// Makes the note of a report anew, if it has one: that of a sum of intervals is of the last one.
pub(crate) fn renew_note(report: &mut Report) {
    let percent = |note: &String| note.strip_prefix(BEGIN)?.split_once(" %")?.0.parse().ok();
    let found = report.notes.iter().enumerate().find_map(|(at, note)| Some((at, percent(note)?)));
    if let Some((at, percent)) = found
        && let Some(note) = sampled_note(report, percent)
    {
        report.notes[at] = note;
    }
}

/// Returns a note for tables on functions that were armed for a part of the time.
pub(crate) fn sampled_note(report: &Report, percent: f64) -> Option<String> {
    let mut sampled: Vec<(&FunctionReport, SampledReport)> =
        report.functions.iter().filter_map(|f| Some((f, f.sampled?))).collect();
    if sampled.is_empty() {
        return None;
    }
    // By the calls that were seen: not all functions have an estimate.
    sampled.sort_by_key(|(function, _)| std::cmp::Reverse(function.calls));
    let mut told = Vec::new();
    let mut without: Vec<(String, Vec<String>)> = Vec::new();
    for (function, sampled) in sampled.iter().take(NAMED) {
        let armed = format!("{} {:.2} %", function.name, sampled.armed_percent);
        match estimate(function, sampled) {
            Ok(estimate) => told.push(format!("{armed} ({estimate})")),
            Err(reason) => match without.iter_mut().find(|(other, _)| *other == reason) {
                Some((_, list)) => list.push(armed),
                None => without.push((reason, vec![armed])),
            },
        }
    }
    // Many share a reason: it is said once.
    told.extend(without.into_iter().map(|(reason, list)| match &list[..] {
        [one] => format!("{one} (no estimate: {reason})"),
        many => format!("{} (each: no estimate: {reason})", many.join(", ")),
    }));
    if sampled.len() > NAMED {
        told.push(format!("{} more", sampled.len() - NAMED));
    }
    Some(format!(
        "{BEGIN}{percent} % of the target's CPU time, these functions were \
         armed for a part of the time. Their rows show that part; the rest of their time is in the \
         self time of their callers. Armed: {}",
        told.join("; ")
    ))
}

/// Returns how many calls there were in all, or why that is not known.
fn estimate(function: &FunctionReport, sampled: &SampledReport) -> Result<String, String> {
    match (sampled.calls, sampled.calls_error) {
        (Some(calls), Some(error)) => {
            let (calls, error) = (units::count(calls), units::count(error));
            Ok(format!("about {calls} ± {error} calls in all"))
        }
        _ if sampled.windows < FEWEST_WINDOWS => {
            let windows = units::counted(sampled.windows, "window", "windows");
            Err(format!("{windows} of the {FEWEST_WINDOWS} it needs"))
        }
        // A language announces all of its methods by the same probes.
        _ if function.joined_by_order => {
            Err("its windows differ too much, probes took most of them, \
                                               or it shares its probes with other methods"
                .to_owned())
        }
        _ => Err("its windows differ too much, or probes took most of them".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctrace_core::engine::{Engine, EngineConfig, ReportMeta};
    use ctrace_core::function::FunctionInfo;
    use ctrace_core::units::Nanos;

    #[test]
    fn a_reason_that_functions_share_is_said_once() {
        let mut engine = Engine::new(EngineConfig::default());
        for name in ["a", "b", "c", "d", "e", "f"] {
            engine.add_function(FunctionInfo::new(name, "server"));
        }
        let mut report = engine.report(Nanos(1), ReportMeta::default());
        let sampled = |windows, calls: Option<u64>| SampledReport {
            armed_ns: Nanos(1),
            armed_percent: 0.82,
            windows,
            calls,
            calls_error: calls,
            total_ns: None,
            active_ns: None,
        };
        let all = [(0, None), (9, Some(7)), (0, None), (9, None), (1, None), (9, None)];
        for (at, (windows, calls)) in all.into_iter().enumerate() {
            report.functions[at].calls = 10 - at as u64;
            report.functions[at].sampled = Some(sampled(windows, calls));
        }
        let of_interval = sampled_note(&report, 1.5).expect("a note");
        report.notes = vec!["another".into(), of_interval.replace("0.82", "0.41")];
        renew_note(&mut report);
        let [other, note] = &report.notes[..] else { panic!("two notes") };
        assert!(other == "another" && note.contains("the budget of 1.5 %"), "{note}");
        let told = note.split_once("Armed: ").expect("the functions").1;
        assert_eq!(
            told,
            "b 0.82 % (about 7 ± 7 calls in all); a 0.82 %, c 0.82 % (each: no estimate: 0 \
             windows of the 4 it needs); d 0.82 % (no estimate: its windows differ too much, or \
             probes took most of them); e 0.82 % (no estimate: 1 window of the 4 it needs); 1 more"
        );
    }
}
