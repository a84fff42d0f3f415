//! Turns snapshots into metric families: the sums of all targets since the daemon started.
//!
//! Pure: no clock, no kernel, no sockets.

use super::{
    by_value::CallsOfValue, catalog::TargetEvent, family::Families, latency::Edges,
    plots::NumbersOfPlot, target::TargetMetrics,
};
use crate::{daemon::ids::SessionId, session::keep::live::Snapshot};
use std::collections::{BTreeMap, HashMap};

/// The limits for each target.
#[derive(Clone, Debug)]
pub(crate) struct Bounds {
    /// The number of functions of a target with their own series.
    pub functions: usize,
    pub edges: Edges,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { functions: 300, edges: Edges::default() }
    }
}

pub(crate) struct Accumulator {
    bounds: Bounds,
    /// Sorted by name, so that the output order is stable.
    targets: BTreeMap<String, TargetMetrics>,
    sessions: HashMap<SessionId, String>,
}

impl Accumulator {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { bounds, targets: BTreeMap::new(), sessions: HashMap::new() }
    }

    /// Adds a target, so that it has metrics before anything happens to it. `budget` is in percent.
    pub(crate) fn add_target(&mut self, name: &str, budget: Option<f64>) {
        self.target(name).budget = budget;
    }

    fn target(&mut self, name: &str) -> &mut TargetMetrics {
        if !self.targets.contains_key(name) {
            let target = TargetMetrics::new(name, self.bounds.functions);
            self.targets.insert(name.to_owned(), target);
        }
        self.targets.get_mut(name).expect("it was made")
    }

    /// Forgets targets that have left the configuration and have no sessions.
    pub(crate) fn keep(&mut self, is_configured: impl Fn(&str) -> bool) {
        self.targets.retain(|name, target| is_configured(name) || target.sessions() > 0);
    }

    /// Adds a session that is about to begin.
    pub(crate) fn begin(&mut self, id: SessionId, target: &str) {
        self.target(target).begin(id);
        self.sessions.insert(id, target.to_owned());
    }

    /// Records that a session's probes are in place.
    pub(crate) fn armed(&mut self, id: SessionId) {
        if let Some(target) = self.target_of(id) {
            target.armed(id);
        }
    }

    /// Adds a finished interval of a session.
    pub(crate) fn observe(&mut self, id: SessionId, snapshot: &Snapshot) {
        let edges = self.bounds.edges.clone();
        if let Some(target) = self.target_of(id) {
            target.observe(id, snapshot, &edges);
        }
    }

    /// Adds calls of a session by their values of this name. `most` values have series of their own.
    pub(crate) fn observe_values(
        &mut self,
        id: SessionId,
        argument: &str,
        most: usize,
        calls: Vec<CallsOfValue>,
    ) {
        if let Some(target) = self.target_of(id) {
            target.observe_values(argument, most, calls);
        }
    }

    /// Records that calls of a session are told apart by their values no more.
    pub(crate) fn lose_values(&mut self, id: SessionId) {
        if let Some(target) = self.target_of(id) {
            target.lose_values();
        }
    }

    /// Adds numbers that a session's process plotted.
    pub(crate) fn observe_plots(&mut self, id: SessionId, numbers: Vec<NumbersOfPlot>) {
        if let Some(target) = self.target_of(id) {
            target.plots.add(id, numbers);
        }
    }

    /// Records that plots of a session are counted no more.
    pub(crate) fn lose_plots(&mut self, id: SessionId) {
        if let Some(target) = self.target_of(id) {
            target.count(TargetEvent::PlotsLost);
        }
    }

    /// Takes a look at the current interval of a session.
    pub(crate) fn look(&mut self, id: SessionId, snapshot: &Snapshot) {
        let edges = self.bounds.edges.clone();
        if let Some(target) = self.target_of(id) {
            target.look(id, snapshot, &edges);
        }
    }

    /// Ends a session. One that was never armed has failed.
    pub(crate) fn end(&mut self, id: SessionId) {
        if let Some(target) = self.target_of(id) {
            target.end(id);
        }
        self.sessions.remove(&id);
    }

    fn target_of(&mut self, id: SessionId) -> Option<&mut TargetMetrics> {
        self.targets.get_mut(self.sessions.get(&id)?)
    }

    pub(crate) fn tell(&mut self, families: &mut Families) {
        self.targets.values_mut().for_each(|target| target.tell(families));
    }

    #[cfg(test)]
    pub(super) fn edges(&self) -> &Edges {
        &self.bounds.edges
    }
}
