//! Names and ids of what stands in the place of threads: goroutines in functions of Go, and lanes of calls of
//! async functions.

use crate::async_lanes::lane;
use crate::units::Tid;
use ctrace_common::{goroutine_id, is_goroutine};
use std::sync::Arc;

/// The name of goroutines by their descriptors, and the first word in the names of the others.
const GOROUTINE: &str = "goroutine";
/// The first word in the names of lanes.
const ASYNC: &str = "async";

/// Returns the name with which a thread begins: no change of its process tells that of a goroutine.
pub(crate) fn first_name(tid: Tid) -> Arc<str> {
    match (goroutine_id(tid.0), lane(tid)) {
        (Some(id), _) => format!("{GOROUTINE} {id}").into(),
        (None, Some(lane)) => format!("{ASYNC} {lane}").into(),
        (None, None) if is_goroutine(tid.0) => GOROUTINE.into(),
        (None, None) => "".into(),
    }
}

/// Returns the name that all goroutines have in common, or all lanes.
pub fn common_name(tid: Tid) -> Option<&'static str> {
    let goroutine = is_goroutine(tid.0).then_some(GOROUTINE);
    goroutine.or_else(|| lane(tid).map(|_| ASYNC))
}

/// Returns the id to show beside a thread's name. `None` where the name has Go's own, or that of a lane.
pub fn id_beside_name(tid: Tid, name: &str) -> Option<u32> {
    if lane(tid).is_some() && *first_name(tid) == *name {
        return None;
    }
    let mut words = name.split(' ');
    let has_id = words.next() == Some(GOROUTINE) && words.next().is_some();
    (!has_id || goroutine_id(tid.0).is_none()).then_some(tid.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_gos_id_needs_no_other() {
        let [known, by_address, thread] = [Tid(1 << 30 | 17), Tid(3 << 29 | 17), Tid(17)];
        let named = |tid| (first_name(tid), id_beside_name(tid, &first_name(tid)));
        assert_eq!(named(known), ("goroutine 17".into(), None));
        assert_eq!(named(by_address), ("goroutine".into(), Some(by_address.0)));
        assert_eq!(named(thread), ("".into(), Some(17)));
        assert_eq!(named(Tid(1 << 29 | 17)), ("async 17".into(), None));
        assert_eq!(common_name(Tid(1 << 29 | 17)), Some("async"));
        for other in ["", "goroutine"] {
            assert_eq!(id_beside_name(known, other), Some(known.0), "an older recording");
        }
        assert_eq!(id_beside_name(thread, "goroutine 18"), Some(17), "a thread of that name");
        let common = [known, by_address, thread].map(common_name);
        assert_eq!(common, [Some("goroutine"), Some("goroutine"), None]);
    }
}
