//! Memory for the calls of chunks. A thread that reads chunk after chunk uses the same again: fresh
//! pages from the kernel cost a fifth of the time that a report takes.

use super::CHUNK_CALLS;
use super::chunk::Call;
use std::cell::Cell;
use std::ops::{Deref, DerefMut};

/// More than this is given back to the system: chunks that we write have less.
const MOST: usize = 2 * CHUNK_CALLS * size_of::<Call>();

thread_local! {
    static SPARE: Cell<Vec<Call>> = const { Cell::new(Vec::new()) };
}

/// The calls of a chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Calls(Vec<Call>);

impl Calls {
    pub(super) fn with_capacity(calls: usize) -> Self {
        let spare = SPARE.take();
        if spare.capacity() >= calls {
            return Self(spare);
        }
        drop(spare);
        Self(Vec::with_capacity(calls))
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        let mut memory = std::mem::take(&mut self.0);
        if memory.capacity() * size_of::<Call>() <= MOST {
            memory.clear();
            // A thread that ends has no use for it.
            let _ = SPARE.try_with(|spare| {
                let other = spare.take();
                spare.set(if other.capacity() > memory.capacity() { other } else { memory });
            });
        }
    }
}

impl Deref for Calls {
    type Target = Vec<Call>;

    fn deref(&self) -> &Vec<Call> {
        &self.0
    }
}

impl DerefMut for Calls {
    fn deref_mut(&mut self) -> &mut Vec<Call> {
        &mut self.0
    }
}
