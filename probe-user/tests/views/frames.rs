//! The view of frames between marks.

use super::*;
use ctrace_core::report::MarkedFramesReport;

fn with_marks(frames: u64, unknown: u64) -> Report {
    let mut report = fixture::typical();
    let of = report.frames.as_mut().expect("the fixture has frames");
    of.frames = frames;
    let known = |micros: u64| (frames > 0).then_some(Nanos(micros * 1_000));
    of.marks = Some(MarkedFramesReport {
        mean_ns: known(17_250),
        p50_ns: known(16_600),
        p99_ns: known(61_300),
        max_ns: known(87_000),
        unknown,
        left_out_calls: u64::from(frames == 0) * 3,
    });
    if frames == 0 {
        (of.over_budget, of.typical_frames) = (Some(0), 0);
        of.worst.clear();
        of.parts.clear();
    }
    report
}

#[test]
fn frames_between_marks_have_their_own_numbers() {
    let text = check("frames_of_marks", &with_marks(37, 1_204), &view("frames"), &WIDE);
    assert!(text.contains("37 frames · mean 17.25 ms · p50 16.60 ms · p99 61.30 ms"), "{text}");
    assert!(text.contains("1,204 more are not counted: events are missing near them"), "{text}");
}

#[test]
fn where_all_frames_are_unknown_none_is_shown() {
    let text = check("frames_all_unknown", &with_marks(0, 1), &view("frames"), &NARROW);
    assert!(text.contains("1 more is not counted") && !text.contains("worst"), "{text}");
}
