//! Reusable memory for the calls of chunks. A thread that reads chunk after chunk reuses it: fresh
//! pages from the kernel would cost a fifth of a report's time.

use super::CHUNK_CALLS;
use super::chunk::Call;
use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

/// Larger allocations are freed, not kept: ctrace's own chunks need less.
const MOST: usize = 2 * CHUNK_CALLS * size_of::<Call>();
/// Number of allocations that a thread keeps.
const SPARES: usize = 8;

thread_local! {
    static SPARE: RefCell<Vec<Vec<Call>>> = const { RefCell::new(Vec::new()) };
}

/// The calls of a chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChunkCalls(Vec<Call>);

impl ChunkCalls {
    pub(crate) fn with_capacity(calls: usize) -> Self {
        let spare = SPARE.with_borrow_mut(Vec::pop).filter(|spare| spare.capacity() >= calls);
        // An allocation for a full chunk can be reused for most chunks.
        Self(spare.unwrap_or_else(|| Vec::with_capacity(calls.max(CHUNK_CALLS))))
    }
}

impl Drop for ChunkCalls {
    fn drop(&mut self) {
        let mut memory = std::mem::take(&mut self.0);
        if (1..=MOST).contains(&(memory.capacity() * size_of::<Call>())) {
            memory.clear();
            // This fails while the thread ends, when nothing is worth keeping.
            let _ = SPARE.try_with(|spares| {
                let mut spares = spares.borrow_mut();
                if spares.len() < SPARES {
                    spares.push(memory);
                }
            });
        }
    }
}

impl Deref for ChunkCalls {
    type Target = Vec<Call>;

    fn deref(&self) -> &Vec<Call> {
        &self.0
    }
}

impl DerefMut for ChunkCalls {
    fn deref_mut(&mut self) -> &mut Vec<Call> {
        &mut self.0
    }
}
