//! The part of measured times that is the cost of probes.
//!
//! A call contains a part of the cost of its own probes, and the whole cost of the probes of all
//! calls inside it. So the path tree tells how much of a function's times its probes took.

use super::{FunctionReport, PathReport};
use crate::function::ProbeCost;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// The cost of probes in the times of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeTimes {
    pub cost: ProbeCost,
    /// The part of `total_ns` that is the cost of probes, about.
    pub total_ns: Nanos,
    /// The part of `self_ns` that is, about.
    pub self_ns: Nanos,
}

impl ProbeTimes {
    /// Starts with no calls.
    pub fn of(cost: ProbeCost) -> Self {
        Self { cost, ..Self::default() }
    }

    /// Takes away an earlier stretch with which this one begins.
    pub fn since(self, earlier: Option<Self>) -> Self {
        let earlier = earlier.unwrap_or_default();
        Self {
            total_ns: self.total_ns.since(earlier.total_ns),
            self_ns: self.self_ns.since(earlier.self_ns),
            ..self
        }
    }

    /// Adds the times of the following stretch.
    pub(super) fn add(&mut self, later: &Self) {
        self.total_ns = self.total_ns.saturating_add(later.total_ns);
        self.self_ns = self.self_ns.saturating_add(later.self_ns);
    }
}

/// Fills in the cost of probes of all rows. Parents come before their children in `paths`.
pub(super) fn fill(functions: &mut [FunctionReport], paths: &[PathReport]) {
    let cost = |functions: &[FunctionReport], function: usize| {
        let probes = functions.get(function).and_then(|row| row.probes);
        probes.map_or_else(ProbeCost::default, |probes| probes.cost)
    };
    // By path: of the calls directly inside, and of all inside.
    let mut outside = vec![0_u64; paths.len()];
    let mut inside = vec![0_u64; paths.len()];
    for (at, path) in paths.iter().enumerate().rev() {
        let cost = cost(functions, path.function);
        let [all, own] = [cost.call_ns, cost.inside_ns].map(|ns| ns.0.saturating_mul(path.calls));
        if let Some(probes) = functions.get_mut(path.function).and_then(|row| row.probes.as_mut()) {
            let (total, own_time) =
                (inside[at].saturating_add(own), outside[at].saturating_add(own));
            probes.total_ns = Nanos(probes.total_ns.0.saturating_add(total));
            probes.self_ns = Nanos(probes.self_ns.0.saturating_add(own_time));
        }
        if let Some(parent) = path.parent.filter(|parent| *parent < at) {
            outside[parent] = outside[parent].saturating_add(all.saturating_sub(own));
            inside[parent] = inside[parent].saturating_add(inside[at]).saturating_add(all);
        }
    }
}

impl FunctionReport {
    /// Returns the sum of its durations without the cost of probes.
    pub fn net_total(&self) -> Option<Nanos> {
        let probes = self.measured_probes()?;
        less(self.total_ns, probes.total_ns)
    }

    /// Returns its own time without the cost of probes.
    pub fn net_self(&self) -> Option<Nanos> {
        let probes = self.measured_probes()?;
        less(self.self_ns, probes.self_ns)
    }

    /// Returns the cost of its probes if that was measured on this machine.
    pub fn measured_probes(&self) -> Option<ProbeTimes> {
        self.probes.filter(|probes| probes.cost.measured)
    }

    /// Returns a call's duration without the cost of probes in a call on average: of its own, and
    /// of the calls inside it.
    pub fn net(&self, duration: Option<Nanos>) -> Option<Nanos> {
        let probes = self.measured_probes()?;
        less(duration?, Nanos(probes.total_ns.0 / self.calls.max(1)))
    }

    /// Returns whether at least half of its time is the cost of probes.
    pub fn is_mostly_probes(&self) -> bool {
        let probes = self.probes.map_or(Nanos::ZERO, |probes| probes.total_ns);
        probes.0 > 0 && probes.0.saturating_mul(2) >= self.total_ns.0
    }
}

/// Returns what is left of a time. A measured cost is right to a tenth or so: a rest that is smaller
/// is not known.
fn less(time: Nanos, probes: Nanos) -> Option<Nanos> {
    let rest = time.since(probes);
    (rest.0 >= probes.0 / 10).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::FunctionInfo;

    fn path(function: usize, parent: Option<usize>, calls: u64) -> PathReport {
        PathReport {
            path: Vec::new(),
            parent,
            function,
            calls,
            open: 0,
            total_ns: Nanos::ZERO,
            self_ns: Nanos::ZERO,
            p50_ns: None,
            p90_ns: None,
            p99_ns: None,
            max_ns: None,
            histogram: None,
        }
    }

    fn row(call: u64, inside: u64) -> FunctionReport {
        let (call_ns, inside_ns) = (Nanos(call), Nanos(inside));
        let probe = Some(ProbeCost { call_ns, inside_ns, measured: true });
        let mut row = FunctionReport::new(&FunctionInfo { probe, ..FunctionInfo::new("f", "p") });
        (row.calls, row.total_ns, row.self_ns) = (10, Nanos(9_000), Nanos(5_000));
        row.durations.mean_ns = Some(Nanos(900));
        row
    }

    #[test]
    fn calls_inside_cost_all_of_their_probes_and_own_ones_a_part() {
        let mut rows = [row(100, 30), row(40, 25), row(6, 4)];
        let paths = [path(0, None, 2), path(1, Some(0), 10), path(2, Some(1), 30)];
        fill(&mut rows, &paths);
        let times = |row: &FunctionReport| row.probes.map(|it| (it.total_ns.0, it.self_ns.0));
        // 2·30 + 10·40 + 30·6, and 2·30 + 10·15; 10·25 + 30·6, and 10·25 + 30·2; 30·4 twice.
        assert_eq!(rows.each_ref().map(times), [(640, 210), (430, 310), (120, 120)].map(Some));
        assert_eq!(rows[0].net_total(), Some(Nanos(9_000 - 640)));
        assert_eq!(rows[0].net_self(), Some(Nanos(5_000 - 210)));
        assert_eq!(rows[1].net(rows[1].durations.mean_ns), Some(Nanos(900 - 43)));
    }

    #[test]
    fn a_rest_within_the_error_is_not_known_and_guesses_are_not_subtracted() {
        let mut rows = [row(4_000, 819)];
        fill(&mut rows, &[path(0, None, 10)]);
        assert!(rows[0].is_mostly_probes());
        assert_eq!(rows[0].net_total(), None);
        assert_eq!(rows[0].net(Some(Nanos(901))), Some(Nanos(82)));
        if let Some(probes) = &mut rows[0].probes {
            probes.cost.measured = false;
        }
        assert_eq!((rows[0].net_total(), rows[0].net(Some(Nanos(5)))), (None, None));
    }
}
