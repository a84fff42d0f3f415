//! The choice of the next source in a k-way merge.
//!
//! The current source is kept out of the heap, and a switch is one exchange with the heap's top:
//! with two sources that is one comparison.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A source and the key of its next item. The greatest key is next; ties go to the lower source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) key: u64,
    pub(crate) source: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key).then(other.source.cmp(&self.source))
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The waiting sources.
#[derive(Debug, Default)]
pub(crate) struct Frontier {
    waiting: BinaryHeap<Head>,
}

impl Frontier {
    pub(crate) fn push(&mut self, head: Head) {
        self.waiting.push(head);
    }

    pub(crate) fn pop(&mut self) -> Option<Head> {
        self.waiting.pop()
    }

    /// Returns the best of the waiting sources.
    #[inline]
    pub(crate) fn peek(&self) -> Option<Head> {
        self.waiting.peek().copied()
    }

    /// Puts `head` back and returns the best of all.
    #[inline]
    pub(crate) fn exchange(&mut self, head: Head) -> Head {
        match self.waiting.peek_mut() {
            Some(mut top) if *top > head => std::mem::replace(&mut *top, head),
            _ => head,
        }
    }
}
