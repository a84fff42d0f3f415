//! Finds the slowest calls of each function, with their direct callees.
//!
//! A call that ends costs nothing for it: the spool has all calls, and is read before it gives some up,
//! at a fold and at the end of a period. Read backwards, a thread's log has a call before the calls in
//! it. So calls that may be among the slowest stand on a stack while the calls in them go by. The
//! callees of calls that are still open are carried on to the next reading.
//!
//! Where a callee cannot be told, all callees of its caller are unknown: on threads that go from stack to
//! stack, and where calls are beyond the bounds on paths.

use crate::calls::paths::{Node, functions_on};
use crate::calls::spool::{Backward, Call};
use crate::engine::Engine;
use crate::engine::mixed::Mixed;
use crate::engine::threads::ThreadName;
use crate::engine::tracker::Tracker;
use crate::hash::IntMap;
use crate::report::{Callee, SlowAsked, SlowCall};
use crate::stats::unions::OpenCall;
use crate::units::{FuncId, Nanos, ThreadId};
use std::collections::HashMap;

/// The calls and the time of each direct callee.
type Inside = IntMap<(u64, u64)>;
/// The start and the path of a call. Two threads may have the same.
type CallKey = (u64, u32);

/// Limit of open calls whose callees are carried on. Those of others are not known.
const MOST_CARRIED: usize = 65_536;

/// See the module.
#[derive(Debug)]
pub(crate) struct Slow {
    asked: SlowAsked,
    /// By function, slowest first.
    found: Vec<Vec<Found>>,
    /// Calls that were open at the last reading. `None`: two calls have this key, or their callees are
    /// not known.
    carried: HashMap<CallKey, Option<Inside>>,
    /// The end of the last reading. Calls that began before were open then.
    read_to: u64,
}

#[derive(Debug)]
struct Found {
    call: Call,
    thread: ThreadId,
    inside: Option<Inside>,
}

/// A call whose callees go by.
struct Around {
    start: u64,
    node: u32,
    /// `None` while it is open.
    ended: Option<Call>,
    /// `None` if they are not known.
    inside: Option<Inside>,
}

impl Around {
    fn open(call: &OpenCall) -> Self {
        let OpenCall { start, node, .. } = *call;
        Self { start, node, ended: None, inside: Some(Inside::default()) }
    }

    fn ended(call: Call) -> Self {
        let Call { start, node, .. } = call;
        Self { start, node, ended: Some(call), inside: Some(Inside::default()) }
    }
}

impl Slow {
    fn new(asked: SlowAsked, from: u64) -> Self {
        Self { asked, found: Vec::new(), carried: HashMap::new(), read_to: from }
    }

    /// Reads the calls that ended up to `to`: those of each log of the spool, by its place there, with the
    /// calls that were open then.
    pub(super) fn read<'a>(
        &mut self,
        to: u64,
        logs: impl Iterator<Item = (ThreadId, Backward<'a>)>,
        open: &[(Option<usize>, Vec<OpenCall>)],
        nodes: &[Node],
        mixed: Option<&Mixed>,
    ) {
        let before = std::mem::take(&mut self.carried);
        let with_log = open.iter().filter_map(|(log, open)| Some(((*log)?, &open[..])));
        let of_logs: HashMap<usize, &[OpenCall]> = with_log.collect();
        let mut reading = Reading { slow: self, before, nodes, mixed };
        let mut count = 0;
        for (place, (thread, finished)) in logs.enumerate() {
            let open = of_logs.get(&place).copied().unwrap_or_default();
            reading.thread(thread, finished, open);
            count += 1;
        }
        // Nothing has ended on these threads.
        let silent = open.iter().filter(|(log, _)| log.is_none_or(|log| log >= count));
        silent.flat_map(|(_, open)| open).for_each(|call| reading.carry(Around::open(call)));
        self.read_to = to;
    }

    fn least(&self, function: FuncId) -> u64 {
        let found = self.found.get(function.index());
        let last = found.filter(|found| found.len() >= self.asked.most).and_then(|all| all.last());
        last.map_or(self.asked.from.0, |last| last.call.duration.saturating_add(1))
    }

    fn add(&mut self, function: FuncId, found: Found) {
        if self.found.len() <= function.index() {
            self.found.resize_with(function.index() + 1, Vec::new);
        }
        let all = &mut self.found[function.index()];
        let place = all.partition_point(|other| other.call.duration >= found.call.duration);
        all.insert(place, found);
        all.truncate(self.asked.most);
    }
}

/// A reading of the spool.
struct Reading<'a> {
    slow: &'a mut Slow,
    before: HashMap<CallKey, Option<Inside>>,
    nodes: &'a [Node],
    mixed: Option<&'a Mixed>,
}

impl Reading<'_> {
    /// Reads the finished calls of a thread. The open ones are around them.
    fn thread(&mut self, thread: ThreadId, finished: Backward<'_>, open: &[OpenCall]) {
        let mut around: Vec<_> = open.iter().map(Around::open).collect();
        for call in finished {
            let mut overlaps = false;
            while let Some(mut over) = around.pop_if(|around| call.start < around.start) {
                if call.start.saturating_add(call.duration) > over.start {
                    // Neither is inside the other: they were on two stacks.
                    (overlaps, over.inside) = (true, None);
                }
                self.leave(over, thread);
            }
            let is_short = call.duration < self.slow.asked.from.0;
            if is_short && around.is_empty() {
                continue;
            }
            let node = self.nodes[call.node as usize];
            if let Some(caller) = around.last_mut() {
                if node.other {
                    // Nobody knows who called it.
                    caller.inside = None;
                } else if caller.node == node.parent
                    && let Some(inside) = &mut caller.inside
                {
                    let (calls, total) = inside.entry(node.func.0.into()).or_default();
                    (*calls, *total) = (*calls + 1, total.saturating_add(call.duration));
                }
            }
            if !is_short && call.timed && !node.other && call.duration >= self.slow.least(node.func)
            {
                let mut call = Around::ended(call);
                if overlaps {
                    call.inside = None;
                }
                around.push(call);
            }
        }
        while let Some(over) = around.pop() {
            self.leave(over, thread);
        }
    }

    /// Takes a call all of whose callees have gone by.
    fn leave(&mut self, around: Around, thread: ThreadId) {
        let Some(call) = around.ended else { return self.carry(around) };
        let function = self.nodes[call.node as usize].func;
        // Others that are slower may have gone by meanwhile.
        if call.duration >= self.slow.least(function) {
            let end = call.start.saturating_add(call.duration);
            let is_mixed = self.mixed.is_some_and(|mixed| mixed.has(thread, call.start, end));
            let inside = if is_mixed { None } else { self.with_earlier(around) };
            self.slow.add(function, Found { call, thread, inside });
        }
    }

    fn carry(&mut self, around: Around) {
        let key = (around.start, around.node);
        if let Some(twin) = self.slow.carried.get_mut(&key) {
            *twin = None;
        } else if !self.nodes[around.node as usize].other && self.slow.carried.len() < MOST_CARRIED
        {
            let inside = self.with_earlier(around);
            self.slow.carried.insert(key, inside);
        }
    }

    /// Returns the callees with those of earlier readings.
    fn with_earlier(&mut self, around: Around) -> Option<Inside> {
        let mut inside = around.inside?;
        if around.start < self.slow.read_to {
            let earlier = self.before.get(&(around.start, around.node))?.as_ref()?;
            for (function, (more, ns)) in earlier {
                let (calls, total) = inside.entry(*function).or_default();
                (*calls, *total) = (*calls + more, total.saturating_add(*ns));
            }
        }
        Some(inside)
    }
}

impl Tracker {
    /// Returns the slowest calls since the last time. The next period begins here.
    pub(super) fn take_slow_calls(&mut self, end: Nanos) -> Vec<SlowCall> {
        let Some(mut slow) = self.slow.take() else { return Vec::new() };
        let open = self.open_calls();
        let logs = self.ledger.spool.logs().iter();
        let logs = logs.map(|log| (log.owner(), log.backward()));
        let mixed = self.ledger.mixed.as_ref();
        slow.read(end.0, logs, &open, self.ledger.paths.nodes(), mixed);
        if let Some(mixed) = &mut self.ledger.mixed {
            mixed.keep(self.threads.iter().map(|thread| thread.stacks.account.thread()));
        }
        let found = std::mem::take(&mut slow.found);
        let threads = self.threads.all_named();
        let found = found.into_iter().flatten();
        let mut calls: Vec<_> = found.filter_map(|found| self.slow_call(found, &threads)).collect();
        calls.sort_by_key(|call| (call.start_ns, call.tid));
        self.slow = Some(slow);
        calls
    }

    fn slow_call(
        &self,
        Found { call, thread, inside }: Found,
        threads: &HashMap<ThreadId, ThreadName>,
    ) -> Option<SlowCall> {
        let nodes = self.ledger.paths.nodes();
        let function = nodes.get(call.node as usize)?.func.index();
        let ThreadName { pid, tid, name, .. } = threads.get(&thread)?.clone();
        let inside = inside.map(|all| {
            let callee = |(function, (calls, total)): (u64, (u64, u64))| Callee {
                function: function as usize,
                calls,
                total_ns: Nanos(total),
            };
            let mut all: Vec<_> = all.into_iter().map(callee).collect();
            all.sort_by(|a, b| {
                b.total_ns.cmp(&a.total_ns).then_with(|| a.function.cmp(&b.function))
            });
            all
        });
        Some(SlowCall {
            function,
            path: functions_on(call.node, nodes).into_iter().map(FuncId::index).collect(),
            pid,
            tid,
            thread: name,
            start_ns: Nanos(call.start),
            duration_ns: Nanos(call.duration),
            inside,
        })
    }
}

impl Engine {
    /// Keeps the slowest calls of each function for the reports of intervals, from the period that has
    /// begun last.
    pub fn keep_slow_calls(&mut self, asked: SlowAsked) {
        if asked.most == 0 {
            self.tracker.slow = None;
            self.tracker.ledger.mixed = None;
            self.tracker.threads.keep_the_gone(false);
            return;
        }
        let from = self.tracker.period.start;
        let slow = self.tracker.slow.get_or_insert_with(|| Slow::new(asked, from));
        slow.asked = asked;
        self.tracker.ledger.mixed.get_or_insert_default();
        self.tracker.threads.keep_the_gone(true);
    }
}
