//! A choice of calls: those of some functions that took as long as asked for.

use super::cell::Span;
use crate::calls::paths::Node;
use crate::formats::Ended;
use crate::units::Nanos;
use std::ops::RangeInclusive;

/// A choice of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// True for functions whose calls are chosen, by id.
    functions: Vec<bool>,
    /// The durations of chosen calls. `None`: all, also those that are not known.
    durations: Option<RangeInclusive<Nanos>>,
}

impl Chosen {
    /// Chooses all calls of some functions: true for these, by id.
    pub fn of(functions: Vec<bool>) -> Self {
        Self { functions, durations: None }
    }

    /// Chooses only those of them whose ends were seen, and that took this long.
    pub fn lasting(self, durations: RangeInclusive<Nanos>) -> Self {
        Self { durations: Some(durations), ..self }
    }

    /// Returns the chosen functions, true for each by id.
    pub fn functions(&self) -> &[bool] {
        &self.functions
    }

    pub(super) fn has(&self, span: &Span, nodes: &[Node]) -> bool {
        let function = nodes[span.path as usize].func;
        let lasts = |durations: &RangeInclusive<Nanos>| {
            span.ended == Ended::Timed && durations.contains(&span.duration)
        };
        self.functions.get(function.index()).copied().unwrap_or(false)
            && self.durations.as_ref().is_none_or(lasts)
    }
}
