//! The slowest calls of an interval, each with its direct callees: for the tables of a fleet alone.
//! The slowest calls that a reader of a recording asks for are in [`super::calls`].

use crate::units::{Nanos, Pid, Tid};
use std::sync::Arc;

/// The rule by which an engine keeps slow calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowAsked {
    /// The number of calls of each function; 0: none at all.
    pub most: usize,
    /// Shorter calls are never kept.
    pub from: Nanos,
}

impl SlowAsked {
    pub const NONE: Self = Self { most: 0, from: Nanos::ZERO };
}

/// A timed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowCall {
    /// Index in `functions` of the report, as on the path.
    pub function: usize,
    /// The functions from the thread's first traced frame to this one.
    pub path: Vec<usize>,
    pub pid: Pid,
    pub tid: Tid,
    /// Name of the thread.
    pub thread: Arc<str>,
    pub start_ns: Nanos,
    pub duration_ns: Nanos,
    /// Its direct callees, those that took most first. `None` if they are not known.
    pub inside: Option<Vec<Callee>>,
}

/// All calls of one function that a call made itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Callee {
    pub function: usize,
    pub calls: u64,
    pub total_ns: Nanos,
}

impl SlowCall {
    /// Returns its duration without its direct callees.
    pub fn self_ns(&self) -> Option<Nanos> {
        let callees = self.inside.as_ref()?.iter();
        let callees = callees.fold(Nanos::ZERO, |sum, of| sum.saturating_add(of.total_ns));
        Some(self.duration_ns.since(callees))
    }

    /// Returns all its references to functions.
    pub(super) fn functions_mut(&mut self) -> impl Iterator<Item = &mut usize> {
        let Self { function, path, inside, .. } = self;
        let inside = inside.iter_mut().flatten().map(|callee| &mut callee.function);
        inside.chain(path).chain([function])
    }
}
