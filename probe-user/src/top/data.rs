//! Everything that is known: the last interval, the sums, and how it came there.

use super::{catalogue::Catalogue, figures::Figures, sums::Sums, trend::Trend};
use crate::session::live::Snapshot;
use ctrace_core::{report::LossReport, units::Nanos};

#[derive(Clone, Debug, Default)]
pub(super) struct Data {
    pub(super) catalogue: Catalogue,
    /// Nothing before the first interval is over.
    pub(super) interval: Option<Figures>,
    pub(super) sums: Option<Sums>,
    pub(super) trend: Trend,
    /// Processor time of the target when the last interval ended.
    cpu: Option<Nanos>,
    /// Intervals that are not in the sums, because the terminal stood still.
    pub(super) missed: u64,
    /// Since the start, whatever the sums are of.
    pub(super) lost: LossReport,
}

impl Data {
    /// `cpu`: the target's processor time when tracing begins.
    pub(super) fn new(cpu: Option<Nanos>) -> Self {
        Self { cpu, ..Self::default() }
    }

    pub(super) fn add(&mut self, snapshot: Snapshot, missed: u64) {
        let Snapshot { report, spent, cpu } = snapshot;
        let used = cpu.zip(self.cpu).map(|(now, before)| now.since(before));
        self.cpu = cpu;
        self.missed += missed;
        self.lost.add(&report.loss);
        let cost = spent.iter().fold(Nanos::ZERO, |sum, cost| sum.saturating_add(*cost));
        let ids = self.catalogue.ids_of(&report);
        let figures = Figures { report, ids, spent, cost, cpu: used };
        match &mut self.sums {
            Some(sums) => sums.add(&figures),
            None => self.sums = Some(Sums::new(&figures)),
        }
        self.show(figures);
    }

    /// Another look at an interval that goes on.
    pub(super) fn look(&mut self, snapshot: Snapshot, cost: Nanos) {
        let Snapshot { report, spent, cpu } = snapshot;
        self.lost = report.loss;
        let ids = self.catalogue.ids_of(&report);
        self.show(Figures { report, ids, spent, cost, cpu });
    }

    fn show(&mut self, figures: Figures) {
        self.trend.add(&figures);
        self.interval = Some(figures);
    }

    /// The sums start anew with the next interval.
    pub(super) fn begin_anew(&mut self) {
        self.sums = None;
    }
}
