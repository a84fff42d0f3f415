//! Measures the cost of a probe on this machine. ctrace calls a function of its own in a loop,
//! untraced and traced in each way, and takes the difference.

use crate::{
    bpf::{Config, Kernel, LinkChoice, Role, Site, spun},
    target::plan::CostClass,
};
use anyhow::anyhow;
use ctrace_common::{Cookie, Kind};
use ctrace_core::{
    ingest::decode::{Decoded, decode},
    units::Pid,
};
use serde::{Deserialize, Serialize};
use std::{hint::black_box, path::Path, time::Instant};

/// Calls per measurement. All their records fit into a ring, and a round takes about a millisecond,
/// so that on a busy machine most rounds end before another process gets its turn.
const CALLS: u32 = 100;
const RING_BYTES: u32 = 8 << 20;
/// The least of this many rounds is taken: noise only adds.
const ROUNDS: usize = 200;

/// The nanoseconds that probes add to a call on this machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Calibration {
    /// The class of the entry that was measured.
    pub entry_class: String,
    pub entry_ns: f64,
    pub entry_and_return_ns: f64,
    /// The cost of a probe on a `ret` instruction.
    pub single_step_ns: f64,
    /// The part of entry and return that is between the time stamps of a call.
    pub inside_ns: f64,
}

impl Calibration {
    pub(crate) fn rows(&self) -> Vec<(&'static str, String)> {
        let class = &self.entry_class;
        vec![
            ("an entry probe", format!("{:.0} ns ({class})", self.entry_ns)),
            ("entry and return", format!("{:.0} ns", self.entry_and_return_ns)),
            ("a single step", format!("{:.0} ns", self.single_step_ns)),
            ("in the duration", format!("{:.0} ns of entry and return", self.inside_ns)),
        ]
    }
}

/// Measures the costs. This takes a part of a second.
pub(crate) fn measure() -> anyhow::Result<Calibration> {
    let kernel = Kernel::load(&Config {
        ring_bytes: RING_BYTES,
        follow: false,
        admits: 0,
        launches: false,
        markers: false,
        values: false,
        python: false,
        conditions: false,
        guards: false,
        waits: false,
        wakers: false,
        counted: None,
        thrift: None,
    })?;
    let own = Pid(std::process::id());
    kernel.trace_process(own)?;
    let place = spun::find().map_err(|why| anyhow!(why))?;
    let mut rings = kernel.rings()?;
    let mut durations = Durations::default();
    let mut cost = |role, offset| -> anyhow::Result<f64> {
        let site = Site { offset, ref_ctr_offset: 0, cookie: Cookie::plain(0) };
        let bare = nanos_per_call(|| ());
        let exe = Path::new("/proc/self/exe");
        let attached = kernel.attach(exe, Some(own), role, &[site], LinkChoice::Auto, false)?;
        let traced = nanos_per_call(|| {
            rings.drain(|_, record| durations.take(record));
            durations.end_round();
        });
        attached.detach()?;
        Ok((traced - bare).max(0.0))
    };
    let entry_ns = cost(Role::Entry, place.entry)?;
    let single_step_ns = cost(Role::Entry, place.ret)?;
    let entry_and_return_ns = cost(Role::Function, place.entry)?;
    let bare = nanos_per_call(|| ());
    Ok(Calibration {
        entry_class: CostClass::Emulated.name().to_owned(),
        entry_ns,
        entry_and_return_ns,
        single_step_ns,
        inside_ns: durations.least.map_or(0.0, |least| (least - bare).max(0.0)),
    })
}

/// The durations of calls as a report has them. The calls follow each other on one thread.
#[derive(Default)]
struct Durations {
    entered: u64,
    sum: u64,
    calls: u64,
    /// The least mean of a round.
    least: Option<f64>,
}

impl Durations {
    fn take(&mut self, record: &[u8]) {
        let Ok(Decoded::Event(event)) = decode(record) else { return };
        match event.kind() {
            Some(Kind::Enter) => self.entered = event.ts(),
            Some(Kind::Return) => {
                self.sum += event.ts().saturating_sub(self.entered);
                self.calls += 1;
            }
            _ => {}
        }
    }

    fn end_round(&mut self) {
        if self.calls > 0 {
            let mean = self.sum as f64 / self.calls as f64;
            self.least = Some(self.least.map_or(mean, |least| least.min(mean)));
        }
        (self.sum, self.calls) = (0, 0);
    }
}

fn nanos_per_call(mut between: impl FnMut()) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for i in 0..CALLS {
            black_box(spun::call(black_box(i)));
        }
        best = best.min(begun.elapsed().as_nanos() as f64 / f64::from(CALLS));
        between();
    }
    best
}
