//! Facts of a recording that a page needs before the first picture. All names are harmless.

use super::Timeline;
use super::pyramid::ThreadFacts;
use crate::formats::labels::{self, Labels};
use crate::recording::Recording;
use crate::recording::replay::report::{damage, notes};
use crate::units::ThreadId;
use serde::Serialize;
use std::collections::BTreeMap;

/// Threads that are listed, those with the most calls.
const MOST_THREADS: usize = 10_000;

/// A recording, with times in nanoseconds since its start.
#[derive(Debug, Serialize)]
pub struct About {
    /// The file name of the recorded program.
    pub program: String,
    /// The length of the recording.
    pub length_ns: u64,
    /// The number of calls, those open at the end included.
    pub calls: u64,
    /// The functions, by id.
    pub functions: Vec<FunctionAbout>,
    /// The threads that have calls, in the order in which they began.
    pub threads: Vec<ThreadAbout>,
    /// Remarks, such as on what is missing.
    pub notes: Vec<String>,
}

/// A function.
#[derive(Debug, Serialize)]
pub struct FunctionAbout {
    /// Its name, as exports have it.
    pub name: String,
    /// The program or library that contains it.
    pub object: String,
}

/// A thread.
#[derive(Debug, Serialize)]
pub struct ThreadAbout {
    /// Its id in this recording.
    pub id: u32,
    /// Its process.
    pub pid: u32,
    /// Its system thread id.
    pub tid: u32,
    /// Its last name.
    pub name: String,
    /// The number of its rows.
    pub depths: u32,
    /// The number of its calls.
    pub calls: u64,
    /// The time at which its first call began. It may be before the start.
    pub first_ns: i64,
    /// The time at which its last call ended.
    pub last_ns: i64,
}

impl Timeline {
    /// Describes the recording.
    pub fn about(&self, recording: &Recording) -> About {
        of(recording, self.threads(), self.unreadable_calls())
    }
}

/// Describes a recording with these threads.
pub(super) fn of(
    recording: &Recording,
    facts: &BTreeMap<ThreadId, ThreadFacts>,
    unreadable_calls: u64,
) -> About {
    let (start, end) = recording.period();
    let since = |time: crate::units::Nanos| time.0.wrapping_sub(start.0) as i64;
    let mut threads: Vec<ThreadAbout> = facts
        .iter()
        .map(|(id, facts)| {
            let label = labels::thread(recording, *id);
            ThreadAbout {
                id: id.0,
                pid: label.pid,
                tid: label.tid,
                name: label.name,
                depths: facts.depths,
                calls: facts.calls,
                first_ns: since(facts.first),
                last_ns: since(facts.last),
            }
        })
        .collect();
    let left_out = threads.len().saturating_sub(MOST_THREADS);
    if left_out > 0 {
        threads.sort_by_key(|thread| (std::cmp::Reverse(thread.calls), thread.id));
        threads.truncate(MOST_THREADS);
    }
    threads.sort_by_key(|thread| (thread.pid, thread.first_ns, thread.id));
    let names = Labels::of(recording);
    let functions = recording.functions().iter().zip(names.all());
    let functions = functions.map(|(function, name)| FunctionAbout {
        name: name.clone(),
        object: labels::text(&function.object),
    });
    let mut notes: Vec<String> = notes(recording);
    notes.extend(damage(unreadable_calls));
    if left_out > 0 {
        notes.push(format!("{left_out} threads are not shown: those with the fewest calls"));
    }
    About {
        program: labels::target(&recording.start().target),
        length_ns: end.since(start).0,
        calls: facts.values().map(|thread| thread.calls).sum(),
        functions: functions.collect(),
        threads,
        notes: notes.iter().map(|note| labels::text(note)).collect(),
    }
}
