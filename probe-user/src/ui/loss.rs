//! Reports losses, at the top of a report and on its last line.
//!
//! Loss is data. An incomplete report says so before the first number, with a remedy. Every report
//! ends with the counts, even if they are all zero.

use super::units::{count, counted};
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
            "warning: {} came too late to be put in order; time a, time ae and time tracked leave \
             them out. The machine is overloaded: trace fewer functions (-f, -x).",
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
    if report.approximate {
        out.push(
            "approximate: percentiles are within 0.1 %, and times of the center are not known. \
             A larger --spool, or `ctrace record`, keeps every call for exact numbers."
                .to_owned(),
        );
    }
    out
}

/// Returns the last line of every report and export.
pub fn loss_line(loss: &LossReport) -> String {
    if *loss == LossReport::default() {
        return "loss: none".to_owned();
    }
    let mut line = format!(
        "loss: {}, {} late; calls: {} untimed, {} open, {} headless",
        counted(loss.events, "event", "events"),
        count(loss.late),
        count(loss.calls_untimed),
        count(loss.calls_open),
        count(loss.calls_headless),
    );
    if loss.decode_errors > 0 {
        line += &format!("; {}", counted(loss.decode_errors, "decode error", "decode errors"));
    }
    if loss.is_damage() {
        let (calls, bytes) = (loss.unreadable_calls, loss.unreadable_bytes);
        line += "; unreadable: ";
        line += &match (calls, bytes) {
            (0, _) => counted(bytes, "byte", "bytes"),
            (_, 0) => counted(calls, "call", "calls"),
            _ => [counted(calls, "call", "calls"), counted(bytes, "byte", "bytes")].join(", "),
        };
    }
    if loss.payloads > 0 {
        line += &format!("; {} lost", counted(loss.payloads, "payload", "payloads"));
    }
    line
}

/// Returns whether the numbers miss something that happened.
pub(crate) fn is_damaged(report: &Report) -> bool {
    let loss = &report.loss;
    loss.events > 0 || loss.late > 0 || loss.decode_errors > 0 || loss.is_damage()
}
