//! Finds the slowest calls. [`super::inside`] finds the calls inside them.

use super::count::FirstPass;
use super::lens::Lens;
use super::select::{CallReader, each_part};
use crate::calls::spool::Call;
use crate::recording::{ChunkEntry, Recording};
use crate::units::ThreadId;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A call and its place in the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlowCall {
    pub(crate) call: Call,
    /// The query's node.
    pub(crate) node: u32,
    pub(crate) thread: ThreadId,
    /// The number of the chunk in which it ended, and its place among its thread's calls there.
    pub(crate) chunk: usize,
    pub(crate) place: usize,
}

impl SlowCall {
    /// Returns a key that orders calls from fastest to slowest. Among equal durations, the first
    /// call ranks as the slowest.
    fn order(&self) -> impl Ord + use<> {
        let Call { start, duration, .. } = self.call;
        (duration, Reverse(start), Reverse(self.thread), self.chunk, Reverse(self.place))
    }
}

impl Ord for SlowCall {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for SlowCall {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The slowest calls so far.
pub(super) struct Slowest {
    top: usize,
    heap: BinaryHeap<Reverse<SlowCall>>,
    /// Faster calls are not added.
    least: u64,
}

impl Slowest {
    pub(super) fn new(top: usize) -> Self {
        Self { top, heap: BinaryHeap::new(), least: if top == 0 { u64::MAX } else { 0 } }
    }

    #[inline]
    pub(super) fn offer(&mut self, found: SlowCall) {
        if found.call.duration < self.least || self.top == 0 {
            return;
        }
        self.heap.push(Reverse(found));
        if self.heap.len() > self.top {
            self.heap.pop();
        }
        if self.heap.len() == self.top {
            self.least = self.heap.peek().map_or(0, |Reverse(found)| found.call.duration);
        }
    }

    /// Returns them, slowest first.
    pub(super) fn into_sorted(self) -> Vec<SlowCall> {
        let mut found: Vec<_> = self.heap.into_iter().map(|Reverse(found)| found).collect();
        found.sort_unstable_by(|a, b| b.cmp(a));
        found
    }
}

/// Shows the timed calls in the window of these chunks, which have their numbers.
pub(super) fn each_timed(
    selected: &mut CallReader<'_>,
    chunks: &[(usize, &ChunkEntry)],
    mut show: impl FnMut(SlowCall),
) {
    let lens = selected.lens;
    for &(number, entry) in chunks {
        let Some(chunk) = selected.read(entry) else { continue };
        for of_thread in chunk.threads() {
            let thread = of_thread.thread;
            selected.all_calls(&chunk, of_thread, |place, call, node| {
                let node = node.filter(|_| call.timed && lens.is_in_window(call.end()));
                if let Some(node) = node {
                    show(SlowCall { call, node, thread, chunk: number, place });
                }
            });
        }
    }
}

/// Returns the `top` slowest timed calls, slowest first.
pub(crate) fn slowest(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    top: usize,
) -> Vec<SlowCall> {
    let numbered: Vec<_> = chunks.iter().enumerate().collect();
    let parts = each_part(&numbered, |entries| {
        let mut slowest = Slowest::new(top);
        let mut selected = CallReader::new(recording, lens, counted);
        each_timed(&mut selected, entries, |call| slowest.offer(call));
        slowest
    });
    let mut all = Slowest::new(top);
    parts.into_iter().flat_map(|part| part.heap).for_each(|Reverse(found)| all.offer(found));
    all.into_sorted()
}
