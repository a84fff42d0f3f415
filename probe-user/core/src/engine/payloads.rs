//! The values of events, from their release until the chunk of their call is made.
//!
//! Calls do not refer to them, so a call without values costs nothing more. The engine notes
//! events of functions with values, and each payload removes its note: this proves that its call
//! is not in a chunk yet. The note says when the call began: for the result of a call, which comes
//! with its exit, only the stack knows. A payload waits while its call is open, and goes into the
//! next chunk. There the two payloads of a call become one.

use crate::engine::threads::Thread;
use crate::ingest::event::Event;
use crate::recording::payloads::{MOST_HELD, MOST_PAYLOADS, MOST_TEXTS, OfThread, calls};
use crate::units::{FuncId, Nanos, Pid, ThreadId, Tid};
use crate::values::RingPayload;
use std::collections::{HashMap, HashSet};

/// The latest payloads among which those of a call that is too short are looked for.
const SEARCHED: usize = 1 << 10;

/// An event: its thread, time and function, and whether it is the exit of a call.
type Awaited = (Pid, Tid, Nanos, FuncId, bool);

/// The thread of a call, and its start. `None` stands for a call that is filtered, or an exit that
/// ends none.
pub(crate) type Caller = (ThreadId, Nanos);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Payloads {
    /// Events whose payloads have not come, and their calls.
    awaited: HashMap<Awaited, Option<Caller>>,
    held: Vec<OfThread>,
    /// The cost of the texts in `held`, and of those that came since the last chunk.
    texts: usize,
    fresh: usize,
    /// The number of payloads that came too late for their chunk, or found no room here.
    dropped: u64,
    /// The number of those that found no room in a ring.
    lost_in_rings: u64,
    /// The number of losses, of both kinds, that chunks have reported.
    told: u64,
}

impl Payloads {
    pub(crate) fn set_lost_in_rings(&mut self, payloads: u64) {
        self.lost_in_rings = payloads;
    }

    /// Counts a payload that was lost before it came here.
    pub(crate) fn lose(&mut self) {
        self.dropped += 1;
    }

    /// Returns whether texts take so much room that a chunk must be made soon.
    pub(crate) fn are_full(&self) -> bool {
        self.fresh > MOST_TEXTS / 2
    }

    /// Notes that a payload may come for this event, which begins a call or is one.
    #[cold]
    pub(crate) fn expect(&mut self, event: &Event, thread: Option<ThreadId>) {
        self.expect_for(event, false, thread.map(|thread| (thread, Nanos(event.ts()))));
    }

    /// Notes that a result may come for this event, which ends a call.
    #[cold]
    pub(crate) fn expect_result(&mut self, event: &Event, call: Option<Caller>) {
        self.expect_for(event, true, call);
    }

    fn expect_for(&mut self, event: &Event, is_result: bool, call: Option<Caller>) {
        if self.awaited.len() < MOST_PAYLOADS {
            let time = Nanos(event.ts());
            self.awaited.insert((event.pid(), event.tid(), time, event.func(), is_result), call);
        }
    }

    /// Holds a payload for its call. It is lost if its event was dropped, or if it comes so late
    /// that its call is already in a chunk.
    pub(crate) fn hold(&mut self, payload: RingPayload) {
        let RingPayload { pid, tid, time, function, .. } = payload;
        match self.awaited.remove(&(pid, tid, time, function, payload.is_result())) {
            Some(Some((thread, start))) => self.hold_for(OfThread { thread, start, payload }),
            // No call that counts has these values.
            Some(None) => {}
            None => self.dropped += 1,
        }
    }

    /// Forgets the arguments of a call that turned out to be too short: no call that counts has them. It
    /// ends with this event, which may be of another function: one that it jumped to.
    #[cold]
    pub(crate) fn forget(&mut self, event: &Event, function: FuncId, (thread, start): Caller) {
        let awaited = (event.pid(), event.tid(), start, function, false);
        if let Some(call) = self.awaited.get_mut(&awaited) {
            *call = None;
            return;
        }
        let is_its =
            |of: &OfThread| (of.thread, of.start, of.payload.function) == (thread, start, function);
        // Those of calls inside it came later, and are gone if they were as short.
        let latest = self.held.iter().enumerate().rev().take(SEARCHED);
        let found =
            latest.take_while(|(_, of)| of.payload.time >= start).find(|(_, of)| is_its(of));
        if let Some(place) = found.map(|(place, _)| place) {
            self.texts -= self.held.swap_remove(place).texts_cost();
        }
    }

    /// Holds the values of a call that is known.
    pub(crate) fn hold_for(&mut self, payload: OfThread) {
        let texts = self.texts + payload.texts_cost();
        if self.held.len() < MOST_HELD && texts <= MOST_TEXTS {
            self.fresh += texts - self.texts;
            self.texts = texts;
            self.held.push(payload);
        } else {
            self.dropped += 1;
        }
    }

    /// Removes and returns those whose calls are not open in any of these threads. These calls go
    /// into a chunk now.
    pub(crate) fn take_ended<'a>(
        &mut self,
        threads: impl Iterator<Item = &'a Thread>,
    ) -> Vec<OfThread> {
        self.fresh = 0;
        if self.held.is_empty() && self.awaited.is_empty() {
            return Vec::new();
        }
        let open: HashSet<(ThreadId, u64)> = threads
            .flat_map(|thread| {
                let id = thread.stacks.account.thread();
                thread.stacks.open().into_iter().map(move |frame| (id, frame.start))
            })
            .collect();
        self.awaited.retain(|_, call| {
            call.is_some_and(|(thread, start)| open.contains(&(thread, start.0)))
        });
        let is_due = |held: &mut OfThread| !open.contains(&(held.thread, held.start.0));
        let due: Vec<_> = self.held.extract_if(.., is_due).collect();
        self.texts -= due.iter().map(OfThread::texts_cost).sum::<usize>();
        due
    }

    /// Adds those of open calls of wanted functions to the ended ones of a chunk. They stay here as well.
    /// None are added if the chunk has no room for all.
    pub(crate) fn add_open(&self, ended: &mut Vec<OfThread>, wanted: impl Fn(FuncId) -> bool) {
        let open = self.held.iter().filter(|of| wanted(of.payload.function));
        let open: Vec<_> = open.cloned().collect();
        // Most chunks have few: nothing is to be counted.
        let fits = |calls: usize| calls + open.len() <= MOST_PAYLOADS;
        if !open.is_empty() && (fits(ended.len()) || fits(calls(ended).count())) {
            ended.extend(open);
        }
    }

    /// Returns the number of losses since the start.
    pub(crate) fn lost(&self) -> u64 {
        self.dropped.saturating_add(self.lost_in_rings)
    }

    /// Returns the number of losses since the last time.
    pub(crate) fn take_lost(&mut self) -> u64 {
        let lost = self.lost();
        lost.saturating_sub(std::mem::replace(&mut self.told, lost))
    }
}
