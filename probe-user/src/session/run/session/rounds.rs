//! The occasional looks of a session, besides its events.

use super::{Session, TracedTarget};
use crate::{
    bpf::{self, Diagnostics, Kernel},
    session::{budget::slowdown::Watch, collect::pace::Pace},
    target::process::Process,
};
use ctrace_core::units::Nanos;
use std::time::Duration;

/// The number of looks so far, and the pause until the next.
pub(crate) struct Rounds {
    pub(super) pace: Pace,
    pub(super) watch: Watch,
    diagnostics: Option<Diagnostics>,
    count: u32,
    pause: Duration,
    /// CPU time of the target at the last look at its mappings: a target that did not run has not
    /// opened libraries.
    cpu_at_maps: Option<Nanos>,
}

impl Rounds {
    pub(crate) fn new(pace: Pace, watch: Watch, kernel: &mut Kernel) -> Self {
        // Tracing works without them as well.
        let diagnostics = kernel.diagnostics();
        let diagnostics = diagnostics.inspect_err(|error| tracing::warn!("{error}")).ok();
        Self { pace, watch, diagnostics, count: 0, pause: Duration::ZERO, cpu_at_maps: None }
    }

    /// Begins another round. `calm`: nothing new has come since the last one.
    fn begin(&mut self, calm: bool) {
        if let Some(diagnostics) = &mut self.diagnostics {
            diagnostics.flush();
        }
        let (first, longest) = self.pace.look;
        self.pause = if calm { (self.pause * 2).clamp(first, longest) } else { first };
        self.count += 1;
    }

    /// True if the mappings are to be looked at. `cpu` returns the target's CPU time; `None` means
    /// that the target has run.
    fn looks_at_maps(&mut self, cpu: impl FnOnce() -> Option<Nanos>) -> bool {
        self.count.is_multiple_of(self.pace.looks_per_maps) && self.has_run(cpu)
    }

    /// True if the target has run since the last time.
    fn has_run(&mut self, cpu: impl FnOnce() -> Option<Nanos>) -> bool {
        if !self.pace.is_calm {
            return true;
        }
        let cpu = cpu();
        std::mem::replace(&mut self.cpu_at_maps, cpu) != cpu || cpu.is_none()
    }
}

impl Session {
    /// Looks for new programs, libraries and children, and checks the cost of the probes. Returns
    /// `false` if the session is to end.
    pub(crate) fn look_around(&mut self) -> anyhow::Result<bool> {
        let execed = self.take_changes();
        self.rounds.begin(execed.is_empty());
        for pid in execed {
            self.arm_executed(pid);
        }
        if self.target.launched && Process::is_held_at_start(self.target.pid.0) {
            // The record of it is still on its way, or was lost.
            self.release_found(self.target.pid);
        }
        let TracedTarget { clock, processes, .. } = &self.target;
        // While children are followed, assume that one of them has run.
        let cpu = || if processes.has_traced() { None } else { clock.own_time() };
        if self.rounds.looks_at_maps(cpu) {
            self.target.alive().into_iter().for_each(|pid| self.arm_new_objects(pid));
        }
        self.look_at_addresses();
        self.target.children.look(self.target.pid);
        self.note_left();
        let lost = self.engine.lost();
        let written = self.delivery.output.written();
        let elapsed = bpf::now().since(self.progress.start);
        self.status.show(elapsed, self.engine.counters(), lost, written);
        self.tend_budget();
        self.target.look_at_queues();
        self.check_slowdown()
    }

    /// True if a look is needed at once: a new program waits for its probes.
    pub(crate) fn must_look(&self) -> bool {
        self.engine.a_program_was_executed()
    }

    /// Returns the pause until the next look.
    pub(crate) fn look_pause(&self) -> Duration {
        self.rounds.pause
    }
}
