//! When reports are made, and what the tracer adds to them.

use super::Tracer;
use crate::{bpf::Release, session::output::Output};
use ctrace_core::{engine::ReportMeta, units::Nanos};

impl Tracer {
    /// The last report, up to `end`.
    pub fn report_end(&mut self, end: Nanos) -> anyhow::Result<()> {
        self.parts.status.finish();
        self.take_changes();
        self.tell_what_died_with_the_target();
        let delivered: u64 = self.parts.engine.counters().hits.iter().sum();
        self.count_losses()?;
        let lost = self.parts.engine.lost();
        tracing::info!("events: {delivered} delivered, {lost} lost");
        if !self.markers.is_empty() {
            let residual = self.parts.engine.markers().clock_residual();
            tracing::info!(
                "clocks: {} samples, off the line through the two before by {} ns on average, {} ns \
                 at most",
                residual.samples,
                residual.mean.0,
                residual.largest.0,
            );
        }
        self.end_chunks(end)?;
        // The last interval may have ended just now.
        if self.reported != Some(end) {
            self.report_interval(end)?;
        }
        self.end_recording(end)
    }

    /// Markers that a target had not delivered when it ended.
    fn tell_what_died_with_the_target(&mut self) {
        let ended = self.parts.target.exit.is_some();
        if ended && !self.markers.is_empty() && !Release::running().tells_an_end_with_its_memory() {
            self.notes.push(
                "on kernels before 6.16, what the target's threads marked in their last 0.1 s may be \
                 missing, unless they ended by themselves (at most 252 events each)"
                    .to_owned(),
            );
        }
    }

    /// A report of what happened since the last one, or of everything, as asked for; none of a
    /// session that records.
    pub(super) fn report_interval(&mut self, end: Nanos) -> anyhow::Result<bool> {
        self.reported = Some(end);
        self.count_losses()?;
        let mut notes = self.notes.clone();
        notes.extend(self.cost_of_probes(end));
        let parts = &mut self.parts;
        let Output::Reports(reports) = &mut parts.output else { return Ok(true) };
        let meta = ReportMeta {
            target: parts.target.clone(),
            center_cut: reports.center_cut,
            notes,
            extras: reports.sink.extras(),
        };
        let mut report = match &mut reports.spill {
            Some(spill) => spill.report(end, meta)?,
            None if reports.cumulative => parts.engine.report(end, meta),
            None => parts.engine.report_interval(end, meta),
        };
        self.unarmed.leave_out(&mut report);
        parts.status.suspend(|| reports.sink.write(&report))
    }

    /// What the probes took themselves, where that is much: it is in the times of the report.
    pub(super) fn cost_of_probes(&self, end: Nanos) -> Option<String> {
        /// Of the time since the start.
        const MUCH: u64 = 10;
        let spent = self.costs.of(self.parts.engine.counters().hits).0;
        let percent = spent.saturating_mul(100) / end.since(self.start).0.max(1);
        (percent >= MUCH).then(|| {
            format!(
                "the probes themselves took about {} ms, {percent} % of the time since the start: \
                 functions that are called often, or call many traced ones, look slower than they \
                 are",
                spent / 1_000_000
            )
        })
    }

    /// What the kernel has counted, and batches of markers that found no room.
    pub(super) fn count_losses(&mut self) -> anyhow::Result<()> {
        let lost = self.parts.kernel.lost().read()?;
        self.parts.engine.set_lost_events(lost.events, lost.marks);
        if !self.markers.is_empty() {
            let dropped = self.parts.kernel.take_cut_off()?;
            self.parts.engine.markers().set_cut_off(dropped);
        }
        Ok(())
    }
}
