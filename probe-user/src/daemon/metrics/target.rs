//! The metrics of one configured target and its sessions.
//!
//! A session is in one interval at a time. Finished intervals are summed up. Of the current one,
//! only the last look is kept; the next look or the finished interval replaces it. So nothing is
//! counted twice, however often somebody looks.

use super::{
    amounts::{Amounts, Rising},
    by_value::{CallsOfValue, Values},
    catalog::{
        self, EVENTS, LOSS_KINDS, OF_EVENT, OF_FUNCTION, OF_LOSS, OF_TARGET, TARGET_SUMS,
        TargetEvent,
    },
    family::{Families, Labels},
    latency::Edges,
    names,
    plots::Plots,
    series::{Functions, SeriesRow},
};
use crate::{daemon::ids::SessionId, session::keep::live::Snapshot};
use ctrace_core::units::{Nanos, saturating_sum};
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// The data of a session in a stretch of time.
#[derive(Default)]
struct Stretch {
    sums: Amounts<TARGET_SUMS>,
    losses: Amounts<LOSS_KINDS>,
    rows: Vec<SeriesRow>,
}

#[derive(Default)]
struct Session {
    is_armed: bool,
    /// Intervals up to this time are in the sums.
    ended_to: Nanos,
    cpu: Option<Nanos>,
    present: Stretch,
}

pub(super) struct TargetMetrics {
    name: Arc<str>,
    functions: Functions,
    /// Calls by a value, by its name: the configuration may choose another.
    values: BTreeMap<Arc<str>, Values>,
    pub(super) plots: Plots,
    sums: Rising<TARGET_SUMS>,
    losses: Rising<LOSS_KINDS>,
    cpu: Nanos,
    events: [u64; EVENTS],
    /// The budget in percent.
    pub(super) budget: Option<f64>,
    sessions: HashMap<SessionId, Session>,
}

impl TargetMetrics {
    pub(super) fn new(name: &str, most_functions: usize) -> Self {
        let name = names::label(name);
        Self {
            functions: Functions::new(Arc::clone(&name), most_functions),
            name,
            values: BTreeMap::new(),
            plots: Plots::default(),
            sums: Rising::default(),
            losses: Rising::default(),
            cpu: Nanos::ZERO,
            events: [0; EVENTS],
            budget: None,
            sessions: HashMap::new(),
        }
    }

    pub(super) fn count(&mut self, event: TargetEvent) {
        let count = &mut self.events[event as usize];
        *count = count.saturating_add(1);
    }

    pub(super) fn begin(&mut self, id: SessionId) {
        self.sessions.insert(id, Session::default());
    }

    pub(super) fn armed(&mut self, id: SessionId) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.is_armed = true;
            self.count(TargetEvent::Started);
        }
    }

    /// Takes in a finished interval.
    pub(super) fn observe(&mut self, id: SessionId, snapshot: &Snapshot, edges: &Edges) {
        let stretch = self.stretch(snapshot, edges);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if snapshot.report.end_ns <= session.ended_to {
            return;
        }
        session.ended_to = snapshot.report.end_ns;
        self.plots.end_interval(id);
        self.cpu = self.cpu.saturating_add(session.used(snapshot.cpu));
        session.present = Stretch { rows: stretch.still(), ..Stretch::default() };
        self.add(&stretch);
        self.count(TargetEvent::Interval);
    }

    /// Takes in calls by their values of this name.
    pub(super) fn observe_values(&mut self, argument: &str, most: usize, calls: Vec<CallsOfValue>) {
        if !self.values.contains_key(argument) {
            self.values.insert(argument.into(), Values::new(argument, most));
        }
        if let Some(values) = self.values.get_mut(argument) {
            // The configuration may be another one since the last session.
            values.set_most(most);
            values.add(calls);
        }
    }

    /// Records that calls of a session are told apart by their values no more.
    pub(super) fn lose_values(&mut self) {
        self.count(TargetEvent::ValuesLost);
    }

    /// Takes in the current interval so far.
    pub(super) fn look(&mut self, id: SessionId, snapshot: &Snapshot, edges: &Edges) {
        let stretch = self.stretch(snapshot, edges);
        let Some(session) = self.sessions.get_mut(&id) else { return };
        if snapshot.report.start_ns < session.ended_to {
            return;
        }
        self.cpu = self.cpu.saturating_add(session.used(snapshot.cpu));
        session.present = stretch;
    }

    /// Ends a session. If its last interval was not finished, the last look counts.
    pub(super) fn end(&mut self, id: SessionId) {
        self.plots.end_session(id);
        if let Some(session) = self.sessions.remove(&id) {
            self.count(if session.is_armed {
                TargetEvent::Ended
            } else {
                TargetEvent::AttachFailed
            });
            self.add(&session.present);
        }
    }

    pub(super) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    fn stretch(&mut self, snapshot: &Snapshot, edges: &Edges) -> Stretch {
        Stretch {
            sums: Amounts(OF_TARGET.each_ref().map(|sum| (sum.of)(snapshot))),
            losses: Amounts(OF_LOSS.map(|(_, of)| of(&snapshot.report.loss))),
            rows: self.functions.rows(snapshot, edges),
        }
    }

    fn add(&mut self, stretch: &Stretch) {
        self.sums.ended.add(&stretch.sums);
        self.losses.ended.add(&stretch.losses);
        stretch.rows.iter().for_each(|row| self.functions.add(row));
    }

    pub(super) fn tell(&mut self, families: &mut Families) {
        self.tell_functions(families);
        self.values.values().for_each(|values| values.tell(&self.name, families));
        self.plots.tell(&self.name, families);
        let labels = || -> Labels { vec![("target", Arc::clone(&self.name))] };
        let present = || self.sessions.values().map(|session| &session.present);
        let sums = self.sums.show(present().map(|present| &present.sums));
        for (sum, value) in OF_TARGET.iter().zip(sums.0) {
            families.push(&sum.metric, labels(), sum.metric.value(value));
        }
        families.push(&catalog::CPU, labels(), catalog::CPU.value(self.cpu.0));
        let losses = self.losses.show(present().map(|present| &present.losses));
        for ((kind, _), lost) in OF_LOSS.iter().zip(losses.0) {
            let labels = labels().into_iter().chain([("kind", (*kind).into())]).collect();
            families.push(&catalog::LOSSES, labels, lost as f64);
        }
        for (metric, count) in OF_EVENT.iter().zip(self.events) {
            families.push(metric, labels(), count as f64);
        }
        let armed = self.sessions.values().filter(|session| session.is_armed).count();
        families.push(&catalog::PROCESSES, labels(), armed as f64);
        families.push(&catalog::FUNCTIONS, labels(), self.functions.len() as f64);
        families.push(&catalog::IN_OTHER, labels(), self.functions.left_out() as f64);
        let rows = self.sessions.values().flat_map(|session| &session.present.rows);
        let sampled = rows.filter(|row| row.is_sampled).count();
        families.push(&catalog::SAMPLED, labels(), sampled as f64);
        if let Some(percent) = self.budget {
            families.push(&catalog::BUDGET, labels(), percent / 100.0);
        }
    }

    fn tell_functions(&mut self, families: &mut Families) {
        let present = self.sessions.values().flat_map(|session| &session.present.rows);
        for (series, rows) in self.functions.with(present) {
            let labels = &series.labels;
            let sums = series.sums.show(rows.iter().map(|row| &row.sums));
            for (sum, value) in OF_FUNCTION.iter().zip(sums.0) {
                families.push(&sum.metric, labels.clone(), sum.metric.value(value));
            }
            let open = saturating_sum(rows.iter().map(|row| row.open));
            families.push(&catalog::OPEN_CALLS, labels.clone(), open as f64);
            let mut latency = series.latency.clone();
            rows.iter().for_each(|row| latency.add(&row.latency));
            families.push_latency(&catalog::DURATION, labels.clone(), latency);
        }
    }
}

impl Session {
    /// Returns the CPU time since the last look. The first look returns 0: the process may be old.
    fn used(&mut self, cpu: Option<Nanos>) -> Nanos {
        let before = self.cpu;
        self.cpu = cpu.max(before);
        cpu.zip(before).map_or(Nanos::ZERO, |(now, before)| now.since(before))
    }
}

impl Stretch {
    /// Returns the rows that outlast the stretch until there is new data: open calls, and sampled
    /// functions.
    fn still(&self) -> Vec<SeriesRow> {
        let rows = self.rows.iter().filter(|row| row.open > 0 || row.is_sampled);
        let rows = rows.map(|row| SeriesRow {
            place: row.place,
            open: row.open,
            is_sampled: row.is_sampled,
            sums: Amounts::default(),
            latency: Default::default(),
        });
        rows.collect()
    }
}
