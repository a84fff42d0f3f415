//! Measures the cost of a probe on this machine. ctrace calls a function of its own in a loop,
//! untraced and traced in each way, and takes the difference.

use crate::{
    bpf::{Config, Kernel, LinkChoice, Role, Site},
    session::plan::{Planner, Sites},
    target::{
        maps::MappedObject,
        place::Returns,
        plan::{CostClass, ExitPlacement, Placement},
        select::{Patterns, Selector},
    },
};
use anyhow::{Context, bail};
use ctrace_common::Cookie;
use ctrace_core::units::Pid;
use serde::Serialize;
use std::{hint::black_box, path::Path, time::Instant};

/// Calls per measurement. All their records fit into a ring, and a round takes about a millisecond,
/// so that on a busy machine most rounds end before another process gets its turn.
const CALLS: u32 = 100;
const RING_BYTES: u32 = 8 << 20;
/// The least of this many rounds is taken: noise only adds.
const ROUNDS: usize = 200;

/// The nanoseconds that probes add to a call on this machine.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Calibration {
    /// The class of the entry that was measured.
    pub entry_class: &'static str,
    pub entry_ns: f64,
    pub entry_and_return_ns: f64,
    /// The cost of a probe on a `ret` instruction.
    pub single_step_ns: f64,
}

impl Calibration {
    pub(crate) fn rows(&self) -> Vec<(&'static str, String)> {
        let class = self.entry_class;
        vec![
            ("an entry probe", format!("{:.0} ns ({class})", self.entry_ns)),
            ("entry and return", format!("{:.0} ns", self.entry_and_return_ns)),
            ("a single step", format!("{:.0} ns", self.single_step_ns)),
        ]
    }
}

/// Measures the costs. This takes a part of a second.
pub(crate) fn measure() -> anyhow::Result<Calibration> {
    let kernel = Kernel::load(&Config {
        ring_bytes: RING_BYTES,
        follow: false,
        launches: false,
        markers: false,
        values: false,
        guards: false,
    })?;
    let own = Pid(std::process::id());
    kernel.trace_process(own)?;
    let placement = place_spun()?;
    let ExitPlacement::Sites(exits) = &placement.exit else {
        bail!("the ways out of the function to measure were not found");
    };
    let ret = exits.iter().find(|exit| exit.cost == CostClass::SingleStep);
    let ret = ret.context("the function to measure has no ret instruction")?;
    let mut rings = kernel.rings()?;
    let mut cost = |role, offset| -> anyhow::Result<f64> {
        let site = Site { offset, ref_ctr_offset: 0, cookie: Cookie::plain(0) };
        let bare = nanos_per_call(|| ());
        let exe = Path::new("/proc/self/exe");
        let attached = kernel.attach(exe, Some(own), role, &[site], LinkChoice::Auto, false)?;
        let traced = nanos_per_call(|| {
            rings.drain(|_, _| ());
        });
        attached.detach()?;
        Ok((traced - bare).max(0.0))
    };
    Ok(Calibration {
        entry_class: placement.entry.cost.name(),
        entry_ns: cost(Role::Entry, placement.entry.offset)?,
        entry_and_return_ns: cost(Role::Function, placement.entry.offset)?,
        single_step_ns: cost(Role::Entry, ret.offset)?,
    })
}

fn place_spun() -> anyhow::Result<Placement> {
    let exe = MappedObject::from_file(Path::new("/proc/self/exe"), true)
        .context("cannot read the own program")?;
    let pattern = ["*::ctrace_calibration_spun".to_owned()];
    let selector = Selector::parse(Patterns { functions: &pattern, ..Patterns::default() })?;
    let mut planner = Planner::new(selector, 1, Returns::RetSites);
    let plan = planner.plan(&[exe])?;
    let planned = plan.objects.into_iter().flat_map(|object| object.functions).next();
    match planned.map(|planned| planned.sites) {
        Some(Sites::Function(placement)) => Ok(placement),
        _ => bail!("the function to measure cannot be traced"),
    }
}

fn nanos_per_call(mut between: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for i in 0..CALLS {
            black_box(ctrace_calibration_spun(black_box(i)));
        }
        best = best.min(begun.elapsed().as_nanos() as f64 / f64::from(CALLS));
        between();
    }
    best
}

/// Starts with a `push`: it keeps a value over a call.
#[inline(never)]
fn ctrace_calibration_spun(value: u32) -> u32 {
    ctrace_calibration_leaf(value) ^ value
}

#[inline(never)]
fn ctrace_calibration_leaf(value: u32) -> u32 {
    black_box(value).rotate_left(3)
}
