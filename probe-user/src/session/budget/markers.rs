//! The cost of markers that are on, by what they write. A marker is no trap, so nothing of it is
//! calibrated: these are the measured times in the README of the marker crate, rounded.

use crate::session::plan::{Planned, Sites};
use ctrace_core::{function::FunctionInfo, marker::Carried, points::PointShape, units::Nanos};

const SCOPE: Nanos = Nanos(25);
const POINT: Nanos = Nanos(15);
/// The time that a number adds.
const NUMBER: Nanos = Nanos(3);
/// The time that a text of some 32 bytes with a number in it adds.
const TEXT: Nanos = Nanos(45);

/// The cost of a marker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkerCost {
    is_point: bool,
    carried: Carried,
}

impl MarkerCost {
    pub(crate) fn new(is_point: bool, carried: Carried) -> Self {
        Self { is_point, carried }
    }

    /// Returns the time of a whole call, or of a point.
    pub(crate) fn call(self) -> Nanos {
        let alone = if self.is_point { POINT } else { SCOPE };
        alone.saturating_add(self.values())
    }

    /// Returns the part of a call that its duration contains: half of it, and its values, as they are
    /// written after the start was read. A point has no duration.
    pub(super) fn inside(self) -> Nanos {
        match self.is_point {
            true => Nanos::ZERO,
            false => Nanos(SCOPE.0 / 2).saturating_add(self.values()),
        }
    }

    /// Returns by how much the cost may be wrong. A text may be fixed, or long.
    pub(super) fn error(self) -> Nanos {
        let call = self.call();
        if self.carried.has_text { call } else { Nanos(call.0 / 10) }
    }

    /// Describes it for users.
    pub(crate) fn text(self) -> String {
        format!("marker: free while off, about {} ns while on", self.call().0)
    }

    fn values(self) -> Nanos {
        let text = if self.carried.has_text { TEXT } else { Nanos::ZERO };
        Nanos(NUMBER.0 * u64::from(self.carried.numbers)).saturating_add(text)
    }
}

/// Returns the cost of a planned marker. It writes a message's text and a plot's number whether ctrace
/// reads them or not.
pub(super) fn of(planned: &Planned) -> MarkerCost {
    let mut carried = Carried::of(&planned.info.values);
    match planned.info.point {
        Some(PointShape::Message { .. }) => carried.has_text = true,
        Some(PointShape::Plot) => carried.numbers = carried.numbers.max(1),
        Some(PointShape::Frame | PointShape::Other) | None => {}
    }
    carried.has_text |= matches!(planned.sites, Sites::Marker { is_named_late: true, .. });
    MarkerCost::new(planned.info.point.is_some(), carried)
}

/// Returns the number of events of a call of a marker.
pub(super) fn events(info: &FunctionInfo) -> u64 {
    if info.point.is_some() { 1 } else { 2 }
}

/// Returns the cost of one event of a marker of which only the engine knows.
pub(super) fn event(info: &FunctionInfo) -> Nanos {
    Nanos(info.probe.map_or(SCOPE, |cost| cost.call_ns).0 / events(info))
}

#[cfg(test)]
mod tests {
    use super::super::costs::{Costs, HitCosts};
    use super::*;
    use ctrace_core::function::{FunctionKind, ProbeCost, ValueInfo, ValueKind};

    fn planned(point: Option<PointShape>, values: &[ValueKind], is_named_late: bool) -> Planned {
        let values = values.iter().map(|kind| ValueInfo::new("value", *kind)).collect();
        let info = FunctionInfo {
            kind: FunctionKind::Marker,
            point,
            values,
            ..FunctionInfo::new("marker", "program")
        };
        Planned::new(info, Sites::Marker { sites: Vec::new(), is_named_late })
    }

    #[test]
    fn a_point_costs_one_event_and_is_in_no_duration_of_its_own() {
        use ValueKind::{Float, LongText, Unsigned};
        let message = Some(PointShape::Message { level: None });
        let hits = HitCosts::default();
        for (planned, call, inside, error, event) in [
            (planned(None, &[], false), 25, 12, 2, 12),
            (planned(None, &[Unsigned, Float], false), 31, 18, 3, 15),
            (planned(None, &[], true), 70, 57, 70, 35),
            (planned(Some(PointShape::Frame), &[], false), 15, 0, 1, 15),
            (planned(Some(PointShape::Plot), &[Unsigned], false), 18, 0, 1, 18),
            (planned(message, &[LongText], false), 60, 0, 60, 60),
            // Nobody reads their values.
            (planned(Some(PointShape::Plot), &[], false), 18, 0, 1, 18),
            (planned(message, &[], false), 60, 0, 60, 60),
        ] {
            let ProbeCost { call_ns, inside_ns, error_ns, .. } = hits.probe(&planned);
            let seen = (call_ns.0, inside_ns.0, error_ns.0, hits.event(&planned).cost().0);
            assert_eq!(seen, (call, inside, error, event), "{:?}", planned.info);
        }
    }

    #[test]
    fn names_that_come_with_events_cost_as_much_as_their_marker() {
        let mut costs = Costs::new(HitCosts::default());
        let named = |cost: Option<u64>, point| {
            let probe = cost.map(|ns| ProbeCost { call_ns: Nanos(ns), ..ProbeCost::default() });
            FunctionInfo { probe, ..planned(point, &[], false).info }
        };
        let all =
            [named(Some(70), None), named(None, None), named(Some(18), Some(PointShape::Plot))];
        assert!(costs.know(&all));
        let each = [0, 1, 2].map(|id| costs.of_function(id, 2).0);
        assert_eq!(each, [70, 24, 36]);
    }
}
