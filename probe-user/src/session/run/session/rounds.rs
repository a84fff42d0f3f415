//! What a session looks at now and then besides its events.

use super::Session;
use crate::target::process::Process;
use ctrace_core::units::{Nanos, Pid};
use std::time::Duration;

/// How often a session has looked around, and when it does so next.
#[derive(Default)]
pub(super) struct Looks {
    count: u32,
    pause: Duration,
    /// Of the target, at the last look at its mappings: what did not run has not opened libraries.
    cpu_at_maps: Option<Nanos>,
}

impl Session {
    /// New programs, libraries, children; the cost of the probes. `false` ends the session.
    pub(crate) fn look_around(&mut self) -> anyhow::Result<bool> {
        if let Some(diagnostics) = &mut self.diagnostics {
            diagnostics.flush();
        }
        let execed = self.take_changes();
        let (first, longest) = self.parts.pace.look;
        self.looks.pause = match execed.is_empty() {
            true => (self.looks.pause * 2).clamp(first, longest),
            false => first,
        };
        for pid in execed {
            self.arm_executed(pid);
        }
        self.looks.count += 1;
        if self.parts.launched && Process::is_held_at_start(self.parts.pid.0) {
            // The record that tells it is still on its way, or was lost.
            self.release_found(self.parts.pid);
        }
        if self.looks.count.is_multiple_of(self.parts.pace.looks_per_maps) && self.has_run() {
            self.arm_new_objects(self.parts.pid);
            let followed: Vec<Pid> = self.followed.iter().copied().collect();
            followed.into_iter().for_each(|pid| self.arm_new_objects(pid));
        }
        let lost = self.parts.engine.lost();
        let written = self.parts.output.written();
        self.parts.status.show(self.parts.engine.counters(), lost, written);
        self.tend_budget();
        self.check_slowdown()
    }

    /// Whether to look around at once: a new program waits for its probes.
    pub(crate) fn must_look(&self) -> bool {
        self.parts.engine.a_program_was_executed()
    }

    /// Until the next one.
    pub(crate) fn look_pause(&self) -> Duration {
        self.looks.pause
    }

    /// Whether the target has run since the last time; while children are followed, it always has.
    fn has_run(&mut self) -> bool {
        if !self.parts.pace.wakes {
            return true;
        }
        let cpu = if self.followed.is_empty() { self.clock.own_time() } else { None };
        std::mem::replace(&mut self.looks.cpu_at_maps, cpu) != cpu || cpu.is_none()
    }
}
