//! Counts the calls of a session by a value of theirs, for the metrics of its target (`by`).

use super::{config::Target, hub::Hub, ids::SessionId, metrics::by_value::CallsOfValue};
use crate::{session::keep::split::Split, target::select::pattern::Pattern};
use ctrace_core::recording::ValueSums;
use std::sync::Arc;

/// Returns the way of a session's calls to the metrics, if its target asks for it and somebody reads them.
pub(super) fn asked(target: &Arc<Target>, id: SessionId, hub: &Arc<Hub>) -> Option<Split> {
    let by = target.by.as_ref().filter(|_| hub.has_metrics())?;
    let pattern = Pattern::parse(&by.function).ok()?;
    let sums = ValueSums::new(&by.argument, move |function| pattern.matches_recorded(function));
    let (target, hub) = (Arc::clone(target), Arc::clone(hub));
    let deliver = move |sums: Option<&mut ValueSums>| {
        let Some(by) = &target.by else { return };
        let Some(sums) = sums else { return hub.metrics().lose_values(id) };
        let calls = sums.drain();
        let calls = calls.map(|(function, value, sum)| CallsOfValue::new(function, value, sum));
        let calls = calls.collect();
        hub.metrics().observe_values(id, &by.argument, target.by_values, calls);
    };
    Some(Split::new(sums, Box::new(deliver)))
}
