//! The calls of async functions of one process, and their lanes.
//!
//! A lane waits while the innermost call in it is not polled. That is entered when it is over: the end of a call
//! comes right after its last poll, which so is no beginning of a wait.

use super::Engine;
use crate::units::{FuncId, Pid, Tid};
use ctrace_common::STACK_SIZE;
use std::collections::{BTreeSet, HashMap};

/// The number of calls in a lane, each inside the one before. Further ones have another lane.
const DEEPEST: usize = 1_024;
/// The number of polls of a thread, each inside the one before. Where a program begins more, the outer half is forgotten.
const MOST_POLLS: usize = 4_096;

/// A call: its function and its number in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) func: FuncId,
    pub(super) id: u64,
}

/// A poll of a thread that goes on.
#[derive(Clone, Copy, Debug)]
struct Poll {
    func: FuncId,
    sp: u64,
    /// None of a call that began before tracing.
    call: Option<Key>,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    lane: u32,
    /// The end of its last poll, while none goes on.
    since: Option<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Process {
    calls: HashMap<Key, Call>,
    /// The calls in each lane, the outermost first. The first one is lane 1.
    lanes: Vec<Vec<Key>>,
    /// The lanes without calls.
    free: BTreeSet<u32>,
    /// The polls of each thread, the outermost first.
    threads: HashMap<Tid, Vec<Poll>>,
}

impl Process {
    pub(super) fn followed(&self) -> usize {
        self.calls.len()
    }

    /// Begins a poll. Those of the thread that the stack pointer shows to be over have ended unseen.
    pub(super) fn enter(&mut self, tid: Tid, (func, sp): (FuncId, u64), ts: u64) {
        let polls = self.threads.entry(tid).or_default();
        while let Some(top) = polls.last()
            && top.sp < sp
            && sp - top.sp <= STACK_SIZE
        {
            let call = polls.pop().and_then(|poll| poll.call);
            suspend(&mut self.calls, call, ts);
        }
        if polls.len() >= MOST_POLLS {
            polls.drain(..MOST_POLLS / 2).for_each(|poll| suspend(&mut self.calls, poll.call, ts));
        }
        polls.push(Poll { func, sp, call: None });
    }

    /// Ends a poll, and those inside it.
    pub(super) fn exit(&mut self, tid: Tid, (func, sp): (FuncId, u64), ts: u64) {
        let Some(polls) = self.threads.get_mut(&tid) else { return };
        let is_it = |poll: &Poll| (poll.func, poll.sp) == (func, sp);
        let Some(at) = polls.iter().rposition(is_it) else { return };
        for poll in polls.drain(at..) {
            suspend(&mut self.calls, poll.call, ts);
        }
    }

    /// Ends all calls without a duration, because events are missing, and forgets all polls: what comes next is not known to
    /// be inside any of them.
    pub(super) fn end_all(&mut self, pid: Pid, ts: u64, engine: &mut Engine<'_>) {
        self.threads.clear();
        self.calls.clear();
        for lane in 1..=self.lanes.len() as u32 {
            let calls = std::mem::take(&mut self.lanes[lane as usize - 1]);
            let stacks = engine.stacks(pid, lane);
            if calls.is_empty() || stacks.depth() != calls.len() as u64 {
                continue;
            }
            stacks.damage();
            calls.iter().for_each(|_| engine.leave((pid, lane), ts, false));
        }
        self.free = (1..=self.lanes.len() as u32).collect();
    }

    pub(super) fn end_thread(&mut self, tid: Tid, ts: u64) {
        for poll in self.threads.remove(&tid).unwrap_or_default() {
            suspend(&mut self.calls, poll.call, ts);
        }
    }

    /// Begins a call with the thread's innermost poll. It is inside the call that the poll around that one is
    /// of, unless that one is in another call already: then several go on at one time, as with `join!`.
    pub(super) fn begin(&mut self, who: (Pid, Tid), key: Key, ts: u64, engine: &mut Engine<'_>) {
        let pid = who.0;
        if self.calls.contains_key(&key) {
            self.end(pid, key, (ts, false), engine);
        }
        let around = self.polled(who.1, key).and_then(|parent| self.innermost_of(parent));
        let around = around.filter(|lane| self.is_sound(pid, *lane, engine));
        let lane = around.unwrap_or_else(|| self.free_lane());
        self.calls.insert(key, Call { lane, since: None });
        self.lanes[lane as usize - 1].push(key);
        engine.enter((pid, lane), key.func, ts);
    }

    /// Goes on with a call, in the thread's innermost poll.
    pub(super) fn resume(&mut self, who: (Pid, Tid), key: Key, ts: u64, engine: &mut Engine<'_>) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        let (lane, since) = (call.lane, call.since.take());
        self.polled(who.1, key);
        let is_innermost = self.lanes[lane as usize - 1].last() == Some(&key);
        if self.is_sound(who.0, lane, engine) && is_innermost {
            engine.wait((who.0, lane), since, ts);
        }
    }

    /// Ends a call, and those inside it that did not end.
    pub(super) fn end(
        &mut self,
        pid: Pid,
        key: Key,
        (ts, has_completed): (u64, bool),
        engine: &mut Engine<'_>,
    ) {
        let Some(&Call { lane, .. }) = self.calls.get(&key) else { return };
        if !self.is_sound(pid, lane, engine) {
            return;
        }
        // A call that completes is over with its last poll, and so are those that its future still holds.
        let last = self.calls.get(&key).and_then(|call| call.since).filter(|_| has_completed);
        let ts = last.unwrap_or(ts);
        while let Some(top) = self.lanes[lane as usize - 1].pop() {
            let since = self.calls.remove(&top).and_then(|call| call.since);
            if top == key && has_completed {
                engine.leave((pid, lane), ts, true);
                break;
            }
            engine.wait((pid, lane), since.map(|since| since.min(ts)), ts);
            engine.leave((pid, lane), ts, false);
            if top == key {
                break;
            }
        }
        self.free_if_empty(lane);
    }

    /// Notes that the thread's innermost poll is of this call. Returns the call of the poll around it.
    fn polled(&mut self, tid: Tid, key: Key) -> Option<Key> {
        let (last, around) = self.threads.get_mut(&tid)?.split_last_mut()?;
        if last.func != key.func || last.call.is_some() {
            return None;
        }
        last.call = Some(key);
        around.last()?.call
    }

    /// Returns the lane in which a call is the innermost one.
    fn innermost_of(&self, key: Key) -> Option<u32> {
        let lane = self.calls.get(&key)?.lane;
        let calls = &self.lanes[lane as usize - 1];
        (calls.last() == Some(&key) && calls.len() < DEEPEST).then_some(lane)
    }

    fn free_lane(&mut self) -> u32 {
        self.free.pop_first().unwrap_or_else(|| {
            self.lanes.push(Vec::new());
            self.lanes.len() as u32
        })
    }

    fn free_if_empty(&mut self, lane: u32) {
        if self.lanes[lane as usize - 1].is_empty() {
            self.free.insert(lane);
        }
    }

    /// Returns true if the lane has the frames of its calls. Others are forgotten.
    fn is_sound(&mut self, pid: Pid, lane: u32, engine: &mut Engine<'_>) -> bool {
        let of = &mut self.lanes[lane as usize - 1];
        let stacks = engine.stacks(pid, lane);
        if stacks.depth() != of.len() as u64 {
            for call in of.drain(..) {
                self.calls.remove(&call);
            }
            self.free_if_empty(lane);
            return false;
        }
        true
    }
}

/// Notes that a call is not polled from here on.
fn suspend(calls: &mut HashMap<Key, Call>, call: Option<Key>, ts: u64) {
    if let Some(call) = call.and_then(|key| calls.get_mut(&key)) {
        call.since = Some(ts);
    }
}
