//! Reports losses, at the top of a report and on its last line.
//!
//! Loss is data. An incomplete report says so before the first number, with a remedy. Every report
//! ends with the counts, even if they are all zero.

use crate::ui::text::units::counted;
use ctrace_core::report::{LossReport, Report};

/// Returns warnings to show before the first number, each of a sentence or two. There are none if
/// the report is complete and exact. Losses come first.
pub(crate) fn warnings(report: &Report) -> Vec<String> {
    let loss = &report.loss;
    let mut out = Vec::new();
    if loss.events > 0 {
        let (were, they) = if loss.events == 1 { ("was", "it") } else { ("were", "they") };
        out.push(format!(
            "warning: {} {were} lost because a ring was full; the calls {they} belonged to are \
             counted as untimed or are missing. Try a larger --ring-size, or trace fewer \
             functions (-f, -x).",
            counted(loss.events, "event", "events"),
        ));
    }
    if loss.late > 0 {
        out.push(format!(
            "warning: {} came too late to be put in order: the active, innermost and tracked times \
             leave them out. The machine is overloaded: trace fewer functions (-f, -x).",
            counted(loss.late, "event", "events"),
        ));
    }
    if loss.decode_errors > 0 {
        out.push(format!(
            "warning: {} could not be decoded: a damaged recording, marker buffers that the target \
             has written over or keeps from being read, or a fault of ctrace. If it is none of the \
             others, please report it with the output of `ctrace doctor`.",
            counted(loss.decode_errors, "record", "records"),
        ));
    }
    if loss.payloads > 0 {
        out.push(format!(
            "warning: the values beside {} are missing. Their times and counts are complete. Try a \
             larger --ring-size.",
            counted(loss.payloads, "call", "calls"),
        ));
    }
    if report.counted {
        out.push(COUNTED.to_owned());
    } else if report.of_fleet {
        out.push(OF_FLEET.to_owned());
    } else if report.approximate {
        out.push(
            "approximate: percentiles are within 0.1 %, and times of the center are not known. \
             A larger --spool, or `ctrace record`, keeps every call for exact numbers."
                .to_owned(),
        );
    }
    out
}

/// Said where calls were counted without an event of each.
const COUNTED: &str = "counted in the kernel (--aggregate): percentiles are within 3.3 %, and numbers that \
    need single calls are missing. Without --aggregate the numbers are exact.";

/// Said of the sums of a fleet.
const OF_FLEET: &str = "approximate: the tables of a fleet have sums and histograms, so percentiles are within 3.2 %. \
    Counts, totals and means are exact.";

/// Returns the last line of every report and export: losses first, then calls without a duration.
pub fn loss_line(loss: &LossReport) -> String {
    let lost = [
        (loss.events, "event", "events", "lost"),
        (loss.late, "event", "events", "too late"),
        (loss.decode_errors, "record", "records", "unreadable"),
        (loss.unreadable_calls, "call", "calls", "in damaged parts"),
        (loss.unreadable_bytes, "byte", "bytes", "damaged"),
        (loss.payloads, "call", "calls", "without their values"),
    ];
    let lost = lost.into_iter().filter(|(n, ..)| *n > 0);
    let mut parts: Vec<_> =
        lost.map(|(n, one, many, how)| format!("{} {how}", counted(n, one, many))).collect();
    if parts.is_empty() {
        parts.push("no events lost".to_owned());
    }
    let calls = [
        (loss.ended_unseen(), "ended unseen"),
        (loss.calls_open, "still running"),
        (loss.calls_headless, "began before tracing"),
    ];
    let calls = calls.into_iter().filter(|(n, _)| *n > 0);
    parts.extend(calls.map(|(n, how)| format!("{} {how}", counted(n, "call", "calls"))));
    parts.join("; ")
}

/// Returns whether the numbers miss something that happened.
pub(crate) fn is_damaged(loss: &LossReport) -> bool {
    loss.events > 0 || loss.late > 0 || loss.decode_errors > 0 || loss.is_damage()
}
