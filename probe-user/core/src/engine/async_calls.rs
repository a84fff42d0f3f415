//! Calls of async functions. Each goes on from poll to poll, on any thread, and waits in between.
//!
//! A poll is a call of the thread on which it happens, and is applied like any scope. Beside that, each call has a
//! lane ([`crate::async_lanes`]), whose frames are the call itself, the calls that it awaits, and their times between
//! two polls. Polls of one call come from several threads, so they are applied when the events of all threads up
//! to a time have come.

mod process;

use crate::async_lanes::tid_of_lane;
use crate::engine::ledger::Ledger;
use crate::engine::stack::{Place, Stacks};
use crate::engine::threads::Threads;
use crate::engine::tracker::Tracker;
use crate::function::{ExitSeen, FunctionInfo, FunctionKind, ProbeCost};
use crate::hash::IntMap;
use crate::ingest::event::Event;
use crate::report::{Report, SampledReport};
use crate::units::{FuncId, Pid, Tid};
use ctrace_common::{AsyncCall, AsyncStep, Kind};
use process::{Key, Process};
use std::collections::HashMap;

/// The number of calls that are followed at one time: a program may begin any number, and end none.
const MOST_CALLS: usize = 65_536;

/// The object of what is no function of a program.
const OBJECT: &str = "async";
/// The time of a call between two polls.
const AWAIT: &str = "[await]";

/// An event that waits for those of other threads.
#[derive(Clone, Copy, Debug)]
struct Told {
    ts: u64,
    pid: Pid,
    tid: Tid,
    func: FuncId,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    /// A poll begins, at this stack pointer.
    Enter(u64),
    Call(AsyncCall),
    Exit(u64),
    /// Events of the process were lost before.
    Lost,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct AsyncCalls {
    told: Vec<Told>,
    processes: HashMap<Pid, Process>,
    /// By async function: the function that stands for its polls.
    polls: IntMap<FuncId>,
    /// The function that stands for the times between polls.
    wait: Option<FuncId>,
    /// The number of calls that are followed.
    followed: usize,
    /// The number of calls that were only counted, because too many were followed.
    beyond: u64,
}

/// What calls of async functions change.
struct Engine<'a> {
    threads: &'a mut Threads,
    ledger: &'a mut Ledger,
    wait: FuncId,
}

impl AsyncCalls {
    /// Notes that events of this process were lost, and with them perhaps polls of any of its calls, and ends.
    pub(crate) fn lose(&mut self, (pid, tid): (Pid, Tid), ts: u64) {
        if self.told.is_empty() && !self.processes.contains_key(&pid) {
            return;
        }
        self.told.push(Told { ts, pid, tid, func: FuncId(0), what: What::Lost });
    }

    /// Ends the polls of a thread that is gone.
    pub(crate) fn end_thread(&mut self, pid: Pid, tid: Tid, at: u64) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.end_thread(tid, at);
        }
    }

    /// Forgets a process that is gone. Its lanes end as its threads do.
    pub(crate) fn end_process(&mut self, pid: Pid) {
        let gone = self.processes.remove(&pid);
        self.followed -= gone.map_or(0, |process| process.followed());
    }

    fn apply(&mut self, told: &Told, mut engine: Engine<'_>) {
        let &Told { ts, pid, tid, func, what } = told;
        let process = self.processes.entry(pid).or_default();
        let before = process.followed();
        match what {
            What::Enter(sp) => process.enter(tid, (func, sp), ts),
            What::Exit(sp) => process.exit(tid, (func, sp), ts),
            What::Lost => process.end_all(pid, ts, &mut engine),
            What::Call(value) => {
                let Some(id) = value.id() else { return };
                let key = Key { func, id };
                match value.step() {
                    AsyncStep::Begun if self.followed >= MOST_CALLS => {
                        self.beyond += 1;
                        engine.count(pid, func, ts);
                    }
                    AsyncStep::Begun => process.begin((pid, tid), key, ts, &mut engine),
                    AsyncStep::Resumed => process.resume((pid, tid), key, ts, &mut engine),
                    AsyncStep::Completed => process.end(pid, key, (ts, true), &mut engine),
                    AsyncStep::Dropped => process.end(pid, key, (ts, false), &mut engine),
                }
            }
        }
        self.followed = (self.followed + process.followed()).saturating_sub(before);
    }
}

impl Engine<'_> {
    fn stacks(&mut self, pid: Pid, lane: u32) -> &mut Stacks {
        &mut self.threads.get(pid, tid_of_lane(lane), self.ledger).stacks
    }

    /// Moves a lane on to a time. An event that comes too late makes the durations unknown.
    fn advance(&mut self, (pid, lane): (Pid, u32), ts: u64) -> u64 {
        let thread = self.threads.get(pid, tid_of_lane(lane), self.ledger);
        if ts < thread.stacks.last {
            thread.stacks.damage();
        }
        let ts = ts.max(thread.stacks.last);
        thread.first.get_or_insert(ts);
        thread.stacks.last = ts;
        ts
    }

    fn enter(&mut self, of: (Pid, u32), func: FuncId, ts: u64) {
        let ts = self.advance(of, ts);
        let thread = self.threads.get(of.0, tid_of_lane(of.1), self.ledger);
        thread.stacks.enter_by_order(func, ts, true, self.ledger);
    }

    /// Enters the time in which the innermost call of a lane was not polled.
    fn wait(&mut self, of: (Pid, u32), since: Option<u64>, ts: u64) {
        if let Some(since) = since {
            let since = since.max(self.stacks(of.0, of.1).last);
            self.enter(of, self.wait, since);
            self.leave(of, ts, true);
        }
    }

    fn leave(&mut self, of: (Pid, u32), ts: u64, timed: bool) {
        let ts = self.advance(of, ts);
        let thread = self.threads.get(of.0, tid_of_lane(of.1), self.ledger);
        thread.stacks.leave_by_order(ts, timed, self.ledger);
    }

    /// Counts a call that is not followed, in the lane that no other call has.
    fn count(&mut self, pid: Pid, func: FuncId, ts: u64) {
        let ts = ts.max(self.stacks(pid, 0).last);
        self.enter((pid, 0), func, ts);
        self.leave((pid, 0), ts, false);
    }
}

impl super::Engine {
    /// Returns a note on calls of async functions that were only counted, because too many went on.
    pub fn async_note(&self) -> Option<String> {
        let beyond = self.tracker.async_calls.beyond;
        (beyond > 0).then(|| {
            format!(
                "{beyond} calls of async functions were only counted: {MOST_CALLS} others went on at that time"
            )
        })
    }
}

impl super::Engine {
    /// Says of polls, and of times between them, for which part of the time their functions were armed.
    pub fn sample_polls(&self, report: &mut Report) {
        let AsyncCalls { polls, wait, .. } = &self.tracker.async_calls;
        let mut least: Option<SampledReport> = None;
        for (func, poll) in polls {
            let Some(of_calls) = report.functions.get(*func as usize).and_then(|row| row.sampled)
            else {
                continue;
            };
            // Estimates are of the calls.
            let (calls, calls_error, total_ns, active_ns) = (None, None, None, None);
            let of_polls = SampledReport { calls, calls_error, total_ns, active_ns, ..of_calls };
            if let Some(row) = report.functions.get_mut(poll.index()) {
                row.sampled = Some(of_polls);
            }
            if least.is_none_or(|least| least.armed_percent > of_polls.armed_percent) {
                least = Some(of_polls);
            }
        }
        if let Some(row) = wait.and_then(|wait| report.functions.get_mut(wait.index())) {
            row.sampled = least;
        }
    }
}

impl Tracker {
    /// Applies a poll to its thread, and keeps it for its call. `lost`: events of the thread were lost before.
    #[cold]
    pub(super) fn apply_poll(&mut self, event: &Event, lost: bool) {
        let (pid, tid, func, ts) = (event.pid(), event.tid(), event.func(), event.ts());
        if lost {
            self.async_calls.lose((pid, tid), ts);
            self.threads.damage_beside(pid, tid);
        }
        let what = match event.kind() {
            Some(Kind::PollEnter) => What::Enter(event.sp()),
            Some(Kind::PollExit) => What::Exit(event.sp()),
            _ => What::Call(AsyncCall(event.sp())),
        };
        if let What::Call(call) = what
            && !call.is_end()
        {
            // It came with its poll, and cost nothing by itself.
            self.hits[func.index()] = self.hits[func.index()].saturating_sub(1);
        }
        if !matches!(what, What::Call(_)) {
            let poll = self.poll_of(func);
            let at = Place { func: poll, sp: event.sp(), ts, is_scope: true, site: event.site() };
            let thread = self.threads.get(pid, tid, &self.ledger);
            let stacks = &mut thread.stacks;
            stacks.turn_to(pid, (at.sp, at.ts), &self.regions, &mut self.ledger);
            match what {
                What::Enter(_) => {
                    stacks.enter_scope(at, &mut self.ledger);
                }
                _ => stacks.exit(at, false, &self.facts, &mut self.ledger),
            }
            stacks.last = ts;
        }
        self.async_calls.told.push(Told { ts, pid, tid, func, what });
    }

    /// Applies the polls that were kept: no older ones come.
    #[inline]
    pub(super) fn apply_polls(&mut self) {
        if !self.async_calls.told.is_empty() {
            self.apply_told();
        }
    }

    #[cold]
    fn apply_told(&mut self) {
        let wait = self.await_function();
        let mut told = std::mem::take(&mut self.async_calls.told);
        told.sort_by_key(|told| told.ts);
        for told in &told {
            let (threads, ledger) = (&mut self.threads, &mut self.ledger);
            self.async_calls.apply(told, Engine { threads, ledger, wait });
        }
        told.clear();
        self.async_calls.told = told;
    }

    /// Returns the function that stands for polls of this one.
    fn poll_of(&mut self, func: FuncId) -> FuncId {
        if let Some(known) = self.async_calls.polls.get(&u64::from(func.0)) {
            return *known;
        }
        let of = &self.functions[func.index()];
        let poll = FunctionInfo {
            name: format!("{} (poll)", of.name).into(),
            is_async: false,
            short_name: None,
            full_name: None,
            aliases: Vec::new(),
            ..of.clone()
        };
        let new = self.add_function(poll);
        self.async_calls.polls.insert(u64::from(func.0), new);
        new
    }

    fn await_function(&mut self) -> FuncId {
        if let Some(known) = self.async_calls.wait {
            return known;
        }
        let new = self.add_function(FunctionInfo {
            kind: FunctionKind::Marker,
            exit: ExitSeen::ByExitSites,
            is_async: true,
            // Its ends are those of polls, whose cost counts there.
            probe: Some(ProbeCost { measured: true, ..ProbeCost::default() }),
            ..FunctionInfo::new(AWAIT, OBJECT)
        });
        self.async_calls.wait = Some(new);
        new
    }
}

#[cfg(test)]
#[path = "async_calls/tests.rs"]
mod tests;
