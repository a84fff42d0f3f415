//! Counts the calls of a session by a value of theirs (`by`), and its plots (`plots`), for the metrics of its
//! target.

use super::{
    config::Target,
    hub::Hub,
    ids::SessionId,
    metrics::{by_value::CallsOfValue, plots::NumbersOfPlot},
};
use crate::{
    session::keep::split::{Split, Splits},
    target::select::pattern::Pattern,
};
use ctrace_core::recording::{PlotSums, ValueSums};
use std::sync::Arc;

/// Returns the ways of a session's calls to the metrics that its target asks for, if somebody reads them.
pub(super) fn asked(target: &Arc<Target>, id: SessionId, hub: &Arc<Hub>) -> Splits {
    if !hub.has_metrics() {
        return Splits::default();
    }
    Splits { values: values(target, id, hub), plots: plots(target, id, hub) }
}

fn values(target: &Arc<Target>, id: SessionId, hub: &Arc<Hub>) -> Option<Split<ValueSums>> {
    let by = target.by.as_ref()?;
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

fn plots(target: &Target, id: SessionId, hub: &Arc<Hub>) -> Option<Split<PlotSums>> {
    let hub = Arc::clone(hub);
    let deliver = move |sums: Option<&mut PlotSums>| {
        let Some(sums) = sums else { return hub.metrics().lose_plots(id) };
        let numbers = sums.drain().map(|(plot, sum)| NumbersOfPlot::new(plot, sum)).collect();
        hub.metrics().observe_plots(id, numbers);
    };
    target.plots.then(|| Split::new(PlotSums::default(), Box::new(deliver)))
}
