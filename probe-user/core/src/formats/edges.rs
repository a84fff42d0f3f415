//! Calls as beginnings and ends in order of time, for formats that have no whole calls.
//!
//! A chunk has the calls of a thread latest first, callers before callees. Walked that way, a call
//! ends when it comes up and begins when one comes up that is not inside it: the beginnings and
//! ends backwards. Calls that are open at a chunk's end begin in it and end in a later one.
//!
//! What comes out is always balanced and never goes back in time, as its readers need it. Where
//! calls of a thread overlap without one being inside the other (it switches stacks, or the file is
//! damaged), the one that began first is cut where the other begins, and is untimed.

use super::pass::Ended;
use crate::paths::Node;
use crate::record::{Call, Chunk, OpenCall, ThreadCalls};
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
    Begin { path: u32 },
    End(Ended),
}

/// A thread between two chunks.
#[derive(Debug, Default)]
struct Thread {
    /// Calls that have begun, outermost first.
    begun: Vec<OpenCall>,
    /// Time of the last edge.
    last: u64,
    /// Number of the last chunk with something of it.
    seen: u64,
}

/// Of all threads.
pub(super) struct Edges<'a> {
    nodes: &'a [Node],
    threads: BTreeMap<ThreadId, Thread>,
    chunks: u64,
    to: u64,
    edges: Vec<Edge>,
}

impl<'a> Edges<'a> {
    pub(super) fn new(nodes: &'a [Node]) -> Self {
        Self { nodes, threads: BTreeMap::new(), chunks: 0, to: 0, edges: Vec::new() }
    }

    /// Gives the edges of each thread in the chunk.
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
            thread.walk(self.nodes, from, chunk, of, &mut self.edges);
            each(of.thread, &self.edges)?;
        }
        // What had begun of other threads is over, unseen.
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

    /// Gives the ends of what is still open. `end`: of the recording, if its last chunk was seen.
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

/// A call on the way back.
struct Inside {
    start: u64,
    path: u32,
    /// It began in an earlier chunk.
    begun: bool,
}

/// The way back through a thread's part of a chunk.
struct Walk<'a> {
    nodes: &'a [Node],
    /// How far the chunks before go.
    from: u64,
    begun: &'a [OpenCall],
    /// How many of these are met.
    met: usize,
    /// Calls that go on in the next chunk, outermost first.
    stays: Vec<OpenCall>,
    inside: Vec<Inside>,
    cursor: u64,
    /// Latest first.
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
        nodes: &[Node],
        from: u64,
        chunk: &Chunk,
        of: &ThreadCalls,
        edges: &mut Vec<Edge>,
    ) {
        let begun = std::mem::take(&mut self.begun);
        let mut walk = Walk {
            nodes,
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

    /// Leaves the calls that one that began at `start` is not inside of.
    #[inline]
    fn leave(&mut self, start: u64, path: u32) {
        while let Some(top) = self.inside.pop() {
            let is_inside = match top.start == start {
                false => top.start < start,
                true => self.is_deeper(path, top.path),
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
            self.push(call.start, What::Begin { path: call.path });
        }
    }

    fn is_deeper(&self, path: u32, than: u32) -> bool {
        let (node, than) = (&self.nodes[path as usize], &self.nodes[than as usize]);
        node.other || than.other || node.depth > than.depth
    }

    /// The place of the call among those begun. It can only be directly inside another of them.
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
            // Calls around it that did not come up ended unseen, no earlier than it.
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
        // Left out of the recording by its filter, or damaged.
        (self.met..self.begun.len()).for_each(|_| self.push(self.from, What::End(Ended::Untimed)));
        self.stays
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::ROOT;
    use crate::units::FuncId;
    use proptest::prelude::*;

    const THREAD: ThreadId = ThreadId(1);

    /// Nodes of a chain: node n is n deep.
    fn nodes(depth: u32) -> Vec<Node> {
        let mut nodes = vec![Node::root()];
        for n in 1..=depth {
            nodes.push(Node::new(FuncId(0), n - 1, &nodes[n as usize - 1].clone(), false));
        }
        assert_eq!(nodes[1].parent, ROOT);
        nodes
    }

    /// Replays edges: start, end, depth of each call, in order of their ends.
    #[derive(Default)]
    struct Replay {
        stack: Vec<(u64, u32)>,
        last: u64,
        calls: Vec<(u64, u64, u32, Ended)>,
    }

    impl Replay {
        fn take(&mut self, edges: &[Edge]) {
            for edge in edges {
                assert!(edge.at >= self.last, "back in time");
                self.last = edge.at;
                match edge.what {
                    What::Begin { path } => self.stack.push((edge.at, path)),
                    What::End(ended) => {
                        let (start, path) = self.stack.pop().expect("an end of nothing");
                        self.calls.push((start, edge.at, path, ended));
                    }
                }
            }
        }
    }

    /// The calls of one thread from steps: how long to wait, and whether to call or to return. In
    /// chunks of `size` calls each.
    fn trace(steps: &[(u64, bool)], size: usize) -> (Vec<Chunk>, Vec<(u64, u64, u32)>) {
        let (mut now, mut from) = (1, 0);
        let (mut stack, mut done, mut all, mut chunks) = (vec![], vec![], vec![], vec![]);
        let mut cut = |done: &mut Vec<crate::spool::Call>, stack: &[u64], now: u64| {
            let mut chunk = Chunk::new(from..now);
            let open =
                stack.iter().zip(1..).map(|(start, path)| OpenCall { start: Nanos(*start), path });
            chunk.push(THREAD, done.drain(..).rev(), open.collect());
            chunks.push(chunk);
            from = now;
        };
        for &(wait, enter) in steps {
            now += wait;
            match enter {
                true if stack.len() < 20 => stack.push(now),
                _ => {
                    let node = stack.len() as u32;
                    if let Some(start) = stack.pop() {
                        done.push(crate::spool::Call {
                            start,
                            duration: now - start,
                            node,
                            timed: true,
                        });
                        all.push((start, now, node));
                    }
                }
            }
            if done.len() >= size {
                cut(&mut done, &stack, now);
                // What happens at one time is in one chunk.
                now += 1;
            }
        }
        cut(&mut done, &stack, now);
        let open = stack.iter().zip(1..).map(|(start, depth)| (*start, now, depth));
        all.extend(open.collect::<Vec<_>>().into_iter().rev());
        (chunks, all)
    }

    fn replay(nodes: &[Node], chunks: &[Chunk]) -> Replay {
        let (mut edges, mut replay) = (Edges::new(nodes), Replay::default());
        let mut take = |_: ThreadId, edges: &[Edge]| -> Result<(), ()> {
            replay.take(edges);
            Ok(())
        };
        for chunk in chunks {
            edges.chunk(chunk, &mut take).expect("nothing fails");
        }
        edges.finish(chunks.last().map(|chunk| chunk.to.0), &mut take).expect("nothing fails");
        assert_eq!(replay.stack, [], "never ended");
        replay
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn calls_come_out_as_they_were(
            steps in prop::collection::vec((1u64..4, any::<bool>()), 0..120),
            size in 1usize..9,
        ) {
            let (chunks, all) = trace(&steps, size);
            let replay = replay(&nodes(20), &chunks);
            let calls: Vec<_> = replay.calls.iter().map(|&(s, e, p, _)| (s, e, p)).collect();
            prop_assert_eq!(calls, all);
            let open = replay.calls.iter().filter(|call| call.3 == Ended::Open).count();
            let timed = replay.calls.iter().filter(|call| call.3 == Ended::Timed).count();
            prop_assert_eq!(open + timed, replay.calls.len());
        }

        #[test]
        fn simultaneous_events_stay_balanced_and_complete(
            steps in prop::collection::vec((0u64..2, any::<bool>()), 0..120),
            size in 1usize..9,
        ) {
            let (chunks, mut all) = trace(&steps, size);
            let mut calls: Vec<_> =
                replay(&nodes(20), &chunks).calls.iter().map(|&(s, e, p, _)| (s, e, p)).collect();
            calls.sort_unstable();
            all.sort_unstable();
            prop_assert_eq!(calls, all);
        }

        #[test]
        fn nonsense_stays_balanced(
            parts in prop::collection::vec((
                0u64..50,
                prop::collection::vec((0u64..60, 0u64..60, 1u32..5), 0..8),
                prop::collection::vec((0u64..60, 1u32..5), 0..4),
            ), 1..5),
        ) {
            let mut to = 0;
            let chunks: Vec<_> = parts.into_iter().map(|(length, calls, open)| {
                let mut chunk = Chunk::new(to..to + length);
                to += length;
                let calls = calls.into_iter().map(|(start, duration, node)| {
                    crate::spool::Call { start, duration, node, timed: true }
                });
                let open = open.into_iter().map(|(start, path)| OpenCall { start: Nanos(start), path });
                chunk.push(THREAD, calls, open.collect());
                chunk
            }).collect();
            replay(&nodes(5), &chunks);
        }
    }

    #[test]
    fn a_call_that_was_filtered_after_it_began_ends_with_its_chunk_and_is_untimed() {
        let mut first = Chunk::new(0..10);
        let open = [(1, 1), (2, 2)].map(|(start, path)| OpenCall { start: Nanos(start), path });
        first.push(THREAD, std::iter::empty(), open.into());
        let mut second = Chunk::new(10..30);
        let call = crate::spool::Call { start: 1, duration: 19, node: 1, timed: true };
        second.push(THREAD, [call].into_iter(), Vec::new());
        let calls = replay(&nodes(2), &[first, second]).calls;
        assert_eq!(calls, [(2, 10, 2, Ended::Untimed), (1, 20, 1, Ended::Timed)]);
    }

    #[test]
    fn calls_that_began_before_the_first_chunk_of_a_flight_recorder_are_whole() {
        let mut chunk = Chunk::new(100..130);
        let call = crate::spool::Call { start: 50, duration: 70, node: 1, timed: true };
        chunk.push(THREAD, [call].into_iter(), Vec::new());
        assert_eq!(replay(&nodes(1), &[chunk]).calls, [(50, 120, 1, Ended::Timed)]);
    }

    #[test]
    fn of_calls_on_two_stacks_the_earlier_is_cut() {
        let mut chunk = Chunk::new(0..30);
        let calls = [(10, 10, 1), (5, 10, 1)].map(|(start, duration, node)| crate::spool::Call {
            start,
            duration,
            node,
            timed: true,
        });
        chunk.push(THREAD, calls.into_iter(), Vec::new());
        let calls = replay(&nodes(1), &[chunk]).calls;
        assert_eq!(calls, [(5, 10, 1, Ended::Untimed), (10, 20, 1, Ended::Timed)]);
    }
}
