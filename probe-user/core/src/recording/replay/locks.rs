//! Locks, from the calls of the functions that take and release them.
//!
//! Who waits for whom only the order of the events of all threads tells. So the chunks are read one
//! after another, from the first one on, and whatever functions and times are asked for: who holds a lock
//! now has perhaps taken it long before. A call is in the chunk in which it ended, but a release counts
//! from its beginning: a first pass finds the calls that begin in an earlier chunk.

mod calls;
mod names;
mod rows;
mod stretches;
mod waits;

use super::count::FirstPass;
use super::lens::Lens;
use super::select::{CallReader, each_part};
use super::values::{payloads_among, payloads_in};
use crate::locks::event::LockEvent;
use crate::locks::ledger::Ledger;
use crate::recording::{ChunkEntry, ChunkLoss, Recording};
use crate::report::LocksReport;
use calls::{LockCalls, OpenCalls};
use names::LockNames;
use rows::of_facts;
use std::cmp::Reverse;
use std::ops::Range;
use stretches::{Stretches, gap};
pub(crate) use waits::{LockWaits, WaitChange, lock_waits};

/// The findings of a first pass in some chunks.
#[derive(Default)]
struct Ahead {
    /// The first events of calls that end in a later chunk.
    early: Vec<LockEvent>,
    /// The times of chunks that tell of losses.
    telling: Vec<Range<u64>>,
}

/// All that the calls tell about locks.
struct Followed<'a> {
    ledger: Ledger,
    names: LockNames<'a>,
    lossy_stretches: u64,
    /// As in [`OpenCalls`].
    unknown_waits: u64,
}

/// Returns the locks that the calls of the chosen threads are about. Only what happens in the window
/// counts.
pub(crate) fn locks(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
) -> LocksReport {
    let Some(followed) = follow(recording, lens, chunks, counted, Ledger::default()) else {
        return LocksReport::default();
    };
    let Followed { ledger, names, lossy_stretches, unknown_waits } = followed;
    let other_events = ledger.beyond;
    let mut locks: Vec<_> =
        ledger.finish().into_iter().map(|facts| of_facts(recording, &names, facts)).collect();
    locks.sort_by_key(|lock| {
        let open = lock.open_wait_max_ns.unwrap_or_default().0;
        Reverse((lock.wait_ns.0.saturating_add(open), lock.acquisitions))
    });
    LocksReport { locks, other_events, lossy_stretches, unknown_open_waits: unknown_waits }
}

/// Shows all events of locks to a ledger. `None` if no function is about locks.
fn follow<'a>(
    recording: &'a Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    mut ledger: Ledger,
) -> Option<Followed<'a>> {
    let calls = LockCalls::new(recording);
    let last = chunks.last().filter(|_| calls.are_possible())?;
    let window = lens.window.start..lens.window.end.min(last.to.0);
    let query = lens.query_of_threads();
    let lens = &Lens::new(&query, recording.nodes(), recording.functions());
    let Ahead { mut early, telling } = look_ahead(&calls, lens, chunks, counted);
    let OpenCalls { events: open, unknown_waits } = calls.open(lens, last, window.end);
    let is_over = |event: &LockEvent| event.time == window.end;
    let (mut waiting, begun): (Vec<_>, Vec<_>) = open.into_iter().partition(is_over);
    early.extend(begun);
    early.sort_by_key(LockEvent::order);
    let mut early = early.as_slice();
    let lossy = match lens.keeps_all_calls() {
        true => Stretches::around(chunks, telling.into_iter()),
        false => Stretches::everywhere(),
    };
    let mut selected = CallReader::new(recording, lens, counted);
    let mut is_in_window = window.start == 0;
    let (mut events, mut before) = (Vec::new(), None);
    let mut names = LockNames::new(recording);
    for entry in chunks.iter().take_while(|_| !lens.is_stopped()) {
        events.clear();
        let payloads = recording.payloads(entry);
        // Also those of threads that are not chosen: another one may have told the name of a lock.
        payloads.iter().for_each(|payloads| names.note(&payloads.each));
        payloads_among(&mut selected, entry, payloads, false, |payload, call| {
            let [begin, end] = calls.events(payload, call);
            events.extend(begin.filter(|event| event.time > entry.from.0));
            events.extend(end);
        });
        let due = early.partition_point(|event| event.time <= entry.to.0);
        let (begun, later) = early.split_at(due);
        events.extend(begun);
        early = later;
        events.sort_by_key(LockEvent::order);
        if before.replace(entry).is_some_and(|before| gap(before, entry).is_some()) {
            ledger.begin(true);
        }
        ledger.begin(lossy.meets(entry));
        for event in &events {
            if event.time > window.end {
                waiting.extend(event.still_waiting_at(window.end));
                continue;
            }
            if !is_in_window && event.time > window.start {
                ledger.reset();
                is_in_window = true;
            }
            ledger.add(event);
        }
    }
    if !is_in_window {
        ledger.reset();
    }
    waiting.sort_by_key(LockEvent::order);
    waiting.iter().for_each(|event| ledger.add(event));
    let lossy_stretches = lossy.in_window(&window);
    Some(Followed { ledger, names, lossy_stretches, unknown_waits })
}

fn is_lossy(loss: &ChunkLoss) -> bool {
    loss.events != 0 || loss.late > 0 || loss.decode_errors > 0
}

fn look_ahead(
    calls: &LockCalls<'_>,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
) -> Ahead {
    let parts = each_part(chunks, |entries| {
        let mut selected = CallReader::new(calls.recording, lens, counted);
        let mut ahead = Ahead::default();
        for entry in entries.iter().take_while(|_| !lens.is_stopped()) {
            let (lost, loss) = payloads_in(&mut selected, entry, true, |payload, call| {
                if call.start <= entry.from.0 {
                    ahead.early.extend(calls.events(payload, call)[0]);
                }
            });
            if lost > 0 || loss.is_none_or(|loss| is_lossy(&loss)) {
                ahead.telling.push(entry.from.0..entry.to.0);
            }
        }
        ahead
    });
    let mut all = Ahead::default();
    for part in parts {
        all.early.extend(part.early);
        all.telling.extend(part.telling);
    }
    all
}
