//! The ledger of finished calls: tallies, spool, and call paths.

use crate::calls::paths::{Paths, ROOT};
use crate::calls::spool::{Call, LogId, Spool};
use crate::calls::{FunctionCounts, each_bit};
use crate::engine::mixed::Mixed;
use crate::engine::waits::HiddenSwitches;
use crate::filter::Filter;
use crate::function::ExitSeen;
use crate::stats::tally::Tally;
use crate::units::{FuncId, Nanos, ThreadId};
use crate::waits::Waits;

/// The ledger's data for one thread.
#[derive(Debug, Default)]
pub(crate) struct Account {
    log: LogId,
    /// The log of the thread in [`Ledger::kept`].
    kept: LogId,
    /// One bit per function: set if this thread finished a call of it in this period.
    called: Vec<u64>,
    pub(crate) calls: u64,
}

impl Account {
    pub(crate) fn of(thread: ThreadId) -> Self {
        Self { log: LogId::of(thread), kept: LogId::of(thread), ..Self::default() }
    }

    pub(crate) fn thread(&self) -> ThreadId {
        self.log.owner()
    }

    pub(crate) fn log(&self) -> LogId {
        self.log
    }

    pub(crate) fn has_called(&self, func: FuncId) -> bool {
        self.called.get(func.index() / 64).is_some_and(|word| word >> (func.index() % 64) & 1 == 1)
    }

    #[cold]
    fn mark(&mut self, func: FuncId) {
        let word = func.index() / 64;
        if word >= self.called.len() {
            self.called.resize(word + 1, 0);
        }
        self.called[word] |= 1 << (func.index() % 64);
    }

    /// Begins a new period.
    pub(crate) fn reset(&mut self) {
        self.called.clear();
        self.calls = 0;
    }
}

#[derive(Debug)]
pub(crate) struct Ledger {
    pub(crate) paths: Paths,
    /// The sums by path node.
    pub(crate) tallies: Vec<Tally>,
    pub(crate) spool: Spool,
    /// The same calls for a recording, if reports also need the spool.
    pub(crate) kept: Option<Spool>,
    /// The counts by function.
    pub(crate) functions: Vec<FunctionCounts>,
    /// By function, true if its calls are waits. These count however short they are: the time of the
    /// calls around them is divided by them.
    pub(crate) waits: Vec<bool>,
    /// By function, the way in which its calls are seen to end.
    pub(crate) exits: Vec<ExitSeen>,
    /// The number of calls inside too many others for a return probe of their own.
    pub(crate) too_deep: u64,
    pub(crate) filter: Filter,
    /// True if calls that are too deep may have left no events, but for their ends.
    pub(crate) thrifty: bool,
    /// True if entries may come late, and may come twice.
    pub(crate) holds: bool,
    pub(crate) filtered: u64,
    /// The number of calls since the engine was made.
    pub(crate) calls: u64,
    /// The number of these that were waits.
    pub(crate) ended_waits: u64,
    pub(crate) hidden_switches: HiddenSwitches,
    /// Here if slow calls are kept.
    pub(crate) mixed: Option<Mixed>,
}

impl Ledger {
    pub(crate) fn new(paths: Paths, spool: Spool, filter: Filter) -> Self {
        let tallies = vec![Tally::default()];
        let (functions, waits) = (Vec::new(), Vec::new());
        Self {
            paths,
            tallies,
            spool,
            kept: None,
            functions,
            waits,
            exits: Vec::new(),
            too_deep: 0,
            filter,
            thrifty: false,
            holds: false,
            filtered: 0,
            calls: 0,
            ended_waits: 0,
            hidden_switches: HiddenSwitches::default(),
            mixed: None,
        }
    }

    #[inline]
    pub(crate) fn node(&mut self, parent: u32, func: FuncId) -> u32 {
        self.paths.cached_child(parent, func).unwrap_or_else(|| self.find_node(parent, func))
    }

    #[inline(never)]
    fn find_node(&mut self, parent: u32, func: FuncId) -> u32 {
        let node = self.paths.child(parent, func);
        self.tallies.resize(self.paths.nodes().len(), Tally::default());
        node
    }

    /// Returns the node of a function's calls beyond the bounds on paths.
    pub(crate) fn other(&mut self, func: FuncId) -> u32 {
        let node = self.paths.other(func);
        self.tallies.resize(self.paths.nodes().len(), Tally::default());
        node
    }

    /// Enters a call that is over, with the waits in it. Returns the time that does not belong to its
    /// caller itself.
    #[inline]
    pub(crate) fn finish(
        &mut self,
        who: &mut Account,
        func: FuncId,
        call: Call,
        callees: u64,
        waits: Waits,
    ) -> u64 {
        let Call { duration, node, timed, .. } = call;
        if timed && duration < self.filter.min_duration.0 && !self.waits[func.index()] {
            self.filtered += 1;
            return callees;
        }
        let own = duration.saturating_sub(callees);
        let tally = &mut self.tallies[node as usize];
        if timed {
            tally.add_timed(duration, own);
        } else {
            tally.add_untimed(duration, own);
        }
        if waits != Waits::default() {
            tally.waits.add(waits);
        }
        self.count(who, func);
        self.enter(who, call);
        duration
    }

    /// Counts a call on this path that is left out.
    #[cold]
    pub(crate) fn leave_out_in(&mut self, parent: u32) {
        if parent != ROOT {
            let around = self.paths.nodes()[parent as usize].func;
            self.functions[around.index()].callees_left_out += 1;
        }
    }

    /// Enters a call that has no duration.
    pub(crate) fn point(&mut self, who: &mut Account, func: FuncId, at: u64, node: u32) {
        self.tallies[node as usize].add_untimed(0, 0);
        self.count(who, func);
        self.enter(who, Call { start: at, duration: 0, node, timed: false });
    }

    #[inline]
    fn enter(&mut self, who: &mut Account, call: Call) {
        self.spool.push(&mut who.log, call);
        if let Some(kept) = &mut self.kept {
            kept.push(&mut who.kept, call);
        }
    }

    /// Returns the end of the thread's call that ended last, or 0: calls are entered in the order of their ends.
    pub(crate) fn latest_end(&self, who: &Account) -> u64 {
        self.spool.index(who.log).map_or(0, |log| self.spool.logs()[log].end())
    }

    /// Returns the calls that go into a recording.
    pub(crate) fn recorded(&mut self) -> &mut Spool {
        self.kept.as_mut().unwrap_or(&mut self.spool)
    }

    #[inline]
    fn count(&mut self, who: &mut Account, func: FuncId) {
        self.calls += 1;
        who.calls += 1;
        if !who.has_called(func) {
            who.mark(func);
            self.functions[func.index()].threads += 1;
        }
    }

    /// Notes the work of a thread that has ended for the functions that it called.
    pub(crate) fn know_work(&mut self, who: &Account, most: Nanos) {
        each_bit(&who.called, |function| self.functions[function].work.add(most));
    }

    /// Returns the number of untimed calls of some functions, without waits.
    pub(crate) fn untimed(&self, is_of: impl Fn(FuncId) -> bool) -> u64 {
        let is_wait = |func: FuncId| self.waits.get(func.index()) == Some(&true);
        let nodes = self.paths.nodes().iter().zip(&self.tallies);
        let chosen = nodes.filter(|(node, _)| is_of(node.func) && !is_wait(node.func));
        chosen.map(|(_, tally)| tally.untimed).sum()
    }

    pub(crate) fn headless(&mut self, func: FuncId) {
        self.functions[func.index()].headless += 1;
    }

    /// Begins a new period.
    pub(crate) fn reset(&mut self) {
        self.tallies.fill(Tally::default());
        self.functions.fill(FunctionCounts::default());
        self.spool.clear();
        self.filtered = 0;
    }
}
