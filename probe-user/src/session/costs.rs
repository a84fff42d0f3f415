//! What the probes of a session cost the target, by the classes of their places.

use super::{
    markers::MARKER_CALL,
    plan::{Planned, Sites},
};
use crate::target::plan::{CostClass, ExitPlacement};
use ctrace_core::units::Nanos;
use std::sync::OnceLock;

/// What one hit costs, in the middle of the range that docs/overhead.md has. A single step is a
/// trap, which costs ten times as much in a virtual machine.
pub fn hit_cost(class: CostClass) -> Nanos {
    match class {
        CostClass::Emulated => Nanos(530),
        CostClass::SingleStep if in_virtual_machine() => Nanos(10_000),
        CostClass::SingleStep => Nanos(1_000),
    }
}

fn in_virtual_machine() -> bool {
    static FLAG: OnceLock<bool> = OnceLock::new();
    *FLAG.get_or_init(|| {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let flags = info.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
        flags.split_whitespace().any(|flag| flag == "hypervisor")
    })
}

/// What a return probe adds to an entry probe.
const RETURN_PROBE: Nanos = Nanos(350);

/// Cost of one event of each function, by its id.
#[derive(Default)]
pub struct Costs {
    per_event: Vec<Nanos>,
}

impl Costs {
    /// In the order in which the engine numbers the functions.
    pub fn add(&mut self, functions: &[Planned]) {
        self.per_event.extend(functions.iter().map(event_cost));
    }

    /// How many functions there are.
    pub fn functions(&self) -> usize {
        self.per_event.len()
    }

    /// What so many events of one function cost.
    pub fn of_function(&self, id: usize, events: u64) -> Nanos {
        let each = self.per_event.get(id).copied().unwrap_or_default();
        Nanos(each.0.saturating_mul(events))
    }

    /// What so many events of each function cost together.
    pub fn of(&self, events: &[u64]) -> Nanos {
        let each = self.per_event.iter().zip(events);
        Nanos(
            each.map(|(cost, events)| cost.0.saturating_mul(*events)).fold(0, u64::saturating_add),
        )
    }
}

/// What a whole call of a planned function costs.
pub fn call_cost(planned: &Planned) -> Nanos {
    let placement = match &planned.sites {
        Sites::Function(placement) => placement,
        Sites::Usdt(_) => return hit_cost(CostClass::Emulated),
        Sites::Marker(_) => return MARKER_CALL,
    };
    let exit = match &placement.exit {
        ExitPlacement::ReturnProbe => RETURN_PROBE,
        ExitPlacement::Unseen(_) => Nanos::ZERO,
        ExitPlacement::Sites(sites) => {
            sites.iter().map(|site| hit_cost(site.cost)).max().unwrap_or_default()
        }
    };
    hit_cost(placement.entry.cost).saturating_add(exit)
}

/// A call whose end is seen is two events.
fn event_cost(planned: &Planned) -> Nanos {
    let events = match &planned.sites {
        Sites::Function(placement) if !matches!(placement.exit, ExitPlacement::Unseen(_)) => 2,
        Sites::Marker(_) => 2,
        _ => 1,
    };
    Nanos(call_cost(planned).0 / events)
}
