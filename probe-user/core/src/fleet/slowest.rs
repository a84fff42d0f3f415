//! The slowest calls of any number of files.

use super::FunctionNames;
use super::decode::SlowSeen;
use super::slow::{CalleeRow, OneCall};
use std::sync::Arc;

/// A call, and where it was.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowestCall {
    pub host: Arc<str>,
    pub unit: Arc<str>,
    pub target: Arc<str>,
    pub version: Option<Arc<str>>,
    pub names: Arc<FunctionNames>,
    pub call: OneCall,
    pub path: Vec<Arc<str>>,
    pub inside: Vec<CalleeRow>,
    pub lost_events: u64,
}

impl SlowestCall {
    /// Returns a key that orders calls, the slowest first.
    fn order(&self) -> impl Ord + '_ {
        let OneCall { duration_ns, start_ns, process, tid, .. } = self.call;
        (std::cmp::Reverse(duration_ns), start_ns, &self.host, &self.unit, process, tid)
    }
}

/// The slowest calls, in their order.
#[derive(Debug)]
pub struct Slowest {
    most: usize,
    calls: Vec<SlowestCall>,
}

impl Slowest {
    pub fn new(most: usize) -> Self {
        Self { most, calls: Vec::new() }
    }

    pub fn add(&mut self, host: &Arc<str>, unit: &Arc<str>, row: &SlowSeen<'_>) {
        let last = self.calls.last().filter(|_| self.calls.len() >= self.most);
        if last.is_some_and(|last| row.call.duration_ns < last.call.duration_ns) {
            return;
        }
        self.insert(SlowestCall {
            host: Arc::clone(host),
            unit: Arc::clone(unit),
            target: Arc::clone(row.target),
            version: row.version.cloned(),
            names: Arc::clone(row.names),
            call: row.call.clone(),
            path: row.path.to_vec(),
            inside: row.inside.to_vec(),
            lost_events: row.lost_events,
        });
    }

    fn insert(&mut self, call: SlowestCall) {
        let place = self.calls.partition_point(|other| other.order() <= call.order());
        self.calls.insert(place, call);
        self.calls.truncate(self.most);
    }

    /// Adds the calls of other files.
    pub fn merge(mut self, other: Self) -> Self {
        other.calls.into_iter().for_each(|call| self.insert(call));
        self
    }

    pub fn calls(&self) -> &[SlowestCall] {
        &self.calls
    }
}
