//! What the probes cost the target, and what is done about it.

use super::Tracer;
use crate::{session::slowdown::Verdict, target::process::Process};

impl Tracer {
    /// `false` when the cost ends the session.
    pub(super) fn check_slowdown(&mut self) -> anyhow::Result<bool> {
        // The hits are those of all followed processes, the CPU time that of one.
        if self.parts.links.pid.is_none() {
            return Ok(true);
        }
        let spent = self.costs.of(self.parts.engine.counters().hits);
        let Some(cpu) = Process::cpu_time(self.parts.pid.0) else { return Ok(true) };
        match self.parts.watch.check(spent, cpu) {
            Verdict::Fine => Ok(true),
            Verdict::Warn(percent) => {
                self.warn(&format!(
                    "the probes slow the target by about {percent:.0} %; trace fewer \
                     functions, or stop on such a slowdown with --max-slowdown {percent:.0}%"
                ));
                Ok(true)
            }
            Verdict::Stop(percent) => {
                let note = format!(
                    "tracing stopped early: the probes slowed the target by about {percent:.0} %, \
                     more than --max-slowdown allows"
                );
                self.warn(&note);
                self.note(note);
                Ok(false)
            }
        }
    }
}
