//! Decides which calls the eBPF programs leave out, before they are loaded. The others are left to the
//! engine, whose numbers are the same.

use crate::{
    bpf::Thrift,
    session::{plan::Planner, spec::TraceSpec},
};
use ctrace_core::units::Nanos;

/// Returns which calls need no events. The programs do not know the names of threads. A budget looks at
/// the events of all calls. Entries cannot be held where other events of a thread could come before them.
/// Where calls are counted without events, short ones are left out when they end.
pub(super) fn thrift(spec: &TraceSpec, planner: &Planner) -> Option<Thrift> {
    let TraceSpec { most, filter, probes, .. } = spec;
    if probes.budget.is_some() || !filter.threads.is_empty() {
        return None;
    }
    if probes.aggregate {
        return Thrift::within(filter.max_depth, Nanos::ZERO, most.max_functions);
    }
    let is_plain = !planner.asks_for_usdt()
        && !planner.asks_for_markers()
        && !planner.asks_for_conditions()
        && !probes.waits;
    let shortest = if is_plain { filter.min_duration } else { Nanos::ZERO };
    Thrift::within(filter.max_depth, shortest, most.max_functions)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{run::setup::planner, spec::SelectSpec};
    use ctrace_core::filter::{Filter, ThreadFilter};

    /// Returns the depth and the duration, in milliseconds, below which calls of a selection make events.
    fn limits(change: impl FnOnce(&mut TraceSpec)) -> Option<(u32, u64)> {
        let select = SelectSpec { functions: vec!["work".to_owned()], ..SelectSpec::default() };
        let filter =
            Filter { max_depth: Some(3), min_duration: Nanos::from_millis(5), ..Filter::default() };
        let mut spec = TraceSpec { select, filter, ..TraceSpec::default() };
        change(&mut spec);
        let planner = planner(&spec.select, spec.most, spec.probes.returns).expect("patterns");
        let thrift = thrift(&spec, &planner)?;
        Some((thrift.most_nested, thrift.shortest.0 / 1_000_000))
    }

    #[test]
    fn both_kinds_of_calls_are_left_out_where_nothing_else_is_asked_for() {
        assert_eq!(limits(|_| {}), Some((3, 5)));
        assert_eq!(limits(|spec| spec.probes.aggregate = true), Some((3, 0)));
        assert_eq!(limits(|spec| spec.probes.budget = Some(1.0)), None);
        assert_eq!(limits(|spec| spec.filter = Filter::default()), None);
    }

    /// An event of a USDT probe does not deliver the entries that are held of its thread.
    #[test]
    fn no_entry_is_held_beside_usdt_probes_and_their_pairs() {
        assert_eq!(limits(|spec| spec.select.usdt.push("*:*".to_owned())), Some((3, 0)));
        let pair = "svc:begin,svc:end".to_owned();
        assert_eq!(limits(|spec| spec.select.pairs.push(pair)), Some((3, 0)));
        assert_eq!(limits(|spec| spec.select.markers.push("*".to_owned())), Some((3, 0)));
    }

    /// A call counts by the name that its thread has when it begins.
    #[test]
    fn nothing_is_left_out_by_programs_where_threads_are_chosen() {
        let threads = ThreadFilter::new("worker");
        assert_eq!(limits(|spec| spec.filter.threads.push(threads)), None);
    }
}
