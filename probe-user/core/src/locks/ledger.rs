//! Follows who holds which lock, from events in order of time.
//!
//! A hold counts only if its beginning and its end were seen and no event can be missing in
//! between; others are counted as unknown. An acquisition is contended if another thread held the
//! lock at some moment of the call, as far as that was seen, or if a marker tells that it waited.

use super::callers::{CallerSums, Callers};
use super::event::{Attempt, Caller, Change, LockEvent, LockId};
use super::history::{History, PastHold};
use super::waits::{LockWait, Waits};
use super::{LockKind, Mode};
use crate::stats::histogram::{Histogram, HistogramCounter};
use crate::units::ThreadId;
use std::collections::{BTreeMap, HashMap};

/// Locks that are told apart, at most.
pub(crate) const MOST_LOCKS: usize = 65_536;
/// Threads that hold one lock at once, at most.
pub(super) const MOST_HOLDERS: usize = 4_096;
/// Past holds, and callers, that all locks remember, before each remembers only a few.
pub(super) const MANY_PAST_HOLDS: usize = 1 << 20;
pub(super) const MANY_CALLERS: usize = 1 << 20;
/// Callers of a lock that waited longest, and that kept others waiting longest, in the end.
const LONGEST: usize = 10;

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
    /// Acquisitions that others could share.
    pub(crate) shared: u64,
    pub(crate) nested: u64,
    pub(crate) refused: u64,
    pub(crate) timed_out: u64,
    pub(crate) failed: u64,
    pub(crate) unclear: u64,
    /// Acquisitions and calls without success in which another thread held the lock.
    pub(crate) contended: u64,
    pub(crate) waits: Times,
    /// The part of these, and of open ones, in which others held the lock.
    pub(crate) blocked_ns: u64,
    /// Calls during which more holds ended than are remembered: earlier holders are not blamed.
    pub(crate) partly_blamed: u64,
    /// Calls that have not ended.
    pub(crate) open_waits: Times,
    pub(crate) uncontended: Times,
    pub(crate) conditions: Times,
    pub(crate) holds: Times,
    pub(crate) unknown_holds: u64,
    /// Holds that have not ended.
    pub(crate) open_holds: u64,
    pub(crate) recursive: bool,
}

/// The evidence for a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Its beginning was seen, in this era of the ledger.
    Seen { era: u64 },
    /// It may be part of an earlier one, or have begun more than once.
    Doubtful,
    /// Something was seen that it excludes: it has ended, unseen.
    Over,
}

#[derive(Clone, Copy, Debug)]
struct Hold {
    thread: ThreadId,
    mode: Mode,
    caller: Caller,
    since: u64,
    depth: u64,
    standing: Standing,
}

#[derive(Debug)]
struct Lock {
    kind: LockKind,
    sums: LockSums,
    holders: Vec<Hold>,
    history: History,
    callers: Callers,
}

/// A lock as it is known in the end.
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
    pub(super) past_holds: usize,
    pub(super) known_callers: usize,
    /// The event that the last call of each thread has passed on.
    passed: HashMap<ThreadId, LockEvent>,
    /// Events of locks that found no room.
    pub(crate) beyond: u64,
    /// Each wait, if somebody asks for them.
    pub(crate) each_wait: Option<Waits>,
}

impl Ledger {
    /// Makes one that keeps each wait.
    pub(crate) fn with_each_wait() -> Self {
        Self { each_wait: Some(Waits::default()), ..Self::default() }
    }

    /// Begins a stretch of time. `lossy`: events of it may be missing.
    pub(crate) fn begin(&mut self, lossy: bool) {
        self.era += u64::from(lossy || self.lossy);
        self.lossy = lossy;
    }

    /// Forgets all numbers, but not who holds what: only what comes from now on counts.
    pub(crate) fn reset(&mut self) {
        self.counter.flush(&mut self.waits);
        self.waits.iter_mut().for_each(|waits| *waits = Histogram::default());
        for (_, lock) in &mut self.locks {
            lock.sums = lock.sums.unused();
            lock.callers = Callers::default();
        }
        (self.known_callers, self.beyond) = (0, 0);
        self.each_wait = self.each_wait.take().map(|_| Waits::default());
    }

    /// Adds the next event, in order of time.
    pub(crate) fn add(&mut self, event: &LockEvent) {
        if let Some(before) = self.passed.remove(&event.thread) {
            if !event.goes_on_from(&before) {
                self.enter(&LockEvent { change: Change::Unclear, ..before });
            } else if event.change == Change::Parted {
                // The first of both has released the lock.
                return;
            }
        }
        match event.change {
            Change::Passed => _ = self.passed.insert(event.thread, *event),
            _ => self.enter(event),
        }
    }

    fn enter(&mut self, event: &LockEvent) {
        let Some(place) = self.place(event) else {
            self.beyond += 1;
            return;
        };
        match event.change {
            Change::Released | Change::Parted => self.release(place, event),
            Change::Taken { mode, since, recursive, attempt } => {
                let sums = &mut self.locks[place].1.sums;
                sums.recursive |= recursive == Some(true);
                self.take(place, event, mode, (since, attempt), recursive);
            }
            Change::Rejoined { since } => {
                let sums = &mut self.locks[place].1.sums;
                sums.conditions.add(event.time.saturating_sub(since));
                self.hold(place, event, Mode::Exclusive, self.seen());
            }
            Change::TimedOut { mode, since } => {
                self.locks[place].1.sums.timed_out += 1;
                self.wait(place, event, mode, since, false);
            }
            // Nobody knows how long.
            Change::Unended { .. } if !self.lossy => {
                self.locks[place].1.sums.open_waits.count += 1;
                self.each_wait.iter_mut().for_each(|waits| waits.without_end += 1);
            }
            Change::Waiting { mode, since } => self.wait_on(place, event, mode, since),
            Change::Refused => self.locks[place].1.sums.refused += 1,
            Change::Failed => self.locks[place].1.sums.failed += 1,
            Change::Unclear | Change::Unended { .. } | Change::Passed => {
                let lock = &mut self.locks[place].1;
                lock.sums.unclear += 1;
                let own = lock.holders.iter_mut().filter(|hold| hold.thread == event.thread);
                own.for_each(|hold| hold.standing = Standing::Doubtful);
            }
        }
    }

    fn seen(&self) -> Standing {
        Standing::Seen { era: self.era }
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
        (since, attempt): (u64, Attempt),
        recursive: Option<bool>,
    ) {
        let (seen, lossy) = (self.seen(), self.lossy);
        let Lock { kind, sums, holders, .. } = &mut self.locks[place].1;
        // Only these can be taken once more. Of others, the release was missed.
        let may_nest = |hold: &Hold| match kind {
            LockKind::RwLock => mode == Mode::Shared && hold.mode == Mode::Shared,
            LockKind::Mutex => recursive.unwrap_or(true),
        };
        let mut own = holders.iter_mut().filter(|hold| hold.thread == event.thread);
        let nests = own.find(|hold| hold.standing != Standing::Over && may_nest(hold));
        let standing = match nests {
            Some(hold) if hold.standing == seen && !lossy => {
                hold.depth += 1;
                sums.nested += 1;
                return;
            }
            Some(_) => Standing::Doubtful,
            None => seen,
        };
        sums.acquisitions += 1;
        sums.shared += u64::from(mode == Mode::Shared);
        self.hold(place, event, mode, standing);
        if attempt != Attempt::Tried {
            self.wait(place, event, mode, since, attempt == Attempt::Waited);
        }
    }

    /// Begins a hold. Those that it excludes have ended, unseen.
    fn hold(&mut self, place: usize, event: &LockEvent, mode: Mode, standing: Standing) {
        let lock = &mut self.locks[place].1;
        let before = lock.holders.len();
        lock.holders.retain(|hold| hold.thread != event.thread);
        lock.sums.unknown_holds += (before - lock.holders.len()) as u64;
        for other in &mut lock.holders {
            if mode == Mode::Exclusive || other.mode == Mode::Exclusive {
                other.standing = Standing::Over;
            }
        }
        if lock.holders.len() == MOST_HOLDERS {
            return;
        }
        let (thread, caller, since) = (event.thread, event.caller, event.time);
        lock.holders.push(Hold { thread, mode, caller, since, depth: 1, standing });
    }

    /// Counts a call that would have waited, if another thread held the lock meanwhile, or if it is `sure`
    /// that it did.
    fn wait(&mut self, place: usize, event: &LockEvent, mode: Mode, since: u64, sure: bool) {
        let duration = event.time.saturating_sub(since);
        if !self.blame(place, event, mode, since) && !sure {
            self.locks[place].1.sums.uncontended.add(duration);
            return;
        }
        let sums = &mut self.locks[place].1.sums;
        sums.contended += 1;
        sums.waits.add(duration);
        self.waited(place, event.caller, duration);
        self.keep(LockWait { lock: event.lock, since, until: Some(event.time) });
        self.counter.add(&mut self.waits, place, duration);
    }

    /// Counts a call that has not ended.
    fn wait_on(&mut self, place: usize, event: &LockEvent, mode: Mode, since: u64) {
        let duration = event.time.saturating_sub(since);
        self.locks[place].1.sums.open_waits.add(duration);
        self.blame(place, event, mode, since);
        self.waited(place, event.caller, duration);
        self.keep(LockWait { lock: event.lock, since, until: None });
    }

    fn keep(&mut self, wait: LockWait) {
        if let Some(waits) = &mut self.each_wait {
            waits.add(wait);
        }
    }

    fn waited(&mut self, place: usize, caller: Caller, duration: u64) {
        let few = self.known_callers > MANY_CALLERS;
        let callers = &mut self.locks[place].1.callers;
        let before = callers.len();
        callers.waited(caller, duration, few);
        self.known_callers += callers.len() - before;
    }

    /// Adds the wait to the callers whose holds it was for. Returns whether there are any.
    fn blame(&mut self, place: usize, event: &LockEvent, mode: Mode, since: u64) -> bool {
        let (lossy, seen) = (self.lossy, self.seen());
        let few = self.known_callers > MANY_CALLERS;
        let Lock { sums, holders, history, callers, .. } = &mut self.locks[place].1;
        let stretch = (since, event.time);
        let open = holders.iter().filter(|hold| !lossy && hold.standing == seen);
        let open = open.map(|hold| hold.until(event.time));
        let holds = history.since(since).copied().chain(open);
        let mut blamed: BTreeMap<Caller, u64> = BTreeMap::new();
        for hold in holds {
            if let Some(kept) = hold.kept_waiting(event.thread, mode, stretch) {
                let sum = blamed.entry(hold.caller).or_default();
                *sum = sum.saturating_add(kept);
            }
        }
        sums.partly_blamed += u64::from(!history.is_whole_since(since));
        let before = callers.len();
        for (caller, kept) in &blamed {
            callers.kept_waiting(*caller, *kept, few);
            sums.blocked_ns = sums.blocked_ns.saturating_add(*kept);
        }
        self.known_callers += callers.len() - before;
        !blamed.is_empty()
    }

    fn release(&mut self, place: usize, event: &LockEvent) {
        let seen = self.seen();
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
        if self.lossy || hold.standing != seen {
            lock.sums.unknown_holds += 1;
            return;
        }
        lock.sums.holds.add(event.time.saturating_sub(hold.since));
        let few = self.past_holds > MANY_PAST_HOLDS;
        self.past_holds += lock.history.push(hold.until(event.time), few);
    }

    /// Returns what is known of all locks.
    pub(crate) fn finish(mut self) -> Vec<LockFacts> {
        for (_, before) in std::mem::take(&mut self.passed) {
            self.enter(&LockEvent { change: Change::Unclear, ..before });
        }
        self.counter.flush(&mut self.waits);
        let locks = self.locks.into_iter().zip(self.waits);
        let is_used = |lock: &Lock| !lock.holders.is_empty() || lock.sums != lock.sums.unused();
        let locks = locks.filter(|((_, lock), _)| is_used(lock));
        let facts = locks.map(|((id, lock), waits)| LockFacts {
            id,
            kind: lock.kind,
            sums: LockSums { open_holds: lock.holders.len() as u64, ..lock.sums },
            waits,
            callers: lock.callers.into_longest(LONGEST),
        });
        facts.collect()
    }
}

impl LockSums {
    /// Returns those of the same lock before its first call.
    fn unused(&self) -> Self {
        Self { recursive: self.recursive, ..Self::default() }
    }
}

impl Hold {
    fn until(&self, until: u64) -> PastHold {
        let Self { thread, mode, caller, since, .. } = *self;
        PastHold { thread, mode, caller, since, until }
    }
}
