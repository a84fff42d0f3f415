//! Applies events in order: to the stacks of their threads, and through them to the ledger.

use crate::calls::spool::{Backward, Log};
use crate::engine::addresses::Addresses;
use crate::engine::async_calls::AsyncCalls;
use crate::engine::call_names::CallNames;
use crate::engine::counted::Counted;
use crate::engine::exits::NewExit;
use crate::engine::ledger::Ledger;
use crate::engine::payloads::Payloads;
use crate::engine::period::Period;
use crate::engine::process::ProcessChange;
use crate::engine::recorder::Recorder;
use crate::engine::region::Regions;
use crate::engine::slow::Slow;
use crate::engine::stack::{Place, StackFacts};
use crate::engine::threads::Threads;
use crate::engine::wakers::Wakers;
use crate::function::{ByOrder, ExitSeen, FunctionInfo};
use crate::ingest::change::ProcessEvent;
use crate::ingest::event::Event;
use crate::ingest::order::Sink;
use crate::stats::histogram::HistogramCounter;
use crate::stats::unions::{OpenCall, ThreadCalls, with_open};
use crate::units::{FuncId, Nanos};
use crate::values::RingPayload;
use crate::waits::Wait;
use ctrace_common::{Change, Kind};

#[derive(Debug)]
pub(crate) struct Tracker {
    pub(crate) functions: Vec<FunctionInfo>,
    pub(super) facts: Vec<StackFacts>,
    /// The functions that stand for waits, by reason.
    pub(super) waits: [Option<FuncId>; Wait::COUNT],
    /// Here if it is seen who ends waits.
    pub(super) wakers: Option<Wakers>,
    /// The number of events by function, to watch the cost of tracing.
    pub(crate) hits: Vec<u64>,
    pub(crate) events: u64,
    pub(crate) threads: Threads,
    pub(crate) regions: Regions,
    pub(super) async_calls: AsyncCalls,
    pub(crate) ledger: Ledger,
    pub(crate) period: Period,
    /// The counter for folds.
    pub(crate) counter: HistogramCounter,
    pub(crate) changes: Vec<ProcessChange>,
    pub(crate) payloads: Payloads,
    pub(super) call_names: CallNames,
    pub(crate) addresses: Addresses,
    /// True if a recording stores values and functions have some.
    keeps_values: bool,
    /// The time at which tracing was armed; earlier events are not of this trace.
    pub(super) armed: u64,
    /// The time at which functions last lost their probes. All entries that were held then were taken in.
    pub(super) given_up: u64,
    /// True if forked processes send events, including their ends.
    pub(crate) follow: bool,
    /// The time of the latest event.
    pub(crate) now: u64,
    /// Takes the calls in place of a report.
    pub(crate) recorder: Option<Recorder>,
    /// The last reading, where calls are counted without an event of each.
    pub(crate) counted: Option<Counted>,
    /// Here if slow calls are kept.
    pub(super) slow: Option<Slow>,
}

impl Tracker {
    pub(crate) fn new(ledger: Ledger, armed: u64, follow: bool) -> Self {
        Self {
            functions: Vec::new(),
            facts: Vec::new(),
            waits: [None; Wait::COUNT],
            wakers: None,
            hits: Vec::new(),
            events: 0,
            threads: Threads::new(),
            regions: Regions::default(),
            async_calls: AsyncCalls::default(),
            ledger,
            period: Period::new(armed),
            counter: HistogramCounter::default(),
            changes: Vec::new(),
            payloads: Payloads::default(),
            call_names: CallNames::default(),
            addresses: Addresses::default(),
            keeps_values: false,
            armed,
            given_up: 0,
            follow,
            now: armed,
            recorder: None,
            counted: None,
            slow: None,
        }
    }

    pub(crate) fn add_function(&mut self, info: FunctionInfo) -> FuncId {
        let id = FuncId(self.functions.len() as u32);
        self.facts.push(StackFacts::new(&info, Box::default()));
        self.keeps_values |= self.recorder.is_some() && !info.values.is_empty();
        self.ledger.functions.push(Default::default());
        self.ledger.waits.push(info.wait.is_some());
        self.ledger.exits.push(info.exit);
        self.addresses.add_function(&info);
        self.functions.push(info);
        self.hits.push(0);
        id
    }

    /// Sets the functions to which a function may jump, if all its jumps lead to traced ones.
    pub(crate) fn set_successors(&mut self, function: FuncId, successors: Box<[FuncId]>) {
        if let Some(info) = self.functions.get(function.index()) {
            self.facts[function.index()] = StackFacts::new(info, successors);
        }
    }

    /// Changes how the ends of these functions' calls are seen.
    pub(crate) fn set_exits(&mut self, changed: Vec<NewExit>) {
        let lost = changed.iter().filter(|new| new.exit == ExitSeen::Never);
        let lost: Vec<FuncId> = lost.map(|new| new.function).collect();
        changed.into_iter().for_each(|new| self.set_exit(new));
        if lost.is_empty() {
            return;
        }
        for function in StackFacts::lose_ends(&mut self.facts, lost) {
            self.functions[function.index()].ends_with_successor = false;
        }
    }

    fn set_exit(&mut self, NewExit { function, exit, probe }: NewExit) {
        if let Some(info) = self.functions.get_mut(function.index()) {
            info.exit = exit;
            if let (Some(before), Some(new)) = (info.probe, probe) {
                info.probe = Some(before.replaced_by(new));
                self.recorder
                    .iter_mut()
                    .for_each(|recorder| recorder.add_cost(function, info.probe));
            }
            self.facts[function.index()].renew(info);
            self.ledger.exits[function.index()] = exit;
        }
    }

    pub(crate) fn begin(&mut self, start: u64) {
        self.armed = start;
        if let Some(recorder) = &mut self.recorder {
            recorder.begin(start);
        }
        self.period = Period::new(start);
    }

    /// Counts values of an event that did not come.
    #[cold]
    pub(crate) fn lose_values(&mut self, event: &Event) {
        if event.ts() >= self.armed && self.recorder.is_some() {
            self.payloads.lose();
        }
    }

    /// Returns all threads with calls, in the form for `unions`: first those with a log, by its
    /// index.
    pub(crate) fn thread_calls(&self) -> Vec<ThreadCalls<Backward<'_>>> {
        let logs = self.ledger.spool.logs().iter();
        with_open(logs.map(Log::backward), self.open_calls())
    }

    /// Returns the open calls of each thread that has any, and the index of its log.
    pub(crate) fn open_calls(&self) -> Vec<(Option<usize>, Vec<OpenCall>)> {
        let open = self.threads.iter().filter_map(|thread| {
            let frames = thread.stacks.open();
            let open = frames.iter().map(|frame| OpenCall {
                start: frame.start,
                node: frame.node,
                timed: false,
                kept: false,
                end: u64::MAX,
            });
            let log = self.ledger.spool.index(thread.stacks.account.log());
            (!frames.is_empty()).then(|| (log, open.collect()))
        });
        open.collect()
    }
}

impl Tracker {
    /// Processes the leading events that are of one thread. Returns the others. `VALUES`: some have
    /// values that are kept. Without them the loop has a twentieth fewer instructions.
    fn run<'a, const VALUES: bool>(
        &mut self,
        first: &Event,
        events: &'a [Event],
        late_before: u64,
    ) -> &'a [Event] {
        if self.is_of_wait(first) {
            self.apply_wait(first, late_before);
            return &events[1..];
        }
        let (pid, who) = (first.pid(), first.who());
        let thread = self.threads.get(pid, first.tid(), &self.ledger);
        let stacks = &mut thread.stacks;
        let in_time = self.armed.max(late_before);
        let (mut rest, mut lost) = (events, None);
        while let [event, after @ ..] = rest
            && event.who() == who
        {
            let (func, ts) = (event.func(), event.ts());
            let Some(hits) = self.hits.get_mut(func.index()) else { break };
            rest = after;
            let was_held = self.ledger.holds && event.kind() == Some(Kind::Enter);
            if was_held
                && ts <= stacks.last
                && (ts < self.given_up || stacks.has_begun(func, event.sp(), ts))
            {
                if event.lost_before() > 0 {
                    stacks.damage();
                    lost = Some(ts);
                }
                continue;
            }
            if ts < in_time {
                if ts < self.armed {
                    continue;
                }
                // A held entry comes before all events of its thread that are younger.
                self.period.late += u64::from(!was_held || ts < stacks.last);
            }
            self.events += 1;
            *hits += 1;
            if event.lost_before() > 0 {
                stacks.damage();
                lost = Some(ts);
            }
            if ts < stacks.last {
                // The event cannot be placed any more, so it is as good as lost. Only a late event
                // gets here.
                stacks.damage();
                lost = Some(ts);
                continue;
            }
            thread.first.get_or_insert(ts);
            let kind = event.kind();
            let has_values = VALUES && !self.functions[func.index()].values.is_empty();
            let is_scope = kind == Some(Kind::ScopeEnter);
            let at = Place { func, sp: event.sp(), ts, is_scope, site: event.site() };
            let has_result = has_values && self.functions[func.index()].has_result();
            let least = self.ledger.filter.min_duration.0;
            let goes_on = kind == Some(Kind::ExitJump) && self.facts[func.index()].goes_on;
            if VALUES
                && (has_result || least > 0)
                && !goes_on
                && let Some(Kind::Return | Kind::ExitRet | Kind::ExitJump | Kind::ScopeExit) = kind
            {
                stacks.end_untold_wait(ts, &mut self.ledger);
                stacks.turn_to(pid, (at.sp, ts), &self.regions, &mut self.ledger);
                let thread = stacks.account.thread();
                let start = stacks.ended_by(at);
                let is_short = |start: u64| ts.saturating_sub(start) < least;
                let own = start.map(|start| (func, start)).into_iter();
                for (func, start) in own.chain(stacks.ended_beside(at)) {
                    if is_short(start) && self.functions[func.index()].has_arguments() {
                        self.payloads.forget(event, func, (thread, Nanos(start)));
                    }
                }
                if has_result && kind != Some(Kind::ExitJump) {
                    let counts = start.filter(|start| !is_short(*start));
                    let call = counts.map(|start| (thread, Nanos(start)));
                    self.payloads.expect_result(event, call);
                }
            }
            let plain = match kind {
                Some(Kind::Enter | Kind::ScopeEnter) => {
                    let by = if is_scope { Kind::ScopeExit } else { Kind::Return };
                    if let [exit, after @ ..] = after
                        && !has_values
                        && exit.ends(event, by)
                        && exit.ts() >= ts
                        && ts >= in_time
                        && stacks.leaf_plainly(at, exit.ts(), &mut self.ledger)
                    {
                        rest = after;
                        self.events += 1;
                        *hits += 1;
                        stacks.last = exit.ts();
                        continue;
                    }
                    stacks.enter_plainly(at, &mut self.ledger)
                }
                Some(
                    Kind::Point | Kind::Unmet | Kind::PollEnter | Kind::PollExit | Kind::AsyncCall,
                )
                | None => false,
                Some(_) => !goes_on && stacks.exit_plainly(at, &mut self.ledger),
            };
            let mut counts = plain;
            if !plain {
                stacks.end_untold_wait(ts, &mut self.ledger);
                if let Some(Kind::PairEnter | Kind::PairExit) = kind {
                    stacks.last = ts;
                    self.now = self.now.max(ts);
                    self.apply_by_order::<VALUES>(event, lost.is_some());
                    return rest;
                }
                if let Some(Kind::PollEnter | Kind::PollExit | Kind::AsyncCall) = kind {
                    stacks.last = ts;
                    self.now = self.now.max(ts);
                    self.apply_poll(event, lost.is_some());
                    return rest;
                }
                stacks.turn_to(pid, (at.sp, ts), &self.regions, &mut self.ledger);
                match kind {
                    Some(Kind::Enter) => counts = stacks.enter(at, &self.facts, &mut self.ledger),
                    Some(Kind::ScopeEnter) => counts = stacks.enter_scope(at, &mut self.ledger),
                    Some(Kind::Return) => {
                        // A call that was under way when its function lost its return probe may
                        // have ended already.
                        let is_late = self.functions[func.index()].exit != ExitSeen::ByReturnProbe;
                        stacks.exit(at, is_late, &self.facts, &mut self.ledger)
                    }
                    Some(Kind::ExitRet | Kind::ScopeExit) => {
                        stacks.exit(at, false, &self.facts, &mut self.ledger)
                    }
                    Some(Kind::ExitJump) if goes_on => stacks.jump_on(at, &mut self.ledger),
                    Some(Kind::ExitJump) => stacks.exit(at, true, &self.facts, &mut self.ledger),
                    Some(Kind::Unmet) => stacks.pass_unmet(at, &self.facts, &mut self.ledger),
                    Some(Kind::Point) => counts = stacks.point(at, &mut self.ledger),
                    _ => {}
                }
            }
            if has_values
                && let Some(Kind::Enter | Kind::ScopeEnter | Kind::Point) = kind
                && self.functions[func.index()].has_arguments()
            {
                self.payloads.expect(event, counts.then(|| stacks.account.thread()));
            }
            stacks.last = ts;
        }
        self.now = self.now.max(stacks.last);
        if let Some(at) = lost {
            self.threads.damage_beside(pid, first.tid());
            self.async_calls.lose((pid, first.tid()), at);
        }
        rest
    }

    /// Applies an end of a pair that only the order of a thread's events joins. Such a pair has
    /// stacks of its own: its calls may begin and end anywhere in those of the functions. `lost`:
    /// events of the thread were lost since its last such event.
    #[cold]
    fn apply_by_order<const VALUES: bool>(&mut self, event: &Event, lost: bool) {
        let (pid, tid, func, ts) = (event.pid(), event.tid(), event.func(), event.ts());
        if lost {
            self.threads.damage_beside(pid, tid);
        }
        let FunctionInfo { by_order, values, .. } = &self.functions[func.index()];
        let nests = *by_order == Some(ByOrder::Nested);
        let thread = self.threads.beside(pid, tid, func, &mut self.ledger);
        thread.first.get_or_insert(ts);
        let stacks = &mut thread.stacks;
        match event.kind() {
            Some(Kind::PairEnter) => {
                let named = self.call_names.of(event);
                let of = named.unwrap_or(func);
                let counts = stacks.enter_by_order(of, ts, nests, &mut self.ledger);
                if VALUES && !values.is_empty() && named.is_none() {
                    self.payloads.expect(event, counts.then(|| stacks.account.thread()));
                }
            }
            _ => stacks.exit_by_order(func, ts, &mut self.ledger),
        }
        stacks.last = ts;
    }
}

impl Sink for Tracker {
    fn events(&mut self, events: &[Event], late_before: u64) {
        let mut rest = events;
        while let Some(first) = rest.first() {
            rest = match self.keeps_values {
                true => self.run::<true>(first, rest, late_before),
                false => self.run::<false>(first, rest, late_before),
            };
        }
    }

    fn caught_up(&mut self) {
        self.apply_polls();
        self.threads.bound_goroutines(&mut self.ledger);
        self.record_when_due();
        if self.recorder.is_none() || self.ledger.kept.is_some() {
            self.bound_spool();
        }
    }

    /// Only a recording stores payloads.
    fn payload(&mut self, payload: RingPayload) {
        if payload.time.0 < self.armed {
            self.call_names.forget(&payload);
            return;
        }
        match self.call_names.forget(&payload) {
            Some(true) => return,
            Some(false) => return self.payloads.lose(),
            None => {}
        }
        if payload.function.index() >= self.functions.len() {
            self.period.decode_errors += 1;
        } else if self.recorder.is_some() {
            self.addresses.note(&payload);
            self.payloads.hold(payload);
        }
    }

    fn change(&mut self, event: &ProcessEvent, late_before: u64) {
        let time = event.time.0;
        if time < self.armed {
            return;
        }
        self.events += 1;
        self.period.late += u64::from(time < late_before);
        self.now = self.now.max(time);
        if let Change::Wake { .. } = event.change {
            self.note_wake(event, time < late_before);
            return;
        }
        let thread = self.threads.get(event.pid, event.tid, &self.ledger);
        if event.lost_before > 0 {
            thread.stacks.damage();
            self.threads.damage_beside(event.pid, event.tid);
            self.async_calls.lose((event.pid, event.tid), time);
        }
        self.process_changed(event);
    }
}
