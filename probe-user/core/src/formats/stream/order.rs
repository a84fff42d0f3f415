//! Puts the calls of chunks that come one by one into the order in which they began.
//!
//! A chunk has the calls that ended in it, and those open at its end. A line may go when all calls
//! that began before it have ended or are announced. A call is announced when it has been open for
//! long, or when so many lines wait for it that there is no more room.

use super::{CallLine, CallPart, Lost, Waiting};
use crate::calls::paths::Node;
use crate::formats::excerpt::{CallRow, Ended};
use crate::recording::{Chunk, ValuesByCall};
use crate::report::CallValues;
use crate::units::{FuncId, Nanos, ThreadId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Lines that wait, at most, before the oldest open call is announced.
pub(super) const MOST_WAITING: usize = 100_000;

/// A call by its start, its thread and its path. Older ones come first.
type Key = (u64, ThreadId, u32);

/// An open call.
#[derive(Debug, Default)]
struct Open {
    values: Option<Box<CallValues>>,
    is_announced: bool,
}

#[derive(Debug)]
pub(super) struct CallOrder {
    waiting: BinaryHeap<Reverse<Waiting>>,
    open: BTreeMap<Key, Open>,
    /// Calls that are open for so long are announced.
    patience: Nanos,
    most: usize,
    /// The end of the last chunk.
    to: Nanos,
}

impl CallOrder {
    pub(super) fn new(patience: Nanos, most: usize) -> Self {
        let (waiting, open) = Default::default();
        Self { waiting, open, patience, most, to: Nanos::ZERO }
    }

    /// Adds the calls of a chunk whose functions are wanted. `nodes` are their paths.
    pub(super) fn add(
        &mut self,
        chunk: &Chunk,
        nodes: &[Node],
        mut values: ValuesByCall,
        lost: Option<Lost>,
        wants: impl Fn(FuncId) -> bool,
    ) {
        let mut before = std::mem::take(&mut self.open);
        self.to = chunk.to;
        for thread in chunk.threads() {
            for call in chunk.calls(thread) {
                if !wants(nodes[call.path() as usize].func) {
                    continue;
                }
                let (start, path) = (call.start().0, call.path());
                let ended = if call.is_timed() { Ended::Timed } else { Ended::Untimed };
                let row = CallRow { start, duration: call.duration().0, path, ended, own: 0 };
                let open = before.remove(&(start, thread.thread, path)).unwrap_or_default();
                let part = if open.is_announced { CallPart::Resumed } else { CallPart::Whole };
                let call = CallLine::new(part, nodes, thread.thread, &row);
                let values = values.remove(&(thread.thread, start, call.function));
                self.wait(Waiting::call(call, values.map(Box::new).or(open.values)));
            }
            for open in &thread.open {
                let key = (open.start.0, thread.thread, open.path);
                let function = nodes[open.path as usize].func;
                if !wants(function) {
                    continue;
                }
                let values = values.remove(&(thread.thread, open.start.0, function)).map(Box::new);
                let mut open = before.remove(&key).unwrap_or_default();
                open.values = values.or(open.values);
                self.open.insert(key, open);
            }
        }
        for (key, open) in before {
            if open.is_announced {
                let call = self.line(CallPart::Gone, nodes, &key, Ended::Untimed);
                self.wait(Waiting::call(call, None));
            }
        }
        lost.into_iter().for_each(|lost| self.wait(Waiting::lost(lost)));
    }

    /// Ends the stream: what is open stays so.
    pub(super) fn end(&mut self, nodes: &[Node], end: Nanos) {
        self.to = self.to.max(end);
        for (key, open) in std::mem::take(&mut self.open) {
            let part = if open.is_announced { CallPart::Resumed } else { CallPart::Whole };
            let call = self.line(part, nodes, &key, Ended::Open);
            self.wait(Waiting::call(call, open.values));
        }
    }

    /// Emits the lines that nothing can precede any more, and announces calls that hold others up.
    pub(super) fn release<E>(
        &mut self,
        nodes: &[Node],
        mut each: impl FnMut(&Waiting) -> Result<(), E>,
    ) -> Result<(), E> {
        let long_ago = self.to.since(self.patience);
        let open = self.open.iter().filter(|(_, open)| !open.is_announced);
        for key in open.map(|(key, _)| *key).collect::<Vec<_>>() {
            let start = Nanos(key.0);
            self.pass(start, &mut each)?;
            if start > long_ago && self.waiting.len() <= self.most {
                return Ok(());
            }
            let call = self.line(CallPart::Begun, nodes, &key, Ended::Open);
            if let Some(open) = self.open.get_mut(&key) {
                open.is_announced = true;
                let values = open.values.clone();
                self.wait(Waiting::call(call, values));
            }
        }
        self.pass(Nanos::MAX, &mut each)
    }

    /// Emits the lines before a time.
    fn pass<E>(
        &mut self,
        until: Nanos,
        each: &mut impl FnMut(&Waiting) -> Result<(), E>,
    ) -> Result<(), E> {
        while let Some(Reverse(first)) = self.waiting.peek()
            && first.time() < until
        {
            each(first)?;
            self.waiting.pop();
        }
        Ok(())
    }

    /// Returns the number of calls that are open.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// Returns the time of the first line that waits.
    pub(super) fn first_waiting(&self) -> Option<Nanos> {
        self.waiting.peek().map(|Reverse(first)| first.time())
    }

    fn wait(&mut self, line: Waiting) {
        self.waiting.push(Reverse(line));
    }

    /// Returns the line of an open call, up to the end of the last chunk.
    fn line(&self, part: CallPart, nodes: &[Node], key: &Key, ended: Ended) -> CallLine {
        let &(start, thread, path) = key;
        let duration = self.to.since(Nanos(start)).0;
        CallLine::new(part, nodes, thread, &CallRow { start, duration, path, ended, own: 0 })
    }
}
