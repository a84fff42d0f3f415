//! The cost of a session's probes to the target, by the classes of their places.

use super::{
    calibrate::{self, Calibration},
    markers, remembered, single_steps,
};
use crate::{
    bpf,
    session::plan::{Planned, Sites},
    target::plan::{CostClass, ExitPlacement},
    ui,
};
use ctrace_core::{
    function::{FunctionInfo, FunctionKind, ProbeCost},
    units::Nanos,
};
use std::sync::OnceLock;

/// The time that reading the values of a call takes at most, mostly. It is not calibrated.
const READING: Nanos = Nanos(600);

/// The part of a trap that the kernel's clock tick counts as user time, about at most: ticks wait while
/// interrupts are off. It is measured on one virtual machine (docs/overhead.md).
const UNSEEN: Nanos = Nanos(250);
/// Where traps are dear because a hypervisor takes part in them, the part of their cost (one in so many)
/// that passes before the kernel itself runs: that is user time.
const UNSEEN_PART: u64 = 6;

/// A hit costs this many times as much, mostly at most, where the target has used the caches for
/// other things.
const COLD: u64 = 4;

/// The cost of hits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HitCosts {
    emulated: Nanos,
    single_step: Nanos,
    /// The cost that a return probe adds to an entry probe.
    return_probe: Nanos,
    /// The part of both that is between the time stamps of a call.
    inside: Nanos,
    /// True if they were measured on this machine.
    measured: bool,
    /// True if the single step was.
    step_is_measured: bool,
}

impl Default for HitCosts {
    /// Takes the middle of the ranges in docs/overhead.md.
    fn default() -> Self {
        Self {
            emulated: Nanos(530),
            single_step: single_steps::guess(),
            return_probe: Nanos(350),
            inside: Nanos(440),
            measured: false,
            step_is_measured: false,
        }
    }
}

impl HitCosts {
    /// Returns the costs that `ctrace doctor --calibrate` has left. Without them, measures them, which
    /// takes some seconds the first time.
    pub(crate) fn measured() -> Self {
        static COSTS: OnceLock<HitCosts> = OnceLock::new();
        let measure = || {
            if let Some(found) = remembered::recall() {
                return Self::from(&found);
            }
            ui::say(
                "measuring what a probe costs here, which takes some seconds; `sudo ctrace doctor \
                 --calibrate` keeps the result",
            );
            match calibrate::measure() {
                Ok(found) => Self::from(&found),
                Err(error) => {
                    tracing::warn!(
                        "what probes cost could not be measured: {error:#}. It is guessed, so a budget \
                         or a limit may act late"
                    );
                    Self::default()
                }
            }
        };
        *COSTS.get_or_init(measure)
    }

    /// Returns the costs that `ctrace doctor --calibrate` has left, or else a guess. Only the cost of a
    /// single step is measured then, if one of these needs any.
    pub(crate) fn known<'a>(mut planned: impl Iterator<Item = &'a Planned>) -> Self {
        if let Some(found) = remembered::recall() {
            return Self::from(&found);
        }
        let guess = Self::default();
        let steps = planned.any(|planned| single_steps::of_call(planned) > 0);
        match steps.then(bpf::single_step_cost).flatten() {
            Some(single_step) => Self { single_step, step_is_measured: true, ..guess },
            None => guess,
        }
    }

    /// Returns the least that hits cost. What is guessed costs more than half of the guess on all
    /// machines that are known. A guessed single step may cost a tenth, outside a virtual machine and
    /// in some. One that was measured costs no less in a target, whose caches are colder.
    fn least(&self) -> Self {
        if self.measured {
            return *self;
        }
        Self {
            emulated: Nanos(self.emulated.0 / 2),
            single_step: match self.step_is_measured {
                true => self.single_step,
                false => single_steps::LEAST,
            },
            return_probe: Nanos(self.return_probe.0 / 2),
            ..*self
        }
    }

    /// Returns whether all of them were measured on this machine.
    pub(crate) fn is_measured(&self) -> bool {
        self.measured
    }

    pub(crate) fn hit(&self, class: CostClass) -> Nanos {
        match class {
            CostClass::Emulated => self.emulated,
            CostClass::SingleStep => self.single_step,
        }
    }

    /// Returns the cost of a whole call of a planned function.
    pub(crate) fn call(&self, planned: &Planned) -> Nanos {
        let placement = match &planned.sites {
            Sites::Function(placement) => placement,
            Sites::Usdt(_) => return self.emulated,
            Sites::Pair(_) => return Nanos(2 * self.emulated.0),
            Sites::Marker { .. } => return markers::of(planned).call(),
        };
        let exit = match &placement.exit {
            ExitPlacement::ReturnProbe | ExitPlacement::Guarded(_) => self.return_probe,
            ExitPlacement::Unseen(_) => Nanos::ZERO,
            ExitPlacement::Sites(sites) => {
                sites.iter().map(|site| self.hit(site.cost)).max().unwrap_or_default()
            }
        };
        self.hit(placement.entry.cost).saturating_add(exit)
    }

    /// Returns the cost of a whole call, and the part of it that the call's duration contains. That
    /// is all after the entry's time stamp, and all before the exit's. Probes of one kind read the
    /// time at the same point, so with probes on the ways out it is what the entry costs.
    pub(crate) fn probe(&self, planned: &Planned) -> ProbeCost {
        let call_ns = self.call(planned);
        let inside_ns = match &planned.sites {
            Sites::Usdt(_) => Nanos::ZERO,
            Sites::Pair(_) => Nanos(call_ns.0 / 2),
            Sites::Marker { .. } => markers::of(planned).inside(),
            Sites::Function(placement) => {
                let entry = self.hit(placement.entry.cost);
                match &placement.exit {
                    ExitPlacement::ReturnProbe | ExitPlacement::Guarded(_) => {
                        entry.saturating_add(self.inside).since(self.emulated)
                    }
                    ExitPlacement::Sites(_) | ExitPlacement::Unseen(_) => entry,
                }
            }
        };
        ProbeCost {
            call_ns,
            inside_ns: inside_ns.min(call_ns),
            error_ns: self.error(planned),
            measured: self.measured,
        }
    }

    /// Returns by how much a call's cost may be wrong. A single step costs half more where the
    /// machine has other work than where it was measured.
    fn error(&self, planned: &Planned) -> Nanos {
        match &planned.sites {
            Sites::Function(_) => {}
            Sites::Usdt(_) | Sites::Pair(_) => return Nanos(self.call(planned).0 / 10),
            Sites::Marker { .. } => return markers::of(planned).error(),
        }
        let values = if planned.info.values.is_empty() { Nanos::ZERO } else { READING };
        let stepped = single_steps::of_call(planned);
        let other = self.call(planned).since(Nanos(self.single_step.0 * stepped));
        Nanos(self.single_step.0 * stepped / 2 + other.0 / 10).saturating_add(values)
    }

    /// Returns the cost of one event. A call whose end is seen is two events.
    pub(super) fn event(&self, planned: &Planned) -> Spent {
        let traps = |class| match class {
            CostClass::Emulated => 1,
            CostClass::SingleStep => 2,
        };
        let (events, traps) = match &planned.sites {
            Sites::Function(placement) => {
                let entry = traps(placement.entry.cost);
                match &placement.exit {
                    ExitPlacement::Unseen(_) => (1, entry),
                    ExitPlacement::ReturnProbe | ExitPlacement::Guarded(_) => (2, entry + 1),
                    ExitPlacement::Sites(sites) => {
                        let exits = sites.iter().map(|site| traps(site.cost));
                        (2, entry + exits.max().unwrap_or_default())
                    }
                }
            }
            Sites::Usdt(_) => (1, 1),
            Sites::Pair(_) => (2, 2),
            Sites::Marker { .. } => (markers::events(&planned.info), 0),
        };
        let each = |call: Nanos| Nanos(call.0 / events);
        let cost = each(self.call(planned));
        if traps == 0 {
            return Spent { aside: cost, ..Spent::default() };
        }
        Spent {
            traps: cost,
            least: each(self.least().call(planned)),
            unseen: Nanos((UNSEEN.0 * traps / events).max(cost.0 / UNSEEN_PART)),
            aside: Nanos::ZERO,
        }
    }

    /// True if they were measured on this machine.
    pub(crate) fn are_measured(&self) -> bool {
        self.measured
    }

    /// True if the single step was measured on this machine.
    pub(crate) fn step_is_measured(&self) -> bool {
        self.step_is_measured
    }
}

impl From<&Calibration> for HitCosts {
    fn from(found: &Calibration) -> Self {
        Self {
            emulated: Nanos(found.entry_ns as u64),
            single_step: Nanos(found.single_step_ns as u64),
            return_probe: Nanos((found.entry_and_return_ns - found.entry_ns).max(0.0) as u64),
            inside: Nanos(found.inside_ns as u64),
            measured: true,
            step_is_measured: true,
        }
    }
}

/// The cost of some events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// The cost of traps into the kernel, which the target's system time contains.
    pub(crate) traps: Nanos,
    /// The part of that which is certain.
    pub(crate) least: Nanos,
    /// The part of it which the kernel may count as user time nevertheless, at most.
    pub(crate) unseen: Nanos,
    /// The cost of all else.
    pub(crate) aside: Nanos,
}

impl Spent {
    pub(crate) fn cost(&self) -> Nanos {
        self.traps.saturating_add(self.aside)
    }

    /// Returns the cost of the traps on cold caches.
    pub(crate) fn cold(&self) -> Nanos {
        Nanos(self.traps.0.saturating_mul(COLD))
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        self.with(earlier, Nanos::since)
    }

    fn plus(self, other: Self) -> Self {
        self.with(other, Nanos::saturating_add)
    }

    fn times(self, factor: f64) -> Self {
        self.with(Self::default(), |ns, _| Nanos((ns.0 as f64 * factor) as u64))
    }

    fn with(self, other: Self, f: impl Fn(Nanos, Nanos) -> Nanos) -> Self {
        Self {
            traps: f(self.traps, other.traps),
            least: f(self.least, other.least),
            unseen: f(self.unseen, other.unseen),
            aside: f(self.aside, other.aside),
        }
    }
}

/// The cost of the events of one function.
#[derive(Clone, Copy, Default)]
struct Cost {
    each: Spent,
    /// The number of events under other probes, and what they cost.
    before: (u64, Spent),
}

impl Cost {
    fn of(&self, events: u64) -> Spent {
        let (earlier, cost) = self.before;
        cost.plus(self.each.times(events.saturating_sub(earlier) as f64))
    }
}

/// The cost of the events of each function, by its id.
#[derive(Default)]
pub(crate) struct Costs {
    hits: HitCosts,
    functions: Vec<Cost>,
}

impl Costs {
    pub(crate) fn new(hits: HitCosts) -> Self {
        Self { hits, functions: Vec::new() }
    }

    pub(crate) fn of_hits(&self) -> &HitCosts {
        &self.hits
    }

    /// Learns of the functions that the engine has added itself: waits, which no probe sees, and names of
    /// marker scopes. Returns true if there are some.
    pub(crate) fn know(&mut self, all: &[FunctionInfo]) -> bool {
        let are_new = all.len() > self.functions.len();
        for function in all.iter().skip(self.functions.len()) {
            let each = match function.kind {
                FunctionKind::Marker => {
                    Spent { aside: markers::event(function), ..Spent::default() }
                }
                FunctionKind::Function | FunctionKind::Usdt => Spent::default(),
            };
            self.functions.push(Cost { each, ..Cost::default() });
        }
        are_new
    }

    /// Adds functions, in the order in which the engine numbers them.
    pub(crate) fn add(&mut self, functions: &[Planned]) {
        let cost = |planned| Cost { each: self.hits.event(planned), ..Cost::default() };
        self.functions.extend(functions.iter().map(cost));
    }

    /// Gives a function, which has had so many events, other probes.
    pub(crate) fn replace(&mut self, id: usize, events: u64, planned: &Planned) {
        if let Some(cost) = self.functions.get_mut(id) {
            *cost = Cost { each: self.hits.event(planned), before: (events, cost.of(events)) };
        }
    }

    /// Returns the number of functions.
    pub(crate) fn functions(&self) -> usize {
        self.functions.len()
    }

    /// Returns the cost of this many events of one function.
    pub(crate) fn of_function(&self, id: usize, events: u64) -> Nanos {
        self.functions.get(id).copied().unwrap_or_default().of(events).cost()
    }

    /// Returns the cost of all these events, given by function.
    pub(crate) fn of(&self, events: &[u64]) -> Nanos {
        self.spent(events).cost()
    }

    fn spent(&self, events: &[u64]) -> Spent {
        let each = self.functions.iter().zip(events).map(|(cost, events)| cost.of(*events));
        each.fold(Spent::default(), Spent::plus)
    }

    /// Returns the same with the cost of lost events: as much as the others on average.
    pub(crate) fn with_lost(&self, events: &[u64], lost: u64) -> Spent {
        let all = events.iter().sum::<u64>();
        self.spent(events).times(1.0 + lost as f64 / all.max(1) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::plan::{EntrySite, ExitKind, ExitSite, Placement};

    fn planned(cost: CostClass, exit: ExitPlacement) -> Planned {
        let entry = EntrySite { offset: 0, cost, skipped: 0 };
        let placement = Placement {
            entry,
            exit,
            entry_is_loop_head: false,
            may_tail_jump: false,
            go: None,
            no_return_probe: None,
        };
        let info = FunctionInfo::new("function", "program");
        Planned::new(info, Sites::Function(placement))
    }

    #[test]
    fn single_steps_make_a_cost_uncertain() {
        let (emulated, single_step, return_probe) = (Nanos(500), Nanos(9_000), Nanos(300));
        let hits = HitCosts { emulated, single_step, return_probe, ..HitCosts::default() };
        let error = |entry, exit| hits.probe(&planned(entry, exit)).error_ns;
        assert_eq!(error(CostClass::Emulated, ExitPlacement::ReturnProbe), Nanos(80));
        assert_eq!(error(CostClass::SingleStep, ExitPlacement::ReturnProbe), Nanos(4_530));
        let stepped = ExitSite {
            offset: 9,
            kind: ExitKind::Ret,
            cost: CostClass::SingleStep,
            leads_to: None,
        };
        assert_eq!(error(CostClass::Emulated, ExitPlacement::Sites(vec![stepped])), Nanos(4_550));
    }

    #[test]
    fn a_guess_is_certain_in_part() {
        let event = |hits: HitCosts, entry| hits.event(&planned(entry, ExitPlacement::ReturnProbe));
        let (emulated, single_step, return_probe) = (Nanos(500), Nanos(9_000), Nanos(300));
        let guess = HitCosts { emulated, single_step, return_probe, ..HitCosts::default() };
        let of = |hits, entry| {
            let Spent { traps, least, unseen, aside } = event(hits, entry);
            [traps, least, unseen, aside].map(|ns| ns.0)
        };
        assert_eq!(of(guess, CostClass::Emulated), [400, 200, 250, 0]);
        assert_eq!(of(guess, CostClass::SingleStep), [4_650, 325, 775, 0]);
        let stepped = HitCosts { step_is_measured: true, ..guess };
        assert_eq!(of(stepped, CostClass::SingleStep), [4_650, 4_575, 775, 0]);
        let measured = HitCosts { measured: true, ..guess };
        assert_eq!(of(measured, CostClass::SingleStep), [4_650, 4_650, 775, 0]);
    }

    #[test]
    fn other_probes_cost_from_then_on() {
        let (emulated, single_step, return_probe) = (Nanos(100), Nanos(900), Nanos(60));
        let mut costs =
            Costs::new(HitCosts { emulated, single_step, return_probe, ..HitCosts::default() });
        let unseen = || ExitPlacement::Unseen(String::new());
        let first = planned(CostClass::Emulated, ExitPlacement::ReturnProbe);
        costs.add(&[first, planned(CostClass::SingleStep, unseen())]);
        assert_eq!(costs.of(&[4, 2]), Nanos(4 * 80 + 2 * 900));
        costs.replace(0, 4, &planned(CostClass::SingleStep, unseen()));
        costs.replace(7, 4, &planned(CostClass::SingleStep, unseen()));
        assert_eq!(costs.of_function(0, 5), Nanos(4 * 80 + 900));
        assert_eq!(costs.of(&[5, 2]), Nanos(4 * 80 + 900 + 2 * 900));
    }
}
