//! Reports how much an export, or a stream of lines, contains, and how it treats incomplete calls.

use crate::ui::notes::loss::loss_line;
use crate::ui::text::units::{Digits, counted, time};
use ctrace_core::{formats::Coverage, report::LossReport, units::Nanos};

/// Returns lines for stderr; the last one is the loss line.
pub(crate) fn remarks(told: &Coverage) -> Vec<String> {
    let mut out = gaps(told);
    if told.lost.ended_unseen() > 0 {
        out.push(format!(
            "{} unseen: they go up to the last event seen in them",
            counted(told.lost.ended_unseen(), "call ended", "calls ended"),
        ));
    }
    if told.lost.calls_open > 0 {
        out.push(format!(
            "{} marked as open: up to the end",
            counted(told.lost.calls_open, "call is", "calls are"),
        ));
    }
    let calls = counted(told.calls, "call", "calls");
    out.push(last_line(told, &format!("{calls} exported")));
    out
}

/// Returns the same of a stream that took `took`. Its lines, which are counted in `lines`, say
/// themselves how each call ended.
pub(crate) fn summary_of_lines(told: &Coverage, lines: &str, took: Nanos) -> Vec<String> {
    let mut out = gaps(told);
    out.push(last_line(told, &format!("{lines} in {}", time(took, Digits::Full))));
    out
}

fn last_line(told: &Coverage, what: &str) -> String {
    let lost = LossReport {
        unreadable_calls: told.unreadable_calls,
        unreadable_bytes: told.unreadable_bytes,
        ..told.lost
    };
    format!("{what}; {}", loss_line(&lost))
}

fn gaps(told: &Coverage) -> Vec<String> {
    let mut out = Vec::new();
    if told.unreadable_calls > 0 {
        out.push(format!(
            "warning: {} in damaged parts of the recording left out",
            counted(told.unreadable_calls, "call", "calls"),
        ));
    }
    if told.has_no_end {
        out.push(
            "warning: the recording was not ended; calls after its last whole chunk are missing"
                .to_owned(),
        );
    }
    if told.unreadable_bytes > 0 {
        out.push(format!(
            "warning: {} of the recording cannot be read, and the calls in them are missing",
            counted(told.unreadable_bytes, "byte", "bytes"),
        ));
    }
    if told.calls_without_path > 0 {
        out.push(format!(
            "{} on paths that were not recorded, because there are too many: only their functions \
             are known",
            counted(told.calls_without_path, "call", "calls"),
        ));
    }
    if told.filtered_calls > 0 {
        out.push(format!(
            "{} filtered out",
            counted(told.filtered_calls, "call was", "calls were"),
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctrace_core::report::LossReport;

    #[test]
    fn a_whole_recording_needs_one_line() {
        let told = Coverage { calls: 1_234, ..Coverage::default() };
        assert_eq!(remarks(&told), ["1,234 calls exported; no events lost"]);
    }

    #[test]
    fn everything_that_is_missing_is_said() {
        let lost =
            LossReport { events: 3, calls_untimed: 2, calls_open: 1, ..LossReport::default() };
        let told = Coverage {
            calls: 9,
            lost,
            filtered_calls: 1,
            calls_without_path: 5,
            unreadable_calls: 7,
            unreadable_bytes: 40,
            has_no_end: true,
            ..Coverage::default()
        };
        let text = remarks(&told).join("\n");
        for part in [
            "7 calls in damaged parts",
            "40 bytes of the recording cannot be read",
            "5 calls on paths that were not recorded",
            "1 call was filtered out",
            "2 calls ended unseen",
            "1 call is marked as open",
            "9 calls exported; 3 events lost",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }
}
