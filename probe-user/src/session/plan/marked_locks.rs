//! Decides whether the locks of which markers tell are followed: who holds one is known only from all of
//! its events.

use super::Plan;
use crate::target::{markers::MarkerScope, object::Object};
use ctrace_core::locks;

/// How the session treats such locks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MarkedLocks {
    /// Nobody would see them.
    #[default]
    Unwanted,
    Followed,
    /// This option leaves out single events.
    Against(&'static str),
}

impl MarkedLocks {
    /// Returns whether the chosen scopes of an object that tell of locks do so. If somebody wants to see
    /// them and they do not, a note says why.
    pub(super) fn follows(self, object: &Object, chosen: &[&MarkerScope], plan: &mut Plan) -> bool {
        let number = chosen.iter().filter(|scope| is_of_locks(scope)).count();
        let all = object.markers().scopes.iter().filter(|scope| is_of_locks(scope)).count();
        let against = match self {
            _ if number == 0 => return false,
            Self::Unwanted => return false,
            Self::Followed if number == all => return true,
            Self::Followed => format!("{} of {all} markers of the group locks are chosen", number),
            Self::Against(option) => format!("{option} leaves out some"),
        };
        plan.notes.push(format!(
            "who waits for the locks of {}, and who holds them, is known only from all of their events, and \
             {against}",
            object.name()
        ));
        false
    }
}

pub(super) fn is_of_locks(scope: &MarkerScope) -> bool {
    locks::is_marked(scope.group.as_deref(), &scope.name, &scope.values)
}
