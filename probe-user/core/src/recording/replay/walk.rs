//! Reconstructs callers and own times from a thread's calls, latest first. A call precedes the
//! calls inside it. It stays on a stack until a call outside it shows that it is complete.
//!
//! Its own time is known then. Calls that cross the edge of a chunk are returned as [`Span`]s, to
//! be joined over chunks.

use super::lens::Lens;
use super::spans::CallKey;
use crate::calls::paths::Node;
use crate::calls::spool;
use crate::recording::{Call, OpenCall};
use crate::units::ThreadId;
use crate::waits::Waits;

/// A part of a call that began before its chunk, or is open at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: u64,
    /// The recorded node.
    pub(crate) recorded: u32,
    /// Duration, and whether it is known; `None` for an open call.
    pub(crate) ended: Option<(u64, bool)>,
    /// Time of counted calls inside it that are within the chunk.
    pub(crate) callees: u64,
    /// The waits inside it that are within the chunk.
    pub(crate) waits: Waits,
    /// True if a call that the query asks for is inside.
    pub(crate) has: bool,
    /// The index of the span around it, which precedes it in the same walk.
    pub(crate) parent: Option<usize>,
}

/// A call that lies within its chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WholeCall {
    /// Its place among the thread's calls.
    pub(crate) place: usize,
    pub(crate) call: spool::Call,
    /// The query's node if the call counts.
    pub(crate) counts_at: Option<u32>,
    pub(crate) own: u64,
    /// The waits inside it. A wait is inside itself.
    pub(crate) waits: Waits,
}

/// The extent of a call. The calls behind it are inside it up to the first that is not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    start: u64,
    end: u64,
    depth: u32,
    /// True if its true depth is unknown: it is beyond the bounds on paths.
    other: bool,
}

impl Frame {
    pub(crate) fn new(start: u64, end: u64, node: &Node) -> Self {
        Self { start, end, depth: node.depth, other: node.other }
    }

    #[inline]
    pub(crate) fn encloses(&self, call: &spool::Call, node: &Node) -> bool {
        self.start <= call.start
            && call.end() <= self.end
            && (self.depth < node.depth || self.other || node.other)
    }
}

/// Returns the index of each call's nearest caller among these calls of one thread, latest first.
pub(crate) fn callers<'a>(
    calls: impl Iterator<Item = &'a spool::Call>,
    nodes: &[Node],
) -> Vec<Option<usize>> {
    let mut stack: Vec<(Frame, usize)> = Vec::new();
    let callers = calls.enumerate().map(|(index, call)| {
        let node = &nodes[call.node as usize];
        while stack.last().is_some_and(|(frame, _)| !frame.encloses(call, node)) {
            stack.pop();
        }
        let caller = stack.last().map(|(_, caller)| *caller);
        stack.push((Frame::new(call.start, call.end(), node), index));
        caller
    });
    callers.collect()
}

struct Slot {
    place: usize,
    call: spool::Call,
    frame: Frame,
    callees: u64,
    waits: Waits,
    has: bool,
    span: Option<usize>,
}

/// Returns the node at which a call counts, if it does. `has` is true if a callee that the query
/// asks for is inside, and becomes true if this call is one.
#[inline(always)]
pub(crate) fn counts_at(
    lens: &Lens<'_>,
    (thread, start, recorded): CallKey,
    ended: Option<(u64, bool)>,
    has: &mut bool,
) -> Option<u32> {
    let node = lens.node(recorded).filter(|_| lens.is_within(thread, start));
    let long = ended.is_none_or(|(duration, timed)| lens.is_long_enough(recorded, duration, timed));
    let node = node.filter(|_| long);
    if lens.asks_for_callees() {
        *has |= lens.is_callee(node);
        return node.filter(|_| *has);
    }
    node
}

/// The walk of one thread through one chunk.
pub(crate) struct Walk<'a> {
    lens: &'a Lens<'a>,
    nodes: &'a [Node],
    thread: ThreadId,
    from: u64,
    stack: Vec<Slot>,
    spans: Vec<Span>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(lens: &'a Lens<'a>, nodes: &'a [Node]) -> Self {
        let thread = ThreadId::default();
        Self { lens, nodes, thread, from: 0, stack: Vec::new(), spans: Vec::new() }
    }

    /// Shows every call that is entirely within the chunk, which begins at `from`, in no particular
    /// order. Returns the others.
    #[inline]
    pub(crate) fn thread(
        &mut self,
        thread: ThreadId,
        from: u64,
        calls: &[Call],
        open: &[OpenCall],
        mut see: impl FnMut(WholeCall),
    ) -> Vec<Span> {
        (self.thread, self.from) = (thread, from);
        for open in open {
            let call =
                spool::Call { start: open.start.0, duration: 0, node: open.path, timed: false };
            self.push(call, usize::MAX, true);
        }
        for (place, Call(call)) in calls.iter().enumerate() {
            let node = &self.nodes[call.node as usize];
            while self.stack.last().is_some_and(|top| !top.frame.encloses(call, node)) {
                self.pop(&mut see);
            }
            let frame = Frame::new(call.start, call.end(), node);
            let calls_the_next = calls
                .get(place + 1)
                .is_some_and(|Call(next)| frame.encloses(next, &self.nodes[next.node as usize]));
            if calls_the_next || call.start < from {
                self.push(*call, place, false);
            } else {
                self.see(*call, place, 0, Waits::default(), false, &mut see);
            }
        }
        while !self.stack.is_empty() {
            self.pop(&mut see);
        }
        std::mem::take(&mut self.spans)
    }

    #[inline]
    fn push(&mut self, call: spool::Call, place: usize, is_open: bool) {
        let node = &self.nodes[call.node as usize];
        let span = (is_open || call.start < self.from).then(|| {
            self.spans.push(Span {
                start: call.start,
                recorded: call.node,
                ended: (!is_open).then_some((call.duration, call.timed)),
                callees: 0,
                waits: Waits::default(),
                has: false,
                parent: self.stack.last().and_then(|above| above.span),
            });
            self.spans.len() - 1
        });
        let end = if is_open { u64::MAX } else { call.end() };
        let frame = Frame::new(call.start, end, node);
        let waits = Waits::default();
        self.stack.push(Slot { place, call, frame, callees: 0, waits, has: false, span });
    }

    /// Completes the call on top of the stack: all calls inside it have been seen.
    #[inline]
    fn pop(&mut self, see: &mut impl FnMut(WholeCall)) {
        let Some(slot) = self.stack.pop() else { return };
        if let Some(span) = slot.span {
            let span = &mut self.spans[span];
            (span.callees, span.waits, span.has) = (slot.callees, slot.waits, slot.has);
            return;
        }
        self.see(slot.call, slot.place, slot.callees, slot.waits, slot.has, see);
    }

    /// Shows a call that is directly inside the top of the stack.
    #[inline]
    fn see(
        &mut self,
        call: spool::Call,
        place: usize,
        callees: u64,
        mut waits: Waits,
        mut has: bool,
        see: &mut impl FnMut(WholeCall),
    ) {
        let ended = Some((call.duration, call.timed));
        let counts_at = counts_at(self.lens, (self.thread, call.start, call.node), ended, &mut has);
        let spent = if counts_at.is_some() { call.duration } else { callees };
        if let Some(class) = self.lens.wait(call.node) {
            waits.add(Waits::one(class, call.duration));
        }
        if let Some(caller) = self.stack.last_mut() {
            caller.waits.add(waits);
            caller.callees = caller.callees.saturating_add(spent);
            caller.has |= has;
        }
        let own = call.duration.saturating_sub(callees);
        see(WholeCall { place, call, counts_at, own, waits });
    }
}
