//! All known data: the last interval, the sums and the recent trend.

pub(crate) mod catalogue;
pub(crate) mod compare;
pub(crate) mod figures;
pub(crate) mod sums;
pub(crate) mod trend;

use crate::session::keep::live::Snapshot;
use crate::top::data::{
    catalogue::Catalogue,
    figures::{Figures, FromHistograms},
    sums::Sums,
    trend::Trend,
};
use crate::ui::{notes::marks::Marks, table::net::is_net};
use ctrace_core::{report::LossReport, units::Nanos};

#[derive(Clone, Debug, Default)]
pub(super) struct Data {
    pub(super) catalogue: Catalogue,
    /// `None` before the first interval is over.
    pub(super) interval: Option<Figures>,
    pub(super) sums: Option<Sums>,
    /// The sums of the time before the last freeze.
    before: Option<Sums>,
    pub(super) trend: Trend,
    /// CPU time of the target when the last interval ended.
    cpu: Option<Nanos>,
    /// The kind of durations in each interval.
    from_histograms: FromHistograms,
    /// The number of intervals missing from the sums: the terminal was stopped, or a daemon did not
    /// keep them.
    pub(super) missed: u64,
    /// The losses since the start, even if the sums began later.
    pub(super) lost: LossReport,
}

impl Data {
    /// `cpu`: the target's CPU time when tracing begins.
    pub(super) fn new(cpu: Option<Nanos>) -> Self {
        Self { cpu, ..Self::default() }
    }

    /// Makes empty data for looks at a daemon.
    pub(super) fn of_looks(cpu: Option<Nanos>) -> Self {
        Self { from_histograms: FromHistograms::Extremes, ..Self::new(cpu) }
    }

    /// Adds the consecutive parts of an interval. `missed` intervals before them were lost.
    pub(super) fn add(&mut self, parts: Vec<Snapshot>, missed: u64) {
        self.missed += missed;
        let parts: Vec<Figures> = parts.into_iter().map(|part| self.take_in(part)).collect();
        let whole = match <[Figures; 1]>::try_from(parts) {
            Ok([only]) => Some(only),
            Err(parts) => self.joined(parts),
        };
        if let Some(whole) = whole {
            self.trend.add(&whole);
            self.interval = Some(whole);
        }
    }

    /// Joins all parts.
    fn joined(&mut self, parts: Vec<Figures>) -> Option<Figures> {
        let (mut own, mut sums) = (Catalogue::default(), None::<Sums>);
        for part in parts {
            let part = Figures { ids: own.ids_of(&part.report), ..part };
            match &mut sums {
                Some(sums) => sums.add(&part),
                None => sums = Some(Sums::new(&part)),
            }
        }
        let figures = sums?.figures;
        Some(Figures { ids: self.catalogue.ids_of(&figures.report), ..figures })
    }

    fn take_in(&mut self, snapshot: Snapshot) -> Figures {
        let cost = snapshot.cost();
        let Snapshot { report, spent, cpu } = snapshot;
        let used = cpu.zip(self.cpu).map(|(now, before)| now.since(before));
        self.cpu = cpu;
        self.lost.add_later(&report.loss);
        let ids = self.catalogue.ids_of(&report);
        let from_histograms = self.from_histograms;
        let is_net = report.functions.iter().any(is_net);
        let marks = Marks::of(&report);
        let figures =
            Figures { report, ids, spent, cost, cpu: used, from_histograms, is_net, marks };
        match &mut self.sums {
            Some(sums) => sums.add(&figures),
            None => self.sums = Some(Sums::new(&figures)),
        }
        figures
    }

    /// Starts the sums anew with the next interval.
    pub(super) fn begin_anew(&mut self) {
        self.before = self.all();
        self.sums = None;
    }

    /// Returns the sums since the start, also if they began anew.
    pub(super) fn all(&self) -> Option<Sums> {
        let (Some(before), Some(sums)) = (&self.before, &self.sums) else {
            return self.before.clone().or_else(|| self.sums.clone());
        };
        let mut all = before.clone();
        all.add(&sums.figures);
        Some(all)
    }
}
