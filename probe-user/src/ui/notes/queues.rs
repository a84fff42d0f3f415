//! Says that the target's threads waited for processors: the times of calls contain these waits.

use crate::ui::text::units::{Digits, time};
use ctrace_core::report::{FunctionReport, Report};
use ctrace_core::units::Nanos;

/// The least time that is worth a word.
const LITTLE: Nanos = Nanos::from_millis(100);
/// The part of the time with a processor up to which waits are usual.
const USUAL: u64 = 4;

/// Returns a sentence if threads waited much, and the report does not tell in which functions.
pub(crate) fn waited(report: &Report) -> Option<String> {
    let times = report.target.processor.filter(|_| report.part.is_none())?;
    let is_split = |it: &FunctionReport| it.wait.is_some() || it.split.running_ns.is_some();
    let tells_where = report.functions.iter().any(is_split);
    let is_much = times.waited_ns > LITTLE && times.waited_ns.0 > times.used_ns.0 / USUAL;
    (is_much && !tells_where).then(|| {
        format!(
            "The target's threads ran for {} and waited {} for a processor. Times contain these waits; \
             --cpu shows where they are.",
            time(times.used_ns, Digits::Short),
            time(times.waited_ns, Digits::Short),
        )
    })
}
