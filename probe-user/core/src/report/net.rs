//! Times without the cost of probes ([`super::probes`]), of functions and of paths.
//!
//! A number of a row must not contradict another one of it: where only the most is told that a time can be, it
//! follows from all that bounds it.

use super::probes::{CostSum, costs_of};
use super::{FunctionReport, Report, cold};
use crate::units::Nanos;

/// A time without the cost of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Net {
    pub ns: Nanos,
    /// The amount by which it may be wrong.
    pub error: Nanos,
    /// The upper bound of the time, for one that is not known.
    pub most: Nanos,
}

impl Net {
    fn of(time: Nanos, probes: Nanos, error: Nanos) -> Self {
        let ns = time.since(probes);
        Self { ns, error, most: ns.saturating_add(error).min(time) }
    }

    /// Makes it wrong by that much more. Nothing is added to what it is at most.
    fn doubting(self, doubt: Nanos) -> Self {
        Self { error: self.error.saturating_add(doubt), ..self }
    }

    /// Makes its own time of a total a part of that, however costs were rounded. `is_all`: there is no other.
    fn part_of(self, total: Self, is_all: bool) -> Self {
        if is_all || self.ns > total.ns { total } else { self.within(Some(total)) }
    }

    /// Returns the time, unless it may be wrong by more than half of it.
    pub fn known(self) -> Option<Nanos> {
        (self.ns.0 >= self.error.0.saturating_mul(2)).then_some(self.ns)
    }

    /// Returns whether it may be wrong by more than a tenth.
    pub fn is_rough(self) -> bool {
        self.error.0.saturating_mul(10) > self.ns.0
    }

    /// Bounds it by a time that is as long or longer: where only the most is told, it is not above the most
    /// that the longer one can be. That is more than the number which is told of that one.
    fn within(self, longer: Option<Self>) -> Self {
        let most = |net: Self| net.known().map_or(net.most, |ns| ns.saturating_add(net.error));
        let bound = longer.map_or(self.most, most);
        Self { most: self.most.min(bound), ..self }
    }
}

/// The times of a path without the cost of probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetPath {
    pub total: Net,
    /// Its own time.
    pub own: Net,
}

impl Report {
    /// Returns the times of each path without the cost of probes; `None` where that is not measured.
    pub fn net_paths(&self) -> Vec<Option<NetPath>> {
        let times = self.target.processor.unwrap_or_default();
        let net = |time: Nanos, cost: CostSum| {
            let known = cost.error.saturating_add(times.waited_beside(cost.ns));
            Net::of(time, cost.ns, known.max(Nanos(cost.ns.0 / 10)))
        };
        let doubts = cold::doubts(&self.functions, &self.paths, &self.threads, self.duration_ns);
        let costs = costs_of(&self.functions, &self.paths, &doubts).into_iter();
        let paths = self.paths.iter().zip(costs).map(|(path, cost)| {
            let row = self.functions.get(path.function)?;
            row.measured_probes()?;
            // On which of its paths return addresses were put back is not known.
            let total = net(path.total_ns, cost.total).doubting(row.restored.total_ns);
            let own = net(path.self_ns, cost.own_time).doubting(row.restored.self_ns);
            Some(NetPath { total, own: own.part_of(total, path.self_ns == path.total_ns) })
        });
        paths.collect()
    }
}

impl FunctionReport {
    /// Returns the sum of its durations without the cost of probes. That cost is none of its waits.
    pub fn net_total(&self) -> Option<Net> {
        let probes = self.measured_probes()?;
        let net = Net::of(self.total_ns, probes.total_ns, probes.total_error())
            .doubting(self.restored.total_ns);
        let own = self.least_own_cost()?.0.saturating_mul(self.timed);
        let net = Net { most: net.most.min(self.total_ns.since(Nanos(own))).max(net.ns), ..net };
        let (Some(runnable), Some(blocked), Some(running)) =
            (self.split.runnable_ns, self.split.blocked_ns, self.unbounded_running())
        else {
            return Some(net);
        };
        let with_waits = |running: Nanos| {
            running.saturating_add(runnable).saturating_add(blocked).min(self.total_ns)
        };
        let ns = net.ns.max(with_waits(running.ns));
        Some(Net { ns, most: with_waits(running.most).max(ns), ..net })
    }

    /// Returns the part of the total in which its threads had a processor, without the cost of probes:
    /// these work. `None` also where waits are not told apart.
    pub fn net_running(&self) -> Option<Net> {
        self.unbounded_running().map(|running| running.within(self.net_total()))
    }

    /// Returns the same, not compared with the total.
    fn unbounded_running(&self) -> Option<Net> {
        let probes = self.measured_probes()?;
        let net = Net::of(self.split.running_ns?, probes.total_ns, probes.running_error());
        Some(net.doubting(self.restored.total_ns))
    }

    /// Returns its own time without the cost of probes. It is a part of the total, however costs
    /// were rounded.
    pub fn net_self(&self) -> Option<Net> {
        let probes = self.measured_probes()?;
        let own = Net::of(self.self_ns, probes.self_ns, probes.self_error())
            .doubting(self.restored.self_ns);
        Some(own.part_of(self.net_total()?, self.self_ns == self.total_ns))
    }

    /// Returns the mean duration without the cost of probes. Waits for processors are a part of it.
    pub fn net_mean(&self) -> Option<Net> {
        let error = self.measured_probes()?.total_error();
        let error = error.saturating_add(self.doubt_of(0));
        let error = Nanos(error.0 / self.calls.max(1));
        let mean = Net { error, ..self.net(self.durations.mean_ns)? }.within(self.net_max());
        let total = self.net_total().filter(|_| self.untimed == 0);
        let most = total.map_or(mean.most, |total| Nanos(total.most.0.div_ceil(self.calls.max(1))));
        Some(Net { most: mean.most.min(most), ..mean })
    }

    /// Returns the median less the mean cost of probes in a call.
    pub fn net_p50(&self) -> Option<Net> {
        self.net_percentile(self.durations.p50_ns, 500, self.net_p75())
    }

    /// Returns the 75th percentile less the same.
    pub fn net_p75(&self) -> Option<Net> {
        self.net_percentile(self.durations.p75_ns, 750, self.net_p90())
    }

    /// Returns the 90th percentile less the same.
    pub fn net_p90(&self) -> Option<Net> {
        self.net_percentile(self.durations.p90_ns, 900, self.net_p95())
    }

    /// Returns the 95th percentile less the same.
    pub fn net_p95(&self) -> Option<Net> {
        self.net_percentile(self.durations.p95_ns, 950, self.net_p99())
    }

    /// Returns a percentile of usual calls less the same. It is no more than a `higher` one.
    fn net_percentile(
        &self,
        duration: Option<Nanos>,
        per_mille: u64,
        higher: Option<Net>,
    ) -> Option<Net> {
        let fewer = self.timed.saturating_mul(1_000 - per_mille) / 1_000;
        let percentile = self.net(duration)?.doubting(self.doubt_of(fewer));
        Some(percentile.within(higher.or_else(|| self.net_p99())))
    }

    /// Returns the 99th percentile less the same.
    pub fn net_p99(&self) -> Option<Net> {
        let percentile = self.net_of_long(self.durations.p99_ns)?;
        let percentile = percentile.doubting(self.doubt_of(self.timed / 100));
        Some(percentile.within(self.net_p999()))
    }

    /// Returns the duration that all but one call in a thousand do not exceed, less the same.
    pub fn net_p999(&self) -> Option<Net> {
        let percentile = self.net_of_long(self.durations.p999_ns)?;
        let percentile = percentile.doubting(self.doubt_of(self.timed / 1_000));
        Some(percentile.within(self.net_max()))
    }

    /// Returns the longest duration less the same.
    pub fn net_max(&self) -> Option<Net> {
        Some(self.net_of_long(self.durations.max_ns)?.doubting(self.doubt_of(0)))
    }

    /// Returns the duration of rare calls less the same. Interrupts and other threads come into a call while
    /// its probes run as well as while it does: if that may be nearly all of the time, long calls may be long
    /// because of that.
    fn net_of_long(&self, duration: Option<Nanos>) -> Option<Net> {
        let net = self.net(duration)?;
        let probes = self.measured_probes()?;
        let total = Net::of(self.total_ns, probes.total_ns, probes.total_error());
        Some(if total.known().is_some() { net } else { net.doubting(net.most) })
    }

    /// Returns by how much timed calls may be wrong in which return addresses were put back, if these are
    /// more than `fewer`. Those that ended unseen are none of them.
    fn doubt_of(&self, fewer: u64) -> Nanos {
        let timed = self.restored.calls.saturating_sub(self.untimed);
        if timed > fewer { self.restored.total_ns } else { Nanos::ZERO }
    }

    /// Returns a call's duration without the cost of probes in a call on average: of its own, and
    /// of the calls inside it. This call may have had fewer inside it: at least, its own cost it.
    fn net(&self, duration: Option<Nanos>) -> Option<Net> {
        if (self.calls, self.timed, self.untimed) == (1, 1, 0) {
            // All of its times are the same one.
            return duration.and(self.net_total());
        }
        let probes = self.measured_probes()?;
        let in_a_call = |ns: Nanos| Nanos(ns.0 / self.calls.max(1));
        let (duration, error) = (duration?, in_a_call(probes.running_error()));
        let net = Net::of(duration, in_a_call(probes.total_ns), error);
        Some(Net { most: duration.since(self.least_own_cost()?), ..net })
    }

    /// Returns the part of each call that is the cost of its own probes at least.
    fn least_own_cost(&self) -> Option<Nanos> {
        let cost = self.measured_probes()?.cost;
        Some(cost.inside_ns.since(cost.error()))
    }
}

#[cfg(test)]
#[path = "net_tests.rs"]
mod tests;
