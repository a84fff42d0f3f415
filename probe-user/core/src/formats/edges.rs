//! Converts calls to beginnings and ends in order of time, for formats without whole calls.
//!
//! A chunk has the calls of a thread latest first, callers before callees. Going through them in
//! this order gives the edges backwards: a call ends when it is reached, and begins when a call
//! outside of it is reached. Calls that are open at a chunk's end begin in it and end in a later
//! one.
//!
//! The output is always balanced and never goes back in time, as readers require. Calls of a thread
//! may overlap without nesting if the thread switches stacks or the file is damaged. Then the call
//! that began first is cut where the other begins, and counts as untimed.

use super::excerpt::Ended;
use crate::calls::paths::Node;
use crate::recording::{Call, Chunk, OpenCall, ThreadCalls};
use crate::units::{Nanos, ThreadId};
use std::collections::BTreeMap;

/// A beginning or an end on one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) at: u64,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// `start` is the call's own, even if a reader must see it begin later.
    Begin {
        path: u32,
        start: u64,
    },
    End(Ended),
}

/// The state of a thread between two chunks.
#[derive(Debug, Default)]
struct Thread {
    /// Calls that have begun, outermost first.
    begun: Vec<OpenCall>,
    /// Time of the last edge.
    last: u64,
    /// Number of the last chunk that contains it.
    seen: u64,
}

/// The tree of call paths, which decides whether a call may be inside another.
#[derive(Clone, Copy)]
struct Tree<'a> {
    nodes: &'a [Node],
    /// True if a call may be at the same node as a call around it.
    folded: bool,
}

impl Tree<'_> {
    fn is_deeper(&self, path: u32, than: u32) -> bool {
        let (node, than) = (&self.nodes[path as usize], &self.nodes[than as usize]);
        self.folded || node.other || than.other || node.depth > than.depth
    }
}

/// The edges of all threads.
pub(super) struct Edges<'a> {
    tree: Tree<'a>,
    threads: BTreeMap<ThreadId, Thread>,
    chunks: u64,
    to: u64,
    edges: Vec<Edge>,
}

impl<'a> Edges<'a> {
    /// `folded`: a call may be at the same node as a call around it.
    pub(super) fn new(nodes: &'a [Node], folded: bool) -> Self {
        let tree = Tree { nodes, folded };
        Self { tree, threads: BTreeMap::new(), chunks: 0, to: 0, edges: Vec::new() }
    }

    /// Emits the edges of each thread in the chunk.
    pub(super) fn chunk<E>(
        &mut self,
        chunk: &Chunk,
        mut each: impl FnMut(ThreadId, &[Edge]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.chunks += 1;
        let from = self.to;
        for of in chunk.threads() {
            let thread = self.threads.entry(of.thread).or_default();
            thread.seen = self.chunks;
            self.edges.clear();
            thread.walk(self.tree, from, chunk, of, &mut self.edges);
            each(of.thread, &self.edges)?;
        }
        // Open calls of threads that are not in the chunk ended unseen.
        let chunks = self.chunks;
        for (id, thread) in &mut self.threads {
            if thread.seen < chunks && !thread.begun.is_empty() {
                self.edges.clear();
                thread.end_all(from, Ended::Untimed, &mut self.edges);
                each(*id, &self.edges)?;
            }
        }
        self.to = chunk.to.0;
        Ok(())
    }

    /// Emits the ends of open calls. `end` is the recording's, if its last chunk was seen.
    pub(super) fn finish<E>(
        mut self,
        end: Option<u64>,
        mut each: impl FnMut(ThreadId, &[Edge]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (at, ended) = end.map_or((self.to, Ended::Untimed), |end| (end, Ended::Open));
        for (id, thread) in &mut self.threads {
            self.edges.clear();
            thread.end_all(at, ended, &mut self.edges);
            each(*id, &self.edges)?;
        }
        Ok(())
    }
}

/// A call that contains the current position on the way back.
struct Inside {
    start: u64,
    path: u32,
    /// True if it began in an earlier chunk.
    begun: bool,
}

/// The state of going back through a thread's part of a chunk.
struct Walk<'a> {
    tree: Tree<'a>,
    /// The end of the preceding chunk.
    from: u64,
    begun: &'a [OpenCall],
    /// The number of these that were reached.
    met: usize,
    /// Calls that continue in the next chunk, outermost first.
    stays: Vec<OpenCall>,
    inside: Vec<Inside>,
    cursor: u64,
    /// The edges, latest first.
    edges: &'a mut Vec<Edge>,
}

impl Thread {
    fn end_all(&mut self, at: u64, ended: Ended, edges: &mut Vec<Edge>) {
        self.last = self.last.max(at);
        let end = Edge { at: self.last, what: What::End(ended) };
        edges.extend(self.begun.drain(..).map(|_| end));
    }

    fn walk(
        &mut self,
        tree: Tree<'_>,
        from: u64,
        chunk: &Chunk,
        of: &ThreadCalls,
        edges: &mut Vec<Edge>,
    ) {
        let begun = std::mem::take(&mut self.begun);
        let mut walk = Walk {
            tree,
            from,
            begun: &begun,
            met: 0,
            stays: Vec::new(),
            inside: Vec::new(),
            cursor: chunk.to.0,
            edges,
        };
        of.open.iter().for_each(|open| walk.open(open));
        chunk.calls(of).iter().for_each(|call| walk.call(call));
        self.begun = walk.finish();
        edges.reverse();
        for edge in edges {
            self.last = self.last.max(edge.at);
            edge.at = self.last;
        }
    }
}

impl Walk<'_> {
    #[inline]
    fn push(&mut self, at: u64, what: What) {
        self.cursor = self.cursor.min(at);
        self.edges.push(Edge { at: self.cursor, what });
    }

    /// Leaves the calls that do not contain a call of `path` that began at `start`.
    #[inline]
    fn leave(&mut self, start: u64, path: u32) {
        while let Some(top) = self.inside.pop() {
            let is_inside = match top.start == start {
                false => top.start < start,
                true => self.tree.is_deeper(path, top.path),
            };
            if is_inside {
                self.inside.push(top);
                return;
            }
            self.begin(&top);
        }
    }

    #[inline]
    fn begin(&mut self, call: &Inside) {
        if !call.begun {
            let Inside { start, path, .. } = *call;
            self.push(start, What::Begin { path, start });
        }
    }

    /// Returns the call's index among the begun ones. It is one only if the call directly around it
    /// is one, too.
    #[inline]
    fn meet(&self, start: Nanos, path: u32) -> Option<usize> {
        if start.0 > self.from || self.inside.last().is_some_and(|top| !top.begun) {
            return None;
        }
        let unmet = &self.begun[self.met..];
        let place = unmet.iter().position(|call| *call == OpenCall { start, path })?;
        Some(self.met + place)
    }

    fn open(&mut self, call: &OpenCall) {
        self.leave(call.start.0, call.path);
        let met = self.meet(call.start, call.path);
        match met {
            Some(place) => {
                self.stays.extend_from_slice(&self.begun[self.met..=place]);
                self.met = place + 1;
            }
            None => self.stays.push(*call),
        }
        let (start, path) = (call.start.0, call.path);
        self.inside.push(Inside { start, path, begun: met.is_some() });
    }

    #[inline]
    fn call(&mut self, call: &Call) {
        let (start, path, end) = (call.start(), call.path(), call.end().0);
        self.leave(start.0, path);
        let met = self.meet(start, path);
        if let Some(place) = met {
            // Calls around it that were not reached ended unseen, no earlier than it.
            (self.met..place).for_each(|_| self.push(end, What::End(Ended::Untimed)));
            self.met = place + 1;
        }
        let is_whole = end <= self.cursor && (start.0 >= self.from || met.is_some());
        let is_timed = call.is_timed() && is_whole;
        self.push(end, What::End(if is_timed { Ended::Timed } else { Ended::Untimed }));
        self.inside.push(Inside { start: start.0, path, begun: met.is_some() });
    }

    fn finish(mut self) -> Vec<OpenCall> {
        while let Some(top) = self.inside.pop() {
            self.begin(&top);
        }
        // The rest is missing: the recording's filter left these calls out, or the file is damaged.
        (self.met..self.begun.len()).for_each(|_| self.push(self.from, What::End(Ended::Untimed)));
        self.stays
    }
}
