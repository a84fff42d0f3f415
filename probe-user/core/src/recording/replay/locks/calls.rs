//! The calls of lock functions in a recording, as events of locks.

use crate::calls::paths::{Node, ROOT};
use crate::calls::spool::Call;
use crate::locks::event::{LockCall, LockEvent, TracedLockFunction};
use crate::recording::replay::lens::Lens;
use crate::recording::{ChunkEntry, Payload, Recording};
use crate::units::{FuncId, Pid, ThreadId};
use std::collections::BTreeMap;

/// The functions of a recording that are about locks.
pub(super) struct LockCalls<'a> {
    pub(super) recording: &'a Recording,
    /// By function.
    functions: Vec<Option<TracedLockFunction>>,
    nodes: &'a [Node],
}

/// The calls that are open in the end.
#[derive(Debug, Default)]
pub(super) struct OpenCalls {
    pub(super) events: Vec<LockEvent>,
    /// The number of those that wait for a lock of which nothing is known.
    pub(super) unknown_waits: u64,
}

impl<'a> LockCalls<'a> {
    pub(super) fn new(recording: &'a Recording) -> Self {
        let functions = recording.functions().iter().map(TracedLockFunction::of).collect();
        Self { recording, functions, nodes: recording.nodes() }
    }

    pub(super) fn are_possible(&self) -> bool {
        self.functions.iter().any(Option::is_some)
    }

    /// Returns the function that is called at a node, and the traced one around it. One that another
    /// lock function calls tells nothing more.
    fn function(&self, node: u32) -> Option<(&TracedLockFunction, Option<FuncId>)> {
        let of = |function: FuncId| self.functions.get(function.index())?.as_ref();
        let Node { parent, func, .. } = self.nodes[node as usize];
        let around = (parent != ROOT).then(|| self.nodes[parent as usize].func);
        let function = of(func)?;
        let is_part = around.and_then(of).is_some_and(|around| function.is_part_of(around));
        (!is_part).then_some((function, around))
    }

    fn call<'p>(&self, payload: &'p Payload, call: Call, around: Option<FuncId>) -> LockCall<'p> {
        LockCall {
            thread: payload.thread,
            pid: self.recording.thread(payload.thread).map_or(Pid(0), |thread| thread.pid),
            start: call.start,
            end: call.end(),
            timed: call.timed,
            values: &payload.values,
            around,
        }
    }

    /// Returns the events of a call, the one at its beginning first.
    pub(super) fn events(&self, payload: &Payload, call: Call) -> [Option<LockEvent>; 2] {
        let Some((function, around)) = self.function(call.node) else { return [None; 2] };
        function.events(&self.call(payload, call, around)).unwrap_or_default()
    }

    /// Returns the events of the calls that are open at the end of a chunk, and were so at this time.
    pub(super) fn open(&self, lens: &Lens<'_>, entry: &ChunkEntry, time: u64) -> OpenCalls {
        let mut open = OpenCalls::default();
        let Ok(chunk) = lens.read(self.recording, entry) else { return open };
        let payloads = self.recording.payloads(entry).unwrap_or_default().each;
        let key = |payload: &Payload| (payload.thread, payload.time.0, payload.function);
        let payloads: BTreeMap<(ThreadId, u64, FuncId), &Payload> =
            payloads.iter().map(|payload| (key(payload), payload)).collect();
        let is_chosen = |thread| lens.selects_thread(self.recording.thread(thread));
        for thread in chunk.threads().iter().filter(|of| is_chosen(of.thread)) {
            for (start, node) in thread.open.iter().map(|open| (open.start.0, open.path)) {
                let Some((function, around)) = self.function(node).filter(|_| start < time) else {
                    continue;
                };
                let call = Call { start, duration: time - start, node, timed: false };
                let payload = payloads.get(&(thread.thread, start, self.nodes[node as usize].func));
                let event =
                    payload.and_then(|it| function.open_event(&self.call(it, call, around)));
                open.unknown_waits += u64::from(event.is_none() && function.waits());
                open.events.extend(event);
            }
        }
        open
    }
}
