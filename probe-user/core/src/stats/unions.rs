//! Lengths of unions of intervals over all threads: active, active-exclusive, tracked.
//!
//! One algorithm walks all threads backwards in time together. A thread's log, read backwards,
//! gives calls by descending end, parents before children. A small stack turns that into
//! *segments*, the stretches in which a call is the innermost one; the segment of a leaf is the
//! call itself. Both streams descend, so a union needs two words: the lower end of the covered
//! time, and its length. The same walk shows the calls to [`EventCovers`], if these are asked for.

use crate::calls::paths::{Node, ROOT};
use crate::calls::spool::{Backward, Call};
use crate::stats::events::{EventCovers, EventUnions};
use crate::stats::merge::Tournament;
use crate::stats::rank::Keep;

/// A union of intervals that arrive by descending end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cover {
    down_to: u64,
    pub(crate) length: u64,
}

impl Cover {
    pub(crate) const EMPTY: Self = Self { down_to: u64::MAX, length: 0 };

    #[inline]
    pub(crate) fn add(&mut self, start: u64, end: u64) {
        let end = end.min(self.down_to);
        if start < end {
            self.length += end - start;
            self.down_to = start;
        }
    }
}

/// The stretch of time to which unions are clipped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// One thread: its finished calls, and those still open, outermost first.
pub(crate) struct ThreadCalls<I> {
    /// The finished calls, latest first.
    pub(crate) finished: I,
    pub(crate) open: Vec<OpenCall>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenCall {
    pub(crate) start: u64,
    pub(crate) node: u32,
    /// True if its end will be seen.
    pub(crate) timed: bool,
    /// True if it will end and be in its function's center.
    pub(crate) kept: bool,
    /// Its end, if it turns out to have ended with the last event of its thread.
    pub(crate) end: u64,
}

/// Combines the calls of logs, by index, with open calls of the same and of other threads.
pub(crate) fn with_open<'a>(
    logs: impl Iterator<Item = Backward<'a>>,
    open: Vec<(Option<usize>, Vec<OpenCall>)>,
) -> Vec<ThreadCalls<Backward<'a>>> {
    let with_log = logs.map(|finished| ThreadCalls { finished, open: Vec::new() });
    let mut threads = with_log.collect::<Vec<_>>();
    for (log, open) in open {
        match log.and_then(|log| threads.get_mut(log)) {
            Some(thread) => thread.open = open,
            None => threads.push(ThreadCalls { finished: Backward::default(), open }),
        }
    }
    threads
}

/// The lengths of one function's unions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FunctionUnions {
    pub(crate) active: u64,
    pub(crate) exclusive: u64,
    pub(crate) center_active: u64,
    pub(crate) center_exclusive: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Unions {
    pub(crate) tracked: u64,
    pub(crate) functions: Vec<FunctionUnions>,
    /// Those by CTRACK's definitions, if they were asked for.
    pub(crate) events: Option<EventUnions>,
}

impl Unions {
    /// Adds the lengths of another, disjoint window.
    pub(crate) fn add(&mut self, other: &Self) {
        self.tracked = self.tracked.saturating_add(other.tracked);
        self.functions.resize(other.functions.len().max(self.functions.len()), Default::default());
        for (mine, other) in self.functions.iter_mut().zip(&other.functions) {
            mine.active = mine.active.saturating_add(other.active);
            mine.exclusive = mine.exclusive.saturating_add(other.exclusive);
            mine.center_active = mine.center_active.saturating_add(other.center_active);
            mine.center_exclusive = mine.center_exclusive.saturating_add(other.center_exclusive);
        }
        if let Some(events) = &other.events {
            self.events.get_or_insert_default().add(events);
        }
    }
}

#[derive(Clone, Copy)]
struct FunctionCovers {
    /// Decides which calls belong to the center.
    keep: Keep,
    active: Cover,
    exclusive: Cover,
    center_active: Cover,
    center_exclusive: Cover,
}

struct Covers<'a> {
    nodes: &'a [Node],
    window: Window,
    tracked: Cover,
    functions: Vec<FunctionCovers>,
    events: Option<EventCovers>,
}

/// A call on the backward stack.
#[derive(Clone, Copy)]
pub(crate) struct Inside {
    pub(crate) start: u64,
    pub(crate) node: u32,
    pub(crate) function: usize,
    pub(crate) timed: bool,
    pub(crate) kept: bool,
}

/// A thread during the walk backwards.
struct Walk<I> {
    /// The remaining open calls, which come before `finished`, outermost first.
    open: std::vec::IntoIter<OpenCall>,
    finished: I,
    /// The next call, if there is one, and its end (0 if there is none).
    next: Call,
    next_end: u64,
    /// True if the next call is in its function's center; `None` if not known yet.
    next_kept: Option<bool>,
    is_over: bool,
    inside: Vec<Inside>,
    /// Everything after this time is done.
    cursor: u64,
    /// The start of the earliest call so far: the thread was in some call from here on.
    tracked: u64,
}

impl<I: Iterator<Item = Call>> Walk<I> {
    #[inline]
    fn load(&mut self, window: Window) {
        let limit = window.end.min(self.cursor);
        self.next_kept = None;
        if let Some(OpenCall { start, node, timed, kept, end }) = self.open.next() {
            self.next_kept = Some(kept);
            let duration = window.end.saturating_sub(start);
            self.next = Call { start, duration, node, timed };
            self.next_end = limit.min(end);
        } else if let Some(call) = self.finished.next() {
            self.next_end = call.start.saturating_add(call.duration).min(limit);
            self.next = call;
        } else {
            self.next_end = 0;
            self.is_over = true;
        }
    }

    /// Returns the end of the next item, or `None` at the end.
    #[inline]
    fn key(&self) -> Option<u64> {
        match self.inside.is_empty() {
            true => (!self.is_over).then_some(self.next_end),
            false => Some(self.cursor),
        }
    }

    /// Takes one item: a segment of the innermost call, or the next call, with its segment if it is
    /// a leaf. `EVENTS`: CTRACK's unions are asked for. Others do not pay for the question.
    #[inline]
    fn step<const EVENTS: bool>(&mut self, covers: &mut Covers) {
        if let Some(&top) = self.inside.last() {
            let low = top.start.max(self.next_end);
            let ends = top.start >= self.next_end;
            if ends {
                self.inside.pop();
            }
            if low < self.cursor {
                covers.segment(top, low, self.cursor);
                self.cursor = low;
                return;
            }
            if ends {
                return;
            }
        }
        if self.is_over {
            return;
        }
        let (call, end, kept) = (self.next, self.next_end, self.next_kept);
        self.cursor = end;
        self.load(covers.window);
        let start = call.start.max(covers.window.start);
        let inside = covers.call(call, kept, start, end);
        if EVENTS && let Some(events) = &mut covers.events {
            events.add(inside, end, &self.inside, covers.nodes);
        }
        if start < self.tracked && start < end {
            covers.tracked.add(start, end);
            self.tracked = start;
        }
        if self.next_end > start {
            self.inside.push(inside);
        } else if start < end {
            // A leaf: its segment is the whole call.
            covers.segment(inside, start, end);
            self.cursor = start;
        }
    }
}

impl Covers<'_> {
    #[inline]
    fn call(&mut self, call: Call, kept: Option<bool>, start: u64, end: u64) -> Inside {
        let function = self.nodes[call.node as usize].func.index();
        let covers = &mut self.functions[function];
        let kept = kept.unwrap_or_else(|| call.timed && covers.keep.keeps(call.duration));
        covers.active.add(start, end);
        if kept {
            covers.center_active.add(start, end);
        }
        Inside { start, node: call.node, function, timed: call.timed, kept }
    }

    #[inline]
    fn segment(&mut self, of: Inside, start: u64, end: u64) {
        let covers = &mut self.functions[of.function];
        covers.exclusive.add(start, end);
        if of.kept {
            covers.center_exclusive.add(start, end);
        }
    }
}

/// Returns the unions within `window`; `keep` decides for each function which calls are in its
/// center. `events`: also by CTRACK's definitions.
pub(crate) fn unions(
    window: Window,
    threads: Vec<ThreadCalls<impl Iterator<Item = Call>>>,
    nodes: &[Node],
    keep: &[Keep],
    events: bool,
) -> Unions {
    let functions = keep.iter().map(|&keep| FunctionCovers {
        keep,
        active: Cover::EMPTY,
        exclusive: Cover::EMPTY,
        center_active: Cover::EMPTY,
        center_exclusive: Cover::EMPTY,
    });
    let functions = functions.collect();
    let event_covers = events.then(|| EventCovers::new(keep.len()));
    let mut covers =
        Covers { nodes, window, tracked: Cover::EMPTY, functions, events: event_covers };
    match events {
        true => walk_all::<true>(threads, &mut covers),
        false => walk_all::<false>(threads, &mut covers),
    }
    let functions = covers.functions.iter().map(|function| FunctionUnions {
        active: function.active.length,
        exclusive: function.exclusive.length,
        center_active: function.center_active.length,
        center_exclusive: function.center_exclusive.length,
    });
    Unions {
        tracked: covers.tracked.length,
        functions: functions.collect(),
        events: covers.events.as_ref().map(EventCovers::lengths),
    }
}

/// Walks all threads together, backwards in time.
fn walk_all<const EVENTS: bool>(
    threads: Vec<ThreadCalls<impl Iterator<Item = Call>>>,
    covers: &mut Covers,
) {
    let mut walks = threads
        .into_iter()
        .map(|thread| {
            let mut walk = Walk {
                open: thread.open.into_iter(),
                finished: thread.finished,
                next: Call { start: 0, duration: 0, node: ROOT, timed: false },
                next_end: 0,
                next_kept: None,
                is_over: false,
                inside: Vec::new(),
                cursor: u64::MAX,
                tracked: u64::MAX,
            };
            walk.load(covers.window);
            walk
        })
        .collect::<Vec<_>>();
    let mut tournament = Tournament::new(walks.iter().map(Walk::key));
    while let Some(source) = tournament.first() {
        let walk = &mut walks[source];
        walk.step::<EVENTS>(covers);
        tournament.advance(walk.key());
    }
}
