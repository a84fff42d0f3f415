//! Functions for the names of marker scopes that are known only at run time: one for each name.

use crate::engine::tracker::Tracker;
use crate::function::{FunctionInfo, ProbeCost};
use crate::units::{FuncId, Nanos};
use std::collections::HashMap;

/// Limit of names. A program can make up any number, and each costs memory in every report.
const MOST_NAMES: usize = 4_096;

/// The names that have come, by scope.
#[derive(Debug, Default)]
pub(super) struct ScopeNames {
    known: HashMap<FuncId, HashMap<Box<[u8]>, FuncId>>,
    /// Each name's function and its scope, in the order in which they came.
    all: Vec<(FuncId, FuncId)>,
}

impl ScopeNames {
    /// Returns the function for a name of a scope; `None` beyond the limit.
    pub(super) fn of(
        &mut self,
        scope: FuncId,
        name: &[u8],
        tracker: &mut Tracker,
    ) -> Option<FuncId> {
        let known = self.known.entry(scope).or_default();
        if let Some(function) = known.get(name) {
            return Some(*function);
        }
        let info = tracker.functions.get(scope.index()).filter(|_| self.all.len() < MOST_NAMES)?;
        let text = String::from_utf8_lossy(name);
        // Writing a name takes about a nanosecond a byte.
        let written = Nanos(name.len() as u64);
        let probe = info
            .probe
            .map(|cost| ProbeCost { call_ns: cost.call_ns.saturating_add(written), ..cost });
        let name_of = FunctionInfo { name: text.into(), probe, ..info.clone() };
        let function = tracker.add_function(name_of);
        known.insert(name.into(), function);
        self.all.push((function, scope));
        Some(function)
    }

    pub(super) fn all(&self) -> &[(FuncId, FuncId)] {
        &self.all
    }
}
