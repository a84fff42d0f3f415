//! Functions for names that are known only at run time, one for each: those of marker scopes, and those of
//! calls whose values are their names.

use crate::engine::tracker::Tracker;
use crate::function::{FunctionInfo, FunctionKind, ProbeCost};
use crate::units::{FuncId, Nanos};
use std::collections::HashMap;
use std::sync::Arc;

/// Limit of names. A program can make up any number, and each costs memory in every report.
const MOST_NAMES: usize = 4_096;

/// The names that have come, by the scope or the pair of probes.
#[derive(Debug, Default)]
pub(super) struct LateNames {
    known: HashMap<FuncId, HashMap<Box<[u8]>, FuncId>>,
    /// Each name's function and its scope or pair, in the order in which they came.
    all: Vec<(FuncId, FuncId)>,
}

impl LateNames {
    /// Returns the function for a name of a scope or of a pair; `None` beyond the limit.
    pub(super) fn of(
        &mut self,
        scope: FuncId,
        name: &[u8],
        tracker: &mut Tracker,
    ) -> Option<FuncId> {
        if let Some(function) = self.known.get(&scope).and_then(|known| known.get(name)) {
            return Some(*function);
        }
        let info = tracker.functions.get(scope.index()).filter(|_| self.all.len() < MOST_NAMES)?;
        let text = String::from_utf8_lossy(name);
        if info.kind != FunctionKind::Marker {
            let mut aliases = info.aliases.clone();
            aliases.push(Arc::clone(&info.name));
            // The values are the name.
            let values = Vec::new();
            let name_of =
                FunctionInfo { name: text.into(), aliases, values, named_by: None, ..info.clone() };
            return Some(self.add(scope, name, name_of, tracker));
        }
        // Writing a name takes about a nanosecond a byte.
        let written = Nanos(name.len() as u64);
        let probe = info
            .probe
            .map(|cost| ProbeCost { call_ns: cost.call_ns.saturating_add(written), ..cost });
        let name_of = FunctionInfo { name: text.into(), probe, ..info.clone() };
        Some(self.add(scope, name, name_of, tracker))
    }

    fn add(
        &mut self,
        scope: FuncId,
        name: &[u8],
        info: FunctionInfo,
        tracker: &mut Tracker,
    ) -> FuncId {
        let function = tracker.add_function(info);
        self.known.entry(scope).or_default().insert(name.into(), function);
        self.all.push((function, scope));
        function
    }

    pub(super) fn all(&self) -> &[(FuncId, FuncId)] {
        &self.all
    }
}
