//! Views in a locale without Unicode: each character of ctrace's own has a likeness.

use super::{WIDE, fixture, sound, view};
use ctrace_user::testing::ui::{Style, ViewName};

#[test]
fn no_character_of_ctrace_is_unknown_to_ascii() {
    let report = fixture::typical();
    for name in ViewName::all() {
        let text = sound(&report, &view(&name.to_string()), &Style { ascii: true, ..WIDE });
        assert!(text.is_ascii() && !text.contains('?'), "{name}:\n{text}");
    }
}

/// Percentiles stand beside the bars of a histogram.
#[test]
fn a_percentile_is_marked_at_its_bar() {
    let text = sound(&fixture::typical(), &view("hist"), &Style { ascii: true, ..WIDE });
    assert!(text.contains("< p50 "), "{text}");
}
