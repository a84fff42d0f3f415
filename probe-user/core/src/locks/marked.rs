//! Locks that markers tell of: `ctrace_marker::Mutex`, `RwLock` with `Condvar`, and `ctrace::lockable` of
//! `ctrace.h`.
//!
//! A lock that is free is taken with one point, another one with a scope around the wait. So it is known
//! for sure who has waited.

use super::{LOCK, LockFunction, Mode, Operation, of_mutex, of_rwlock};
use crate::function::{FunctionInfo, FunctionKind, ValueInfo};

/// The group of the markers.
const GROUP: &str = "locks";
/// The marker that tells the name of a lock, and its value that is the name.
const NAMING: &str = "lock name";
pub(super) const NAME: &str = "name";

/// `again`: the thread may hold the lock already. Whoever does, does not wait for it.
const fn gets_mutex(name: &'static str, operation: Operation, again: bool) -> LockFunction {
    LockFunction { recursive: Some(again), ..of_mutex(name, operation) }
}

static EVENTS: [LockFunction; 12] = [
    gets_mutex("mutex wait", Operation::Wait(Mode::Exclusive), false),
    gets_mutex("condition wait", Operation::Await, false),
    gets_mutex("mutex lock", Operation::Took(Mode::Exclusive), false),
    gets_mutex("recursive mutex lock", Operation::Took(Mode::Exclusive), true),
    of_mutex("mutex unlock", Operation::Release),
    of_mutex("mutex refused", Operation::Refused),
    of_rwlock("rwlock read wait", Operation::Wait(Mode::Shared)),
    of_rwlock("rwlock read lock", Operation::Took(Mode::Shared)),
    of_rwlock("rwlock write wait", Operation::Wait(Mode::Exclusive)),
    of_rwlock("rwlock write lock", Operation::Took(Mode::Exclusive)),
    of_rwlock("rwlock unlock", Operation::Release),
    of_rwlock("rwlock refused", Operation::Refused),
];

fn has_lock(values: &[ValueInfo]) -> bool {
    values.iter().any(|value| &*value.name == LOCK && value.kind.is_integer())
}

/// Returns whether a marker with this group, name and values is one of those that tell of locks.
pub fn is_marked(group: Option<&str>, name: &str, values: &[ValueInfo]) -> bool {
    let is_known = || name == NAMING || EVENTS.iter().any(|event| event.name == name);
    group == Some(GROUP) && has_lock(values) && is_known()
}

/// Returns which event of a lock a marker is.
pub(super) fn event_of(info: &FunctionInfo) -> Option<&'static LockFunction> {
    if info.group.as_deref() != Some(GROUP) || !has_lock(&info.values) {
        return None;
    }
    let name = own_name(info);
    let event = EVENTS.iter().find(|event| event.name == name)?;
    // Only a scope has an end.
    let is_scope = matches!(event.operation, Operation::Wait(_) | Operation::Await);
    (is_scope != info.is_point()).then_some(event)
}

/// Returns the places of the lock and of its name among the values of a marker, if it tells names.
pub(crate) fn naming(info: &FunctionInfo) -> Option<(usize, usize)> {
    let is_one = info.kind == FunctionKind::Marker
        && info.group.as_deref() == Some(GROUP)
        && own_name(info) == NAMING;
    let place = |name: &str| info.values.iter().position(|value| &*value.name == name);
    is_one.then(|| Some((place(LOCK)?, place(NAME)?))).flatten()
}

/// Returns the name without the group.
fn own_name(info: &FunctionInfo) -> &str {
    let name = &**info.short();
    name.strip_prefix(GROUP).and_then(|name| name.strip_prefix('/')).unwrap_or(name)
}
