//! Locks, from the calls of the functions that take and release them.
//!
//! Who waits for whom only the order of the events of all threads tells. So the chunks are read one
//! after another. A call is in the chunk in which it ended, but a release counts from its beginning:
//! a first pass finds the calls that begin in an earlier chunk.

use super::count::FirstPass;
use super::lens::Lens;
use super::select::{CallReader, each_part};
use super::values::payloads_in;
use crate::calls::paths::{Node, ROOT};
use crate::calls::spool::Call;
use crate::locks::CallerSums;
use crate::locks::event::{Caller, LockCall, LockEvent, TracedLockFunction};
use crate::locks::ledger::{Ledger, LockFacts, Times};
use crate::recording::{ChunkEntry, ChunkLoss, Payload, ReadAt, Recording};
use crate::report::{LockCallerReport, LockReport, LocksReport};
use crate::stats::rank::nearest_rank;
use crate::units::{FuncId, Nanos, Pid};
use std::collections::VecDeque;
use std::sync::Arc;

/// Callers of a lock in a report, at most.
const MOST_CALLERS: usize = 20;

/// The functions of a recording that are about locks.
struct LockCalls<'a, R> {
    recording: &'a Recording<R>,
    /// By function.
    functions: Vec<Option<TracedLockFunction>>,
    nodes: &'a [Node],
}

impl<'a, R: ReadAt> LockCalls<'a, R> {
    fn new(recording: &'a Recording<R>) -> Self {
        let functions = recording.functions().iter().map(TracedLockFunction::of).collect();
        Self { recording, functions, nodes: recording.nodes() }
    }

    fn ids(&self) -> impl Iterator<Item = FuncId> {
        let functions = (0..).map(FuncId).zip(&self.functions);
        functions.filter(|(_, function)| function.is_some()).map(|(id, _)| id)
    }

    /// Returns the events of a call, the one at its beginning first.
    fn events(&self, payload: &Payload, call: Call) -> [Option<LockEvent>; 2] {
        let of = |function: FuncId| self.functions.get(function.index())?.as_ref();
        let parent = self.nodes[call.node as usize].parent;
        let around = (parent != ROOT).then(|| self.nodes[parent as usize].func);
        let function = of(payload.function);
        // One that is called by another tells nothing more.
        let Some(function) = function.filter(|_| around.is_none_or(|it| of(it).is_none())) else {
            return [None; 2];
        };
        let pid = self.recording.thread(payload.thread).map_or(Pid(0), |thread| thread.pid);
        let call = LockCall {
            thread: payload.thread,
            pid,
            start: call.start,
            end: call.end(),
            timed: call.timed,
            values: &payload.values,
            around,
        };
        function.events(&call).unwrap_or_default()
    }
}

/// Returns the locks that the chosen calls are about.
pub(crate) fn locks<R: ReadAt>(
    recording: &Recording<R>,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
) -> LocksReport {
    let calls = LockCalls::new(recording);
    if calls.ids().next().is_none() {
        return LocksReport::default();
    }
    let is_whole = lens.keeps_all_of(calls.ids());
    let mut early = VecDeque::from(begun_earlier(&calls, lens, chunks, counted));
    let mut selected = CallReader::new(recording, lens, counted);
    let (mut ledger, mut report) = (Ledger::default(), LocksReport::default());
    let mut events = Vec::new();
    for entry in chunks.iter().take_while(|_| !lens.is_stopped()) {
        events.clear();
        let (lost, loss) = payloads_in(&mut selected, entry, true, |payload, call| {
            let [begin, end] = calls.events(payload, call);
            events.extend(begin.filter(|event| event.time > entry.from.0));
            events.extend(end);
        });
        let is_early = |event: &mut LockEvent| event.time <= entry.to.0;
        events.extend(std::iter::from_fn(|| early.pop_front_if(is_early)));
        events.sort_by_key(LockEvent::order);
        let lossy = !is_whole || lost > 0 || loss.is_none_or(|loss| is_lossy(&loss));
        report.lossy_stretches += u64::from(lossy);
        ledger.begin(lossy);
        events.iter().for_each(|event| ledger.add(event));
    }
    report.other_events = ledger.beyond;
    report.locks = ledger.finish().into_iter().map(|facts| of_facts(recording, facts)).collect();
    report.locks.sort_by(|a, b| (b.wait_ns, b.acquisitions).cmp(&(a.wait_ns, a.acquisitions)));
    report
}

fn is_lossy(loss: &ChunkLoss) -> bool {
    loss.events != 0 || loss.late > 0 || loss.decode_errors > 0
}

/// Returns the first events of calls that end in a later chunk, in order of time.
fn begun_earlier<R: ReadAt>(
    calls: &LockCalls<'_, R>,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
) -> Vec<LockEvent> {
    let parts = each_part(chunks, |entries| {
        let mut selected = CallReader::new(calls.recording, lens, counted);
        let mut early = Vec::new();
        for entry in entries.iter().take_while(|_| !lens.is_stopped()) {
            payloads_in(&mut selected, entry, false, |payload, call| {
                if call.start <= entry.from.0 {
                    early.extend(calls.events(payload, call)[0]);
                }
            });
        }
        early
    });
    let mut early: Vec<LockEvent> = parts.into_iter().flatten().collect();
    early.sort_by_key(LockEvent::order);
    early
}

fn of_facts<R: ReadAt>(recording: &Recording<R>, facts: LockFacts) -> LockReport {
    let LockFacts { id, kind, sums, waits, callers } = facts;
    let name = |address: u64| -> Arc<str> {
        let known = recording.address_name(id.pid, address).cloned();
        known.unwrap_or_else(|| format!("{address:#x}").into())
    };
    let name_of_caller = |caller: Caller| match caller {
        Caller::Function(function) => recording.functions()[function.index()].name.clone(),
        Caller::Address(address) => name(address),
        Caller::Unknown => "other callers".into(),
    };
    let of_caller = |(caller, sums): &(Caller, CallerSums)| LockCallerReport {
        name: name_of_caller(*caller),
        waits: sums.waits,
        wait_ns: Nanos(sums.wait_ns),
        blocked: sums.blocked,
        blocked_ns: Nanos(sums.blocked_ns),
    };
    let mean = |times: &Times| times.total.checked_div(times.count).map(Nanos);
    let max = |times: &Times| (times.count > 0).then_some(Nanos(times.max));
    let p99 = waits.at(nearest_rank(sums.waits.count, 990));
    let p99 = p99.map(|p99| Nanos(p99.min(sums.waits.max)));
    let blocked = callers.iter().fold(0_u64, |sum, (_, of)| sum.saturating_add(of.blocked_ns));
    LockReport {
        name: name(id.address),
        address: format!("{:#x}", id.address),
        pid: (id.pid != Pid(0)).then_some(id.pid),
        kind,
        recursive: sums.recursive,
        acquisitions: sums.acquisitions,
        shared: sums.shared,
        nested: sums.nested,
        refused: sums.refused,
        timed_out: sums.timed_out,
        failed: sums.failed,
        unclear: sums.unclear,
        contended: sums.contended,
        wait_ns: Nanos(sums.waits.total),
        wait_mean_ns: mean(&sums.waits),
        wait_p99_ns: p99,
        wait_max_ns: max(&sums.waits),
        uncontended_ns: Nanos(sums.uncontended.total),
        uncontended_max_ns: max(&sums.uncontended),
        conditions: sums.conditions.count,
        conditions_ns: Nanos(sums.conditions.total),
        holds: sums.holds.count,
        hold_ns: Nanos(sums.holds.total),
        hold_mean_ns: mean(&sums.holds),
        hold_max_ns: max(&sums.holds),
        unknown_holds: sums.unknown_holds,
        open_holds: sums.open_holds,
        blocked_ns: Nanos(blocked),
        callers: callers.iter().take(MOST_CALLERS).map(of_caller).collect(),
    }
}
