//! The report of a recording: the same for `ctrace report` and for a range of `ctrace ui`.

use ctrace_core::{
    engine::ReportMeta,
    recording::{
        Recording,
        replay::{Query, meta_of, report_with},
    },
    report::{Extras, Report},
    units::FuncId,
};

/// The percentage of calls that the center leaves out at each end, unless `--center` says another.
pub(crate) const CENTER: f64 = 1.0;

/// Returns the report of the calls that a query selects, with the functions that it asks for.
pub(crate) fn report_of(
    recording: &Recording,
    query: &Query,
    center: f64,
    extras: Extras,
) -> Report {
    let meta = ReportMeta { extras, ..meta_of(recording, center) };
    let mut report = report_with(recording, query, meta);
    report.leave_out(|function| !is_asked(recording, query, function));
    report
}

/// Returns whether the report would contain calls of the function.
fn is_asked(recording: &Recording, query: &Query, function: usize) -> bool {
    let is_chosen = query.functions.as_ref().is_none_or(|chosen| chosen[function]);
    let unarmed = recording.end().map_or(&[][..], |end| &end.unarmed);
    is_chosen && unarmed.binary_search(&FuncId(function as u32)).is_err()
}
