//! Identifies functions across reports. Their places change when functions are armed late, or turn
//! out not to be armed at all.

use ctrace_core::{
    function::FunctionKind,
    report::{FunctionReport, Report, render::rows::is_never_called},
};
use std::{collections::HashMap, sync::Arc};

/// The id of a function, valid while the screen is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RowId(pub(crate) usize);

/// The identity of a function. Several functions may share the first four parts; the last part
/// numbers them in order.
type Key = (Arc<str>, Arc<str>, FunctionKind, Option<Arc<str>>, usize);

#[derive(Clone, Debug, Default)]
pub(crate) struct Catalogue {
    ids: HashMap<Key, RowId>,
    /// By id: true if the function had an event.
    seen: Vec<bool>,
}

impl Catalogue {
    /// Returns the ids of a report's functions, in their order.
    pub(crate) fn ids_of(&mut self, report: &Report) -> Vec<RowId> {
        let mut namesakes = HashMap::<(&str, &str), usize>::new();
        let ids = report.functions.iter().map(|function| {
            let namesake = namesakes.entry((&function.name, &function.object)).or_default();
            *namesake += 1;
            let id = self.id(function, *namesake);
            self.seen[id.0] |= !is_never_called(function);
            id
        });
        ids.collect()
    }

    fn id(&mut self, function: &FunctionReport, namesake: usize) -> RowId {
        let FunctionReport { name, object, kind, group, .. } = function;
        let key = (Arc::clone(name), Arc::clone(object), *kind, group.clone(), namesake);
        let next = RowId(self.seen.len());
        let id = *self.ids.entry(key).or_insert(next);
        if id == next {
            self.seen.push(false);
        }
        id
    }

    /// Returns whether the function was ever entered.
    pub(crate) fn is_seen(&self, id: RowId) -> bool {
        self.seen.get(id.0).copied().unwrap_or(false)
    }
}
