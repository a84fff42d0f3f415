//! Parts of a recording, each with a report of its own: processes, threads, and threads of one name.

use super::open::Files;
use crate::cli::By;
use ctrace_core::{
    recording::Recording,
    report::{PartReport, ThreadReport},
    units::{Pid, ThreadId, Tid},
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

/// Each part takes a pass over the recording.
pub(super) const MOST_PARTS: usize = 64;

/// A part and its threads.
pub(super) struct Part {
    pub(super) report: PartReport,
    pub(super) threads: HashSet<ThreadId>,
    calls: u64,
}

/// A process, a thread or a name.
type Key = (Option<Pid>, Option<Tid>, Option<Arc<str>>);

impl By {
    fn key(self, pid: Pid, tid: Tid, name: &Arc<str>) -> Key {
        match self {
            Self::Process => (Some(pid), None, None),
            Self::Thread => (Some(pid), Some(tid), None),
            Self::Name => (None, None, Some(Arc::clone(name))),
        }
    }
}

/// Returns the parts that made calls, those with the most first, and the number of those left out.
/// `rows` are the threads of the whole report.
pub(super) fn parts(
    recording: &Recording<Files>,
    by: By,
    rows: &[ThreadReport],
) -> (Vec<Part>, usize) {
    let mut calls = BTreeMap::<Key, u64>::new();
    for ThreadReport { pid, tid, name, calls: more, .. } in rows {
        let sum = calls.entry(by.key(*pid, *tid, name)).or_default();
        *sum = sum.saturating_add(*more);
    }
    let mut parts = BTreeMap::<Key, Part>::new();
    for thread in recording.threads() {
        let key = by.key(thread.pid, thread.tid, &thread.name);
        let Some(calls) = calls.get(&key) else { continue };
        let (pid, tid, _) = key;
        let part = parts.entry(key).or_insert_with(|| Part {
            report: PartReport { pid, tid, name: Arc::clone(&thread.name) },
            threads: HashSet::new(),
            calls: *calls,
        });
        part.threads.insert(thread.id);
        if thread.tid.0 == thread.pid.0 {
            part.report.name = Arc::clone(&thread.name);
        }
    }
    let mut parts: Vec<Part> = parts.into_values().collect();
    parts.sort_by_key(|part| Reverse(part.calls));
    let left_out = parts.len().saturating_sub(MOST_PARTS);
    parts.truncate(MOST_PARTS);
    (parts, left_out)
}
