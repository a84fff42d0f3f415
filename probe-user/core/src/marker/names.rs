//! Names of scopes that are known only at run time: they come with entries, and exits lack them.

use super::objects::Request;
use super::pieces::EntryValues;
use crate::ingest::event::Event;
use crate::units::{FuncId, Tid};
use std::collections::HashMap;

/// The receiver of the events of marker buffers.
pub trait MarkerSink {
    /// Takes events of a lane, in order of time.
    fn events(&mut self, lane: usize, events: &[Event]);

    /// Returns the function that stands for this name of a scope; `None` if there are too many.
    fn named(&mut self, scope: FuncId, name: &[u8]) -> Option<FuncId>;

    /// Takes the values of an event, before the event itself; `None` if they are not all there.
    fn values(&mut self, event: &Event, values: Option<EntryValues<'_>>);

    /// Takes a request of the program. By default nobody answers.
    fn asked(&mut self, _: Request) {}
}

/// Takes events of scopes whose names are in their files, without values.
pub struct EventsOnly<F: FnMut(usize, &[Event])>(pub F);

impl<F: FnMut(usize, &[Event])> MarkerSink for EventsOnly<F> {
    fn events(&mut self, lane: usize, events: &[Event]) {
        self.0(lane, events);
    }

    fn named(&mut self, _: FuncId, _: &[u8]) -> Option<FuncId> {
        None
    }

    fn values(&mut self, _: &Event, _: Option<EntryValues<'_>>) {}
}

/// A scope that was entered and not left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct OpenScope {
    pub(super) tid: Tid,
    pub(super) site: u64,
    pub(super) sp: u64,
}

/// Limit of open scopes in a process. Those that a jump left stay until they are entered again.
const MOST_OPEN: usize = 1 << 16;

/// The functions of a process's open scopes, as their entries named them.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenNames(HashMap<OpenScope, FuncId>);

impl OpenNames {
    /// Notes an entry. Beyond the limit all are forgotten: the ends of these calls count as unseen.
    pub(super) fn enter(&mut self, scope: OpenScope, named: Option<FuncId>) {
        match named {
            None => {
                self.0.remove(&scope);
            }
            Some(function) => {
                if self.0.len() >= MOST_OPEN && !self.0.contains_key(&scope) {
                    self.0.clear();
                }
                self.0.insert(scope, function);
            }
        }
    }

    /// Takes the function of the scope that is left, if its entry named one.
    pub(super) fn leave(&mut self, scope: OpenScope) -> Option<FuncId> {
        self.0.remove(&scope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(sp: u64) -> OpenScope {
        OpenScope { tid: Tid(7), site: 32, sp }
    }

    #[test]
    fn an_exit_has_the_name_of_its_entry() {
        let mut names = OpenNames::default();
        names.enter(scope(1), Some(FuncId(4)));
        names.enter(scope(2), Some(FuncId(5)));
        assert_eq!(names.leave(scope(1)), Some(FuncId(4)));
        assert_eq!((names.leave(scope(1)), names.leave(scope(2))), (None, Some(FuncId(5))));
        names.enter(scope(1), Some(FuncId(4)));
        names.enter(scope(1), None);
        assert_eq!(names.leave(scope(1)), None, "the later entry has no name");
    }

    #[test]
    fn scopes_that_are_never_left_are_bounded() {
        let mut names = OpenNames::default();
        (0..1_000_000).for_each(|sp| names.enter(scope(sp), Some(FuncId(1))));
        assert!(names.0.len() <= MOST_OPEN);
        assert_eq!(names.leave(scope(999_999)), Some(FuncId(1)));
    }
}
