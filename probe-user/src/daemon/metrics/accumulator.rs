//! Snapshots in, families of metrics out: what all targets did since the daemon started.
//!
//! Pure: no clock, no kernel, no sockets.

use super::{
    catalog::Event,
    family::Families,
    latency::Edges,
    target::{SessionId, Target},
};
use crate::session::live::Snapshot;
use std::collections::{BTreeMap, HashMap};

/// How much is kept of each target.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Functions of a target that have series of their own.
    pub functions: usize,
    pub edges: Edges,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { functions: 300, edges: Edges::default() }
    }
}

pub struct Accumulator {
    bounds: Bounds,
    /// By name, so that they are told in the same order each time.
    targets: BTreeMap<String, Target>,
    sessions: HashMap<SessionId, String>,
    next: u64,
}

impl Accumulator {
    pub fn new(bounds: Bounds) -> Self {
        Self { bounds, targets: BTreeMap::new(), sessions: HashMap::new(), next: 0 }
    }

    /// Makes a target known, so that it is told before anything happens to it.
    pub fn add_target(&mut self, name: &str) {
        self.target(name);
    }

    fn target(&mut self, name: &str) -> &mut Target {
        if !self.targets.contains_key(name) {
            let target = Target::new(name, self.bounds.functions);
            self.targets.insert(name.to_owned(), target);
        }
        self.targets.get_mut(name).expect("it was made")
    }

    /// Forgets targets that are no longer in the configuration once nothing of them is traced.
    pub fn keep(&mut self, is_configured: impl Fn(&str) -> bool) {
        self.targets.retain(|name, target| is_configured(name) || target.sessions() > 0);
    }

    pub fn count(&mut self, target: &str, event: Event) {
        self.target(target).count(event);
    }

    pub fn start(&mut self, target: &str) -> SessionId {
        let id = SessionId(self.next);
        self.next += 1;
        self.target(target).start(id);
        self.sessions.insert(id, target.to_owned());
        id
    }

    /// An interval of a session is complete.
    pub fn observe(&mut self, id: SessionId, snapshot: &Snapshot) {
        if let Some(target) = self.sessions.get(&id).and_then(|name| self.targets.get_mut(name)) {
            target.observe(id, snapshot, &self.bounds.edges);
        }
    }

    /// Somebody looked at the present interval of a session.
    pub fn look(&mut self, id: SessionId, snapshot: &Snapshot) {
        if let Some(target) = self.sessions.get(&id).and_then(|name| self.targets.get_mut(name)) {
            target.look(id, snapshot, &self.bounds.edges);
        }
    }

    pub fn end(&mut self, id: SessionId) {
        if let Some(target) = self.sessions.remove(&id).and_then(|name| self.targets.get_mut(&name))
        {
            target.end(id);
        }
    }

    pub fn tell(&mut self, families: &mut Families) {
        self.targets.values_mut().for_each(|target| target.tell(families));
    }

    pub fn edges(&self) -> &Edges {
        &self.bounds.edges
    }
}
