//! The one place that all data passes through: reports, totals and metrics.
//!
//! Each session hands over its intervals on its own thread. Nothing here waits for a disk: another
//! thread writes the reports.

use super::{
    config::{Config, Target},
    fleet::Fleet,
    ids::{SessionId, TargetName},
    metrics::{catalog::Own, hub::MetricsHub},
    post::queue::Ending,
    profiles::Profiles,
    reports::{ReportHeader, Style, Writer},
    spans::Spans,
    totals::Counts,
};
use crate::{session::keep::live::Snapshot, ui};
use ctrace_core::{
    report::{Extras, ReportTotals},
    units::Nanos,
};
use serde::{Serialize, Serializer, ser::SerializeStruct as _};
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Targets outside of the configuration that are remembered when their sessions have ended.
const MOST_BY_HAND: usize = 32;

/// The state of all targets.
pub(crate) struct Hub {
    writer: Writer,
    metrics: MetricsHub,
    spans: Option<Spans>,
    profiles: Option<Profiles>,
    fleet: Fleet,
    /// True if the metrics need durations of calls.
    latencies: bool,
    targets: Mutex<BTreeMap<TargetName, TargetSums>>,
    /// Held while a report is written, so that reports come in the order of their sums.
    order: Mutex<()>,
}

/// The sums of one target.
#[derive(Clone, Debug, Default)]
pub(crate) struct TargetSums {
    pub totals: Counts,
    /// The sums of each running session.
    pub sessions: BTreeMap<SessionId, SessionSums>,
}

/// The sums of one session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SessionSums {
    pub last: Interval,
    pub since_start: SeenTotals,
    cpu: Option<Nanos>,
}

/// The sums of a session's finished intervals. Only some are serialized.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SeenTotals(pub ReportTotals);

impl Serialize for SeenTotals {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut told = serializer.serialize_struct("SeenTotals", 2)?;
        told.serialize_field("calls", &self.0.calls)?;
        told.serialize_field("lost", &self.0.lost)?;
        told.end()
    }
}

/// The sums of a session's last interval.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Interval {
    #[serde(flatten)]
    pub sums: SeenTotals,
    /// The probes' cost in percent of the process's CPU time. A budget limits this.
    pub cost_percent: Option<f64>,
}

impl Hub {
    pub(super) fn start(config: &Config) -> std::io::Result<Self> {
        let metrics = MetricsHub::new(config.metrics.bounds());
        let spans = config.metrics.spans();
        let spans = spans.map(|options| Spans::start(options, metrics.clone())).transpose()?;
        let hub = Self {
            spans,
            profiles: Profiles::start(config.profiles(), &metrics)?,
            fleet: Fleet::start(&config.fleet, &metrics)?,
            writer: Writer::new(metrics.counter(Own::ReportsLost)),
            metrics,
            latencies: config.metrics.is_wanted(),
            targets: Mutex::default(),
            order: Mutex::default(),
        };
        hub.forget_all_but(config);
        Ok(hub)
    }

    /// Returns the metrics.
    pub(crate) fn metrics(&self) -> &MetricsHub {
        &self.metrics
    }

    /// True if somebody may read the metrics.
    pub(super) fn has_metrics(&self) -> bool {
        self.latencies
    }

    /// Returns the writer of tables.
    pub(super) fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// Returns the exporter of slow calls, if it is on.
    pub(super) fn spans(&self) -> Option<&Spans> {
        self.spans.as_ref()
    }

    /// Returns the exporter of profiles, if it is on.
    pub(super) fn profiles(&self) -> Option<&Profiles> {
        self.profiles.as_ref()
    }

    /// Returns the optional data that the reports of a target must hold.
    pub(crate) fn extras(&self, target: &Target) -> Extras {
        let extras = Style::of(&target.reports).map(|style| style.extras()).unwrap_or_default();
        let tables = self.fleet.is_on();
        Extras {
            latencies: self.latencies || tables,
            path_latencies: tables,
            slow_calls: self.fleet.slow_calls(),
            ..extras
        }
    }

    /// Takes a finished interval of a session.
    pub(crate) fn observe(&self, target: &Target, session: SessionId, snapshot: &Snapshot) {
        self.metrics.observe(session, snapshot);
        let _in_order = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        let totals = {
            let mut targets = self.lock();
            let known = targets.entry(target.id.clone()).or_default();
            known.totals.add(snapshot);
            let seen = known.sessions.entry(session).or_default();
            *seen = seen.after(snapshot);
            known.totals
        };
        let Ok(Some(style)) = Style::of(&target.reports).map(Style::unless_none) else { return };
        let reports_lost = self.writer.lost();
        let header = ReportHeader { target: &target.id, session, totals, reports_lost };
        match style.render(&header, snapshot) {
            Ok(text) => self.writer.write(&target.reports, text),
            Err(error) => ui::say(&format!("target {}: no report: {error:#}", target.id)),
        }
    }

    /// Adds a session.
    pub(super) fn began(&self, target: &TargetName, session: SessionId) {
        let mut targets = self.lock();
        let known = targets.entry(target.clone()).or_default();
        known.totals.processes += 1;
        known.sessions.insert(session, SessionSums::default());
    }

    /// Removes a session. The totals keep its sums.
    pub(super) fn ended(&self, target: &TargetName, session: SessionId) {
        self.metrics.end(session);
        if let Some(known) = self.lock().get_mut(target) {
            known.sessions.remove(&session);
        }
    }

    /// Forgets targets that have left the configuration and have no sessions.
    pub(super) fn forget_all_but(&self, config: &Config) {
        let targets = config.targets.iter();
        self.metrics.configure(targets.map(|target| (&*target.id.0, target.what.probes.budget)));
        self.lock().retain(|id, known| {
            !known.sessions.is_empty() || config.targets.iter().any(|target| target.id == *id)
        });
    }

    /// Forgets as well where there are too many such targets: every process that is attached by hand
    /// has one.
    pub(super) fn forget_some(&self, config: &Config) {
        if self.lock().len() > config.targets.len() + MOST_BY_HAND {
            self.forget_all_but(config);
        }
    }

    /// Returns the sums of a target.
    pub(crate) fn known(&self, target: &TargetName) -> TargetSums {
        self.lock().get(target).cloned().unwrap_or_default()
    }

    /// Makes the header of a report on request.
    pub(crate) fn header<'a>(
        &self,
        target: &'a TargetName,
        session: SessionId,
    ) -> ReportHeader<'a> {
        let totals = self.known(target).totals;
        ReportHeader { target, session, totals, reports_lost: self.writer.lost() }
    }

    /// Returns the number of reports that could not be written.
    pub(crate) fn reports_lost(&self) -> u64 {
        self.writer.lost()
    }

    /// Waits until all reports, slow calls and profiles are sent or given up.
    pub(super) fn finish(&self) {
        let spans = self.spans.iter().filter_map(Spans::close);
        let ending: Vec<_> = spans.chain(self.profiles.iter().flat_map(Profiles::close)).collect();
        self.writer.finish();
        self.fleet.finish();
        ending.into_iter().for_each(Ending::wait);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TargetName, TargetSums>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionSums {
    fn after(&self, snapshot: &Snapshot) -> Self {
        let spent = snapshot.cost().0;
        let cpu = snapshot.cpu.zip(self.cpu).map(|(now, before)| now.since(before).0);
        let sums = ReportTotals::of(&snapshot.report);
        let cost_percent = cpu.filter(|cpu| *cpu > 0).map(|cpu| 100.0 * spent as f64 / cpu as f64);
        let mut since_start = self.since_start;
        since_start.0.add(&sums);
        Self {
            last: Interval { sums: SeenTotals(sums), cost_percent },
            since_start,
            cpu: snapshot.cpu,
        }
    }
}
