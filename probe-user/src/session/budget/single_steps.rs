//! Probes whose instruction the kernel steps over: how many a call has, and the cost of one.

use crate::{
    session::plan::{Planned, Sites},
    target::plan::CostClass,
};
use ctrace_core::units::Nanos;
use std::sync::OnceLock;

/// No machine is known on which the kernel steps over an instruction in less.
pub(super) const LEAST: Nanos = Nanos(500);

/// Returns the usual cost: a single step is a trap, which costs ten times as much in a virtual machine.
pub(super) fn guess() -> Nanos {
    if in_virtual_machine() { Nanos(10_000) } else { Nanos(1_000) }
}

/// Returns the number of instructions of a call that the kernel steps over.
pub(super) fn of_call(planned: &Planned) -> u64 {
    let Sites::Function(placement) = &planned.sites else { return 0 };
    let entry_is_stepped = placement.entry.cost == CostClass::SingleStep;
    u64::from(entry_is_stepped) + u64::from(placement.exit.is_single_stepped())
}

fn in_virtual_machine() -> bool {
    static FLAG: OnceLock<bool> = OnceLock::new();
    *FLAG.get_or_init(|| {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let flags = info.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
        flags.split_whitespace().any(|flag| flag == "hypervisor")
    })
}
