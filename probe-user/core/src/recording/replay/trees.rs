//! Finds slow calls and the longest calls inside each, for spans of other tools.
//!
//! One pass reads the newest chunks, from the latest call to the earliest. The number of inner
//! calls is bounded for any recording; those left out are counted.

use super::walk::{Frame, callers};
use crate::recording::{Call, RecordError, Recording};
use crate::units::{Nanos, ThreadId};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Criteria for slow calls, and bounds on the result.
#[derive(Clone, Debug)]
pub struct SlowCallCriteria {
    /// Calls are slow if they took at least this long.
    pub threshold: Nanos,
    /// True for functions whose calls can be slow, by id.
    pub functions: Vec<bool>,
    /// Slow calls are sought in chunks that begin at this time or later. Calls inside them may be
    /// in earlier chunks.
    pub since: Nanos,
    /// Slow calls of all threads, at most.
    pub most: usize,
    /// Inner calls of each slow call, at most.
    pub inside: usize,
}

/// A slow call and the longest calls inside it. Slow calls among these have no tree of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    /// The thread that made the calls.
    pub thread: ThreadId,
    /// The slow call, then the others, latest first: callers precede their callees.
    pub branches: Vec<Branch>,
    /// The number of calls inside it that are not listed, including all without known duration.
    pub left_out: u64,
    /// True if it began before the first chunk, so that its earlier calls are unknown.
    pub is_cut: bool,
}

/// A call in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The call itself.
    pub call: Call,
    /// The index of the nearest call in the tree that it was made in.
    pub caller: Option<usize>,
    /// True if it is slow itself.
    pub is_slow: bool,
}

/// A tree to which earlier calls may still be added.
struct Growing {
    thread: ThreadId,
    root: Call,
    frame: Frame,
    inside: u64,
    longest: BinaryHeap<Reverse<InnerCall>>,
}

/// An inner call, ordered by duration. Among equals, the one seen first ranks as the longest,
/// because callers are seen first.
#[derive(Clone, Copy)]
struct InnerCall {
    call: Call,
    seen: u64,
}

impl InnerCall {
    fn order(&self) -> (Nanos, Reverse<u64>) {
        (self.call.duration(), Reverse(self.seen))
    }
}

impl PartialEq for InnerCall {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for InnerCall {}

impl PartialOrd for InnerCall {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for InnerCall {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

impl Growing {
    fn add(&mut self, call: Call, most: usize) {
        self.inside += 1;
        if call.is_timed() {
            self.longest.push(Reverse(InnerCall { call, seen: self.inside }));
            if self.longest.len() > most {
                self.longest.pop();
            }
        }
    }
}

/// Returns the slow calls, latest first within a thread.
///
/// # Errors
/// Fails if a chunk cannot be read.
pub fn trees(recording: &Recording, wanted: &SlowCallCriteria) -> Result<Vec<Tree>, RecordError> {
    let nodes = recording.nodes();
    let is_slow = |call: &Call| {
        let function = nodes[call.path() as usize].func;
        let is_wanted = wanted.functions.get(function.index()) == Some(&true);
        is_wanted && call.is_timed() && call.duration() >= wanted.threshold
    };
    let mut trees: Vec<Growing> = Vec::new();
    // By thread, the tree that earlier calls may be inside of.
    let mut current: HashMap<ThreadId, usize> = HashMap::new();
    for entry in recording.chunks().iter().rev() {
        let is_new = entry.from >= wanted.since;
        if !is_new && trees.iter().all(|tree| tree.root.start() >= entry.to) {
            break;
        }
        let chunk = recording.chunk(entry)?;
        for of_thread in chunk.threads() {
            let thread = of_thread.thread;
            for &call in chunk.calls(of_thread) {
                let node = &nodes[call.path() as usize];
                let tree = current.get(&thread).map(|&at| &mut trees[at]);
                if let Some(tree) = tree.filter(|tree| tree.frame.encloses(&call.0, node)) {
                    tree.add(call, wanted.inside);
                } else if is_new && trees.len() < wanted.most && is_slow(&call) {
                    let frame = Frame::new(call.0.start, call.0.end(), node);
                    let longest = BinaryHeap::new();
                    current.insert(thread, trees.len());
                    trees.push(Growing { thread, root: call, frame, inside: 0, longest });
                }
            }
        }
    }
    let first = recording.chunks().first().map_or(Nanos::ZERO, |entry| entry.from);
    let trees = trees.into_iter().map(|tree| {
        let mut longest: Vec<InnerCall> =
            tree.longest.into_iter().map(|Reverse(kept)| kept).collect();
        longest.sort_unstable_by_key(|kept| kept.seen);
        let calls = || [tree.root].into_iter().chain(longest.iter().map(|kept| kept.call));
        let packed: Vec<_> = calls().map(|call| call.0).collect();
        let callers = callers(packed.iter(), nodes);
        let branches = calls().zip(callers);
        Tree {
            thread: tree.thread,
            left_out: tree.inside - longest.len() as u64,
            is_cut: tree.root.start() < first,
            branches: branches
                .map(|(call, caller)| Branch { call, caller, is_slow: is_slow(&call) })
                .collect(),
        }
    });
    Ok(trees.collect())
}
