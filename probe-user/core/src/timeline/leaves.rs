//! The calls of chunks that were shown lately, kept for the next pictures.

use super::leaf::Leaf;
use crate::recording::{ChunkEntry, Recording};
use crate::stop::Stop;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// Memory for the calls of chunks that were shown lately.
const MOST_KEPT: usize = 32 << 20;
/// Bytes that each takes besides its calls.
const EACH: usize = 160;

/// The calls of some chunks, those last used. Each look-up takes a short time, however many are kept.
#[derive(Debug, Default)]
pub(super) struct Leaves(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// By the chunk's number, with its last use.
    leaves: HashMap<usize, (Arc<Leaf>, u64)>,
    /// The chunks by their last use.
    by_use: BTreeMap<u64, usize>,
    uses: u64,
    bytes: usize,
}

impl Kept {
    fn find(&mut self, number: usize) -> Option<Arc<Leaf>> {
        let (leaf, last) = self.leaves.get_mut(&number)?;
        self.uses += 1;
        self.by_use.remove(last);
        self.by_use.insert(self.uses, number);
        *last = self.uses;
        Some(Arc::clone(leaf))
    }

    fn keep(&mut self, number: usize, leaf: &Arc<Leaf>) {
        // Another picture may have read it meanwhile.
        self.forget(number);
        self.uses += 1;
        self.bytes += bytes(leaf);
        self.by_use.insert(self.uses, number);
        self.leaves.insert(number, (Arc::clone(leaf), self.uses));
        while self.bytes > MOST_KEPT && self.leaves.len() > 1 {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            self.forget(oldest);
        }
    }

    fn forget(&mut self, number: usize) {
        if let Some((leaf, last)) = self.leaves.remove(&number) {
            self.by_use.remove(&last);
            self.bytes -= bytes(&leaf);
        }
    }
}

fn bytes(leaf: &Leaf) -> usize {
    leaf.bytes() + EACH
}

impl Leaves {
    /// True if the calls of a chunk are kept.
    pub(super) fn has(&self, number: usize) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).leaves.contains_key(&number)
    }

    /// Returns the calls of a chunk. One that cannot be read has none: it is shown as lost. Work that is
    /// stopped gets none either.
    pub(super) fn get(
        &self,
        recording: &Recording,
        number: usize,
        entry: &ChunkEntry,
        stop: &Stop,
    ) -> Arc<Leaf> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = lock().find(number) {
            return found;
        }
        if stop.is_stopped() {
            return Arc::default();
        }
        let leaf = recording.chunk(entry).map(|chunk| Leaf::of(&chunk, recording.nodes()).0);
        let leaf = Arc::new(leaf.unwrap_or_default());
        lock().keep(number, &leaf);
        leaf
    }

    /// Returns the number of chunks that are kept, and their bytes.
    #[cfg(test)]
    pub(super) fn kept(&self) -> (usize, usize) {
        let kept = self.0.lock().expect("no test panics meanwhile");
        (kept.leaves.len(), kept.bytes)
    }
}
