//! The part of measured times that is the cost of probes.
//!
//! A call contains a part of the cost of its own probes, and the whole cost of the probes of all
//! calls inside it. So the path tree tells how much of a function's times its probes took.
//!
//! A measured cost differs from the true one by a tenth or so, that of a single step by half: it
//! depends on what else the machine does. Probes that are hit rarely cost more ([`super::cold`]). What is left
//! of a time is told only if it is at least twice what it may be wrong by.
//!
//! Threads that wait for a processor wait longer by what probes take there, be it in other threads. A
//! sum of times may be wrong by that, too; of most single calls it is no part.
//!
//! Where return addresses are put back while a call is open, nothing tells how long that takes. The time
//! in which it happened may be nothing else, so it counts as an error.

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
    /// The amount by which `total_ns` here may be wrong. JSON of before lacks it.
    #[serde(default)]
    pub total_error_ns: Nanos,
    /// The same of `self_ns`.
    #[serde(default)]
    pub self_error_ns: Nanos,
    /// The part of `total_error_ns` that is waiting for processors on which probes run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub queue_error_ns: Nanos,
    /// The part of a usual call that is: of its own probes, and of calls that each call makes inside, on
    /// average at least.
    #[serde(skip)]
    pub usual_ns: Nanos,
}

fn is_zero(ns: &Nanos) -> bool {
    *ns == Nanos::ZERO
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
            total_error_ns: Nanos::saturating_add(
                self.cost_error().since(earlier.cost_error()),
                self.queue_error_ns.since(earlier.queue_error_ns),
            ),
            self_error_ns: self.self_error_ns.since(earlier.self_error_ns),
            queue_error_ns: self.queue_error_ns.since(earlier.queue_error_ns),
            ..self
        }
    }

    /// Returns by how much the cost in the total may be wrong: it is never known better than to a
    /// tenth.
    pub(super) fn total_error(&self) -> Nanos {
        self.total_error_ns.max(Nanos(self.total_ns.0 / 10))
    }

    /// Returns the same for the time in which its threads had a processor.
    pub(super) fn running_error(&self) -> Nanos {
        self.cost_error().max(Nanos(self.total_ns.0 / 10))
    }

    fn cost_error(&self) -> Nanos {
        self.total_error_ns.since(self.queue_error_ns)
    }

    pub(super) fn self_error(&self) -> Nanos {
        self.self_error_ns.max(Nanos(self.self_ns.0 / 10))
    }

    /// Adds the times of the following stretch.
    pub(super) fn add(&mut self, later: &Self) {
        self.total_ns = self.total_ns.saturating_add(later.total_ns);
        self.self_ns = self.self_ns.saturating_add(later.self_ns);
        self.total_error_ns = self.total_error_ns.saturating_add(later.total_error_ns);
        self.self_error_ns = self.self_error_ns.saturating_add(later.self_error_ns);
        self.queue_error_ns = self.queue_error_ns.saturating_add(later.queue_error_ns);
    }

    /// Adds what threads waited for processors while these probes ran.
    fn add_queues(&mut self, times: ProcessorTimes) {
        let waited = |probes: Nanos| times.waited_beside(probes);
        self.queue_error_ns = waited(self.total_ns);
        self.total_error_ns = self.total_error_ns.saturating_add(self.queue_error_ns);
        self.self_error_ns = self.self_error_ns.saturating_add(waited(self.self_ns));
    }
}

/// How long the target's threads had a processor, and how long they waited for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorTimes {
    pub used_ns: Nanos,
    pub waited_ns: Nanos,
}

impl ProcessorTimes {
    pub fn plus(self, other: Self) -> Self {
        Self {
            used_ns: self.used_ns.saturating_add(other.used_ns),
            waited_ns: self.waited_ns.saturating_add(other.waited_ns),
        }
    }

    pub fn since(self, earlier: Self) -> Self {
        Self {
            used_ns: self.used_ns.since(earlier.used_ns),
            waited_ns: self.waited_ns.since(earlier.waited_ns),
        }
    }

    /// Returns how long its threads waited on average for each such piece of processor time.
    pub(super) fn waited_beside(self, used: Nanos) -> Nanos {
        let waited = u128::from(self.waited_ns.0) * u128::from(used.0);
        let waited = waited.checked_div(u128::from(self.used_ns.0)).unwrap_or(0);
        Nanos(u64::try_from(waited).unwrap_or(u64::MAX))
    }
}

/// The cost of probes in the times of a path.
#[derive(Clone, Copy, Default)]
pub(super) struct PathCost {
    /// The part of its total: of its own probes, and of all calls inside.
    pub(super) total: CostSum,
    /// The part of its self time.
    pub(super) own_time: CostSum,
    /// The part of its total that calls have which each call of it makes usually.
    usual: Nanos,
}

/// Returns the cost of each path. Parents come before their children in `paths`.
pub(super) fn costs_of(
    functions: &[FunctionReport],
    paths: &[PathReport],
    doubts: &[u64],
) -> Vec<PathCost> {
    // Of the calls inside, until the path itself is looked at.
    let mut costs = vec![PathCost::default(); paths.len()];
    for (at, path) in paths.iter().enumerate().rev() {
        let probes = functions.get(path.function).and_then(|row| row.probes);
        let cost = probes.map_or_else(ProbeCost::default, |probes| probes.cost);
        let part = |ns: Nanos| CostSum::of(ns, &cost, path.calls, doubts[at]);
        let [all, own] = [cost.call_ns, cost.inside_ns].map(part);
        let PathCost { total: inside, own_time: outside, usual } = costs[at];
        let usual_of = |own: Nanos| usual.saturating_add(own);
        let (total, own_time) = (inside.plus(own), outside.plus(own));
        costs[at] = PathCost { total, own_time, usual: usual_of(own.ns) };
        if let Some(parent) = path.parent.filter(|parent| *parent < at) {
            let around = &mut costs[parent];
            around.own_time = around.own_time.plus(part(cost.call_ns.since(cost.inside_ns)));
            around.total = around.total.plus(inside).plus(all);
            if path.calls >= paths[parent].calls {
                around.usual = around.usual.saturating_add(usual_of(all.ns));
            }
        }
    }
    costs
}

/// Fills in the cost of probes of all rows. Parents come before their children in `paths`, whose costs
/// `doubts` tells of. `times` are those of the target.
pub(super) fn fill(
    functions: &mut [FunctionReport],
    paths: &[PathReport],
    doubts: &[u64],
    times: ProcessorTimes,
) {
    let mut sums = vec![(Nanos::ZERO, 0_u64); functions.len()];
    for (path, cost) in paths.iter().zip(costs_of(functions, paths, doubts)) {
        if let Some(probes) = functions.get_mut(path.function).and_then(|row| row.probes.as_mut()) {
            let PathCost { total, own_time, usual } = cost;
            probes.total_ns = probes.total_ns.saturating_add(total.ns);
            probes.total_error_ns = probes.total_error_ns.saturating_add(total.error);
            probes.self_ns = probes.self_ns.saturating_add(own_time.ns);
            probes.self_error_ns = probes.self_error_ns.saturating_add(own_time.error);
            let (sum, calls) = &mut sums[path.function];
            *sum = sum.saturating_add(usual);
            *calls = calls.saturating_add(path.calls);
        }
    }
    for (row, (sum, calls)) in functions.iter_mut().zip(sums) {
        if let Some(probes) = &mut row.probes {
            probes.usual_ns = Nanos(sum.0.checked_div(calls).unwrap_or(0));
            probes.add_queues(times);
        }
    }
}

/// The cost of the probes of some calls.
#[derive(Clone, Copy, Default)]
pub(super) struct CostSum {
    pub(super) ns: Nanos,
    /// The amount by which it may be wrong.
    pub(super) error: Nanos,
}

impl CostSum {
    /// Returns a part of the cost of so many calls. It may be higher by that many `percent`.
    fn of(part: Nanos, cost: &ProbeCost, calls: u64, percent: u64) -> Self {
        let share = u128::from(cost.error().0) * u128::from(part.0);
        let error = share.checked_div(u128::from(cost.call_ns.0)).unwrap_or(0) as u64;
        let cold = part.0.saturating_mul(percent) / 100;
        let times = |ns: u64| Nanos(ns.saturating_mul(calls));
        Self { ns: times(part.0), error: times(error.saturating_add(cold)) }
    }

    fn plus(self, other: Self) -> Self {
        Self { ns: self.ns.saturating_add(other.ns), error: self.error.saturating_add(other.error) }
    }
}

impl FunctionReport {
    /// Returns the cost of its probes if that was measured on this machine.
    pub fn measured_probes(&self) -> Option<ProbeTimes> {
        self.probes.filter(|probes| probes.cost.measured)
    }

    /// Returns whether more than half of its self time is certainly no work.
    pub fn is_mostly_idle(&self) -> bool {
        self.idle_ns.0 > self.self_ns.0 / 2
    }

    /// Returns whether nearly all of it is: the rest may still be more than the work of others.
    pub fn hardly_works(&self) -> bool {
        self.idle_ns.0 > self.self_ns.0 / 10 * 9
    }

    /// Returns whether at least half of its total is the cost of probes, or at least half of its median
    /// is that of a usual call. A few long calls hide it in the total, but where it is less than a tenth
    /// of that, they are the function's time. How the probes of calls inside are
    /// spread over its calls is not known: the one in the middle may have none of those that are fewer than
    /// its calls.
    pub fn is_mostly_probes(&self) -> bool {
        let probes = self.probes.map_or(Nanos::ZERO, |probes| probes.total_ns);
        let own = self.probes.map_or(Nanos::ZERO, |probes| {
            // Reports that were read have no usual call.
            probes.usual_ns.max(probes.cost.inside_ns)
        });
        let is_mostly =
            |probes: Nanos, time: Nanos| probes.0 > 0 && probes.0.saturating_mul(2) >= time.0;
        let median = self.durations.p50_ns.filter(|_| self.timed > 0);
        let is_little = probes.0.saturating_mul(10) < self.total_ns.0;
        is_mostly(probes, self.total_ns)
            || !is_little && median.is_some_and(|median| is_mostly(own, median))
    }
}
