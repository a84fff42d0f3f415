//! Tests that the edges of random and difficult traces are balanced and never go back in time.

use super::edges::{Edge, Edges, What};
use super::excerpt::Ended;
use crate::calls::paths::{Node, ROOT};
use crate::recording::{Chunk, OpenCall};
use crate::units::{FuncId, Nanos, ThreadId};
use proptest::prelude::*;

const THREAD: ThreadId = ThreadId(1);

/// Makes a chain of nodes: node n is n deep.
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
                What::Begin { path, .. } => self.stack.push((edge.at, path)),
                What::End(ended) => {
                    let (start, path) = self.stack.pop().expect("an end of nothing");
                    self.calls.push((start, edge.at, path, ended));
                }
            }
        }
    }
}

/// Makes the calls of one thread from steps (a wait, then a call or return), in chunks of `size`
/// calls each.
fn trace(steps: &[(u64, bool)], size: usize) -> (Vec<Chunk>, Vec<(u64, u64, u32)>) {
    let (mut now, mut from) = (1, 0);
    let (mut stack, mut done, mut all, mut chunks) = (vec![], vec![], vec![], vec![]);
    let mut cut = |done: &mut Vec<crate::calls::spool::Call>, stack: &[u64], now: u64| {
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
                    done.push(crate::calls::spool::Call {
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
            // Events of the same time belong to the same chunk.
            now += 1;
        }
    }
    cut(&mut done, &stack, now);
    let open = stack.iter().zip(1..).map(|(start, depth)| (*start, now, depth));
    all.extend(open.collect::<Vec<_>>().into_iter().rev());
    (chunks, all)
}

fn replay(nodes: &[Node], chunks: &[Chunk]) -> Replay {
    let (mut edges, mut replay) = (Edges::new(nodes, false), Replay::default());
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
                crate::calls::spool::Call { start, duration, node, timed: true }
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
    let call = crate::calls::spool::Call { start: 1, duration: 19, node: 1, timed: true };
    second.push(THREAD, [call].into_iter(), Vec::new());
    let calls = replay(&nodes(2), &[first, second]).calls;
    assert_eq!(calls, [(2, 10, 2, Ended::Untimed), (1, 20, 1, Ended::Timed)]);
}

#[test]
fn calls_that_began_before_the_first_chunk_of_a_flight_recorder_are_whole() {
    let mut chunk = Chunk::new(100..130);
    let call = crate::calls::spool::Call { start: 50, duration: 70, node: 1, timed: true };
    chunk.push(THREAD, [call].into_iter(), Vec::new());
    assert_eq!(replay(&nodes(1), &[chunk]).calls, [(50, 120, 1, Ended::Timed)]);
}

#[test]
fn of_calls_on_two_stacks_the_earlier_is_cut() {
    let mut chunk = Chunk::new(0..30);
    let calls = [(10, 10, 1), (5, 10, 1)].map(|(start, duration, node)| {
        crate::calls::spool::Call { start, duration, node, timed: true }
    });
    chunk.push(THREAD, calls.into_iter(), Vec::new());
    let calls = replay(&nodes(1), &[chunk]).calls;
    assert_eq!(calls, [(5, 10, 1, Ended::Untimed), (10, 20, 1, Ended::Timed)]);
}

#[test]
fn a_beginning_has_the_calls_own_start_if_it_is_shown_later() {
    let mut first = Chunk::new(0..30);
    let open = [(10, 1), (20, 2)].map(|(start, path)| OpenCall { start: Nanos(start), path });
    first.push(THREAD, std::iter::empty(), open.into());
    // They are on two stacks: the first to begin is the first to end.
    let mut second = Chunk::new(30..60);
    let calls = [(20, 30, 2), (10, 30, 1)].map(|(start, duration, node)| {
        crate::calls::spool::Call { start, duration, node, timed: true }
    });
    second.push(THREAD, calls.into_iter(), Vec::new());
    let (nodes, mut begins) = (nodes(2), Vec::new());
    let mut edges = Edges::new(&nodes, false);
    for chunk in [first, second] {
        let each = |_: ThreadId, edges: &[Edge]| -> Result<(), ()> {
            begins.extend(edges.iter().filter_map(|edge| match edge.what {
                What::Begin { start, .. } => Some((edge.at, start)),
                What::End(_) => None,
            }));
            Ok(())
        };
        edges.chunk(&chunk, each).expect("nothing fails");
    }
    assert_eq!(begins, [(10, 10), (20, 20), (20, 10)]);
}
