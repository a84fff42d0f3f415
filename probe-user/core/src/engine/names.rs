//! Functions for the names of marker scopes that are known only at run time: one for each name.

use crate::engine::tracker::Tracker;
use crate::function::FunctionInfo;
use crate::units::FuncId;
use std::collections::HashMap;

/// Limit of names. A program can make up any number, and each costs memory in every report.
const MOST_NAMES: usize = 4_096;

/// The names that have come, by scope.
#[derive(Debug, Default)]
pub(super) struct ScopeNames {
    known: HashMap<FuncId, HashMap<Box<[u8]>, FuncId>>,
    count: usize,
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
        let info = tracker.functions.get(scope.index()).filter(|_| self.count < MOST_NAMES)?;
        let text = String::from_utf8_lossy(name);
        let name_of = FunctionInfo { name: text.into(), ..info.clone() };
        let function = tracker.add_function(name_of);
        known.insert(name.into(), function);
        self.count += 1;
        Some(function)
    }
}
