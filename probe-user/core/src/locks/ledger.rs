//! Follows who holds which lock, from events in order of time.
//!
//! A hold counts only if its beginning and its end were seen and no event can be missing in
//! between; others are counted as unknown. An acquisition is contended if another thread held the
//! lock at some moment of the call, as far as that was seen.

use super::callers::{CallerSums, Callers};
use super::event::{Caller, Change, LockEvent, LockId};
use super::history::{History, PastHold};
use super::{LockKind, Mode};
use crate::stats::histogram::{Histogram, HistogramCounter};
use crate::units::ThreadId;
use std::collections::HashMap;

/// Locks that are told apart, at most.
const MOST_LOCKS: usize = 65_536;
/// Threads that hold one lock at once, at most.
const MOST_HOLDERS: usize = 4_096;
/// Past holds that all locks remember, before each remembers only a few.
const MANY_PAST_HOLDS: usize = 1 << 20;

/// A sum of times, and the longest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) count: u64,
    pub(crate) total: u64,
    pub(crate) max: u64,
}

impl Times {
    fn add(&mut self, time: u64) {
        self.count += 1;
        self.total = self.total.saturating_add(time);
        self.max = self.max.max(time);
    }
}

/// The numbers of a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LockSums {
    pub(crate) acquisitions: u64,
    /// Those of them that others could share.
    pub(crate) shared: u64,
    pub(crate) nested: u64,
    pub(crate) refused: u64,
    pub(crate) timed_out: u64,
    pub(crate) failed: u64,
    pub(crate) unclear: u64,
    /// Acquisitions and calls without success in which another thread held the lock.
    pub(crate) contended: u64,
    pub(crate) waits: Times,
    pub(crate) uncontended: Times,
    pub(crate) conditions: Times,
    pub(crate) holds: Times,
    pub(crate) unknown_holds: u64,
    /// Holds that have not ended.
    pub(crate) open_holds: u64,
    pub(crate) recursive: bool,
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    thread: ThreadId,
    mode: Mode,
    caller: Caller,
    since: u64,
    depth: u64,
    /// That of the ledger when it began; none if something speaks against it.
    era: Option<u64>,
}

#[derive(Debug)]
struct Lock {
    kind: LockKind,
    sums: LockSums,
    holders: Vec<Hold>,
    history: History,
    callers: Callers,
}

/// What is known of a lock in the end.
#[derive(Debug)]
pub(crate) struct LockFacts {
    pub(crate) id: LockId,
    pub(crate) kind: LockKind,
    pub(crate) sums: LockSums,
    pub(crate) waits: Histogram,
    pub(crate) callers: Vec<(Caller, CallerSums)>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    places: HashMap<LockId, usize>,
    locks: Vec<(LockId, Lock)>,
    waits: Vec<Histogram>,
    counter: HistogramCounter,
    /// Changes where events may be missing.
    era: u64,
    lossy: bool,
    past_holds: usize,
    /// Events of locks that found no room.
    pub(crate) beyond: u64,
}

impl Ledger {
    /// Begins a stretch of time. `lossy`: events of it may be missing.
    pub(crate) fn begin(&mut self, lossy: bool) {
        self.era += u64::from(lossy || self.lossy);
        self.lossy = lossy;
    }

    /// Adds the next event, in order of time.
    pub(crate) fn add(&mut self, event: &LockEvent) {
        let Some(place) = self.place(event) else {
            self.beyond += 1;
            return;
        };
        match event.change {
            Change::Released | Change::Parted => self.release(place, event),
            Change::Taken { mode, since, recursive, tried } => {
                let sums = &mut self.locks[place].1.sums;
                sums.recursive |= recursive == Some(true);
                self.take(place, event, mode, (since, tried), recursive);
            }
            Change::Rejoined { since } => {
                let sums = &mut self.locks[place].1.sums;
                sums.conditions.add(event.time.saturating_sub(since));
                self.hold(place, event, Mode::Exclusive);
            }
            Change::TimedOut { mode, since } => {
                self.locks[place].1.sums.timed_out += 1;
                self.wait(place, event, mode, since);
            }
            Change::Refused => self.locks[place].1.sums.refused += 1,
            Change::Failed => self.locks[place].1.sums.failed += 1,
            Change::Unclear => {
                let lock = &mut self.locks[place].1;
                lock.sums.unclear += 1;
                let own = lock.holders.iter_mut().filter(|hold| hold.thread == event.thread);
                own.for_each(|hold| hold.era = None);
            }
        }
    }

    fn place(&mut self, event: &LockEvent) -> Option<usize> {
        if let Some(place) = self.places.get(&event.lock) {
            return Some(*place);
        }
        let place = self.locks.len();
        if place == MOST_LOCKS {
            return None;
        }
        self.places.insert(event.lock, place);
        let lock = Lock {
            kind: event.kind,
            sums: LockSums::default(),
            holders: Vec::new(),
            history: History::default(),
            callers: Callers::default(),
        };
        self.locks.push((event.lock, lock));
        self.waits.push(Histogram::default());
        Some(place)
    }

    fn take(
        &mut self,
        place: usize,
        event: &LockEvent,
        mode: Mode,
        (since, tried): (u64, bool),
        recursive: Option<bool>,
    ) {
        let lock = &mut self.locks[place].1;
        // Only these can be taken once more. Of others, the release was missed.
        let may_nest = mode == Mode::Shared || recursive.unwrap_or(true);
        let own = lock.holders.iter_mut().find(|hold| hold.thread == event.thread);
        if let Some(hold) = own.filter(|_| may_nest) {
            hold.depth += 1;
            lock.sums.nested += 1;
            return;
        }
        lock.sums.acquisitions += 1;
        lock.sums.shared += u64::from(mode == Mode::Shared);
        self.hold(place, event, mode);
        if !tried {
            self.wait(place, event, mode, since);
        }
    }

    /// Begins a hold. Those that it excludes have ended, unseen.
    fn hold(&mut self, place: usize, event: &LockEvent, mode: Mode) {
        let lock = &mut self.locks[place].1;
        let before = lock.holders.len();
        lock.holders.retain(|hold| hold.thread != event.thread);
        lock.sums.unknown_holds += (before - lock.holders.len()) as u64;
        for other in &mut lock.holders {
            if mode == Mode::Exclusive || other.mode == Mode::Exclusive {
                other.era = None;
            }
        }
        if lock.holders.len() == MOST_HOLDERS {
            return;
        }
        let (thread, caller, since) = (event.thread, event.caller, event.time);
        lock.holders.push(Hold { thread, mode, caller, since, depth: 1, era: Some(self.era) });
    }

    /// Counts a call that would have waited, if another thread held the lock meanwhile.
    fn wait(&mut self, place: usize, event: &LockEvent, mode: Mode, since: u64) {
        let (lossy, era) = (self.lossy, self.era);
        let Lock { sums, holders, history, callers, .. } = &mut self.locks[place].1;
        let duration = event.time.saturating_sub(since);
        let stretch = (since, event.time);
        let open = holders.iter().filter(|hold| !lossy && hold.era == Some(era));
        let open = open.map(|hold| hold.until(event.time));
        let holds = history.since(since).copied().chain(open);
        let mut contended = false;
        for hold in holds {
            if let Some(kept) = hold.kept_waiting(event.thread, mode, stretch) {
                callers.kept_waiting(hold.caller, kept);
                contended = true;
            }
        }
        if !contended {
            sums.uncontended.add(duration);
            return;
        }
        sums.contended += 1;
        sums.waits.add(duration);
        callers.waited(event.caller, duration);
        self.counter.add(&mut self.waits, place, duration);
    }

    fn release(&mut self, place: usize, event: &LockEvent) {
        let lock = &mut self.locks[place].1;
        let Some(at) = lock.holders.iter().position(|hold| hold.thread == event.thread) else {
            lock.sums.unknown_holds += 1;
            return;
        };
        let hold = &mut lock.holders[at];
        hold.depth -= 1;
        if hold.depth > 0 {
            return;
        }
        let hold = lock.holders.swap_remove(at);
        if self.lossy || hold.era != Some(self.era) {
            lock.sums.unknown_holds += 1;
            return;
        }
        lock.sums.holds.add(event.time.saturating_sub(hold.since));
        let few = self.past_holds > MANY_PAST_HOLDS;
        self.past_holds += lock.history.push(hold.until(event.time), few);
    }

    /// Returns what is known of all locks.
    pub(crate) fn finish(mut self) -> Vec<LockFacts> {
        self.counter.flush(&mut self.waits);
        let locks = self.locks.into_iter().zip(self.waits);
        let facts = locks.map(|((id, lock), waits)| LockFacts {
            id,
            kind: lock.kind,
            sums: LockSums { open_holds: lock.holders.len() as u64, ..lock.sums },
            waits,
            callers: lock.callers.into_sorted(),
        });
        facts.collect()
    }
}

impl Hold {
    fn until(&self, until: u64) -> PastHold {
        let Self { thread, mode, caller, since, .. } = *self;
        PastHold { thread, mode, caller, since, until }
    }
}
