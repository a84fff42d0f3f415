//! The definitions of a recording's ids, kept so that a rotated file can begin with all of them.

use super::block::{Block, BlockKind};
use super::names::{Names, ThreadRecord};
use super::writer::Writer;
use crate::units::{Nanos, ThreadId};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::sync::Arc;

/// Everything defined so far.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// All but the threads. These and the paths are large, and seldom change: copies share them.
    names: Arc<Names>,
    threads: BTreeMap<ThreadId, ThreadRecord>,
    paths: Arc<Vec<u8>>,
    /// The end of the last chunk that mentions each thread.
    last_seen: HashMap<ThreadId, Nanos>,
    /// Threads that no later chunk mentions.
    ended: Vec<ThreadId>,
}

impl Definitions {
    /// Adds the definitions of a block that was written.
    pub fn note(&mut self, block: &Block) {
        match block.kind {
            BlockKind::Names => {
                if let Ok(names) = serde_json::from_slice::<Names>(&block.contents()) {
                    let all = Arc::make_mut(&mut self.names);
                    all.functions.extend(names.functions);
                    names.costs.iter().for_each(|new| new.apply(&mut all.functions));
                    all.objects.extend(names.objects);
                    all.addresses.extend(names.addresses);
                    self.threads.extend(names.threads.into_iter().map(|t| (t.id, t)));
                }
            }
            BlockKind::Paths => Arc::make_mut(&mut self.paths).extend(&*block.contents()),
            BlockKind::Calls => {
                let end = Nanos(block.window.end);
                self.last_seen.extend(block.threads.iter().map(|thread| (*thread, end)));
                self.ended.extend(&block.ended);
            }
            BlockKind::Start
            | BlockKind::End
            | BlockKind::Index
            | BlockKind::Payloads
            | BlockKind::TypedPayloads
            | BlockKind::LongPayloads => {}
        }
    }

    /// Forgets threads that ended and that no chunk ending after `from` mentions.
    pub fn forget_threads_before(&mut self, from: Nanos) {
        let Self { threads, last_seen, ended, .. } = self;
        ended.retain(|id| {
            let is_needed = last_seen.get(id).is_some_and(|seen| *seen > from);
            if !is_needed {
                threads.remove(id);
                last_seen.remove(id);
            }
            is_needed
        });
    }

    /// Writes all definitions to a new file.
    pub fn write<W: Write>(&self, writer: &mut Writer<W>) -> io::Result<()> {
        let threads = self.threads.values().cloned().collect();
        let names = Names { threads, ..Names::clone(&self.names) };
        names.to_blocks()?.iter().try_for_each(|block| writer.write(block))?;
        if !self.paths.is_empty() {
            writer.write(&Block::new(BlockKind::Paths, self.paths.to_vec()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever looks at a session asks for a copy five times a second.
    #[test]
    fn copies_share_what_has_not_changed() {
        let mut all = Definitions::default();
        all.note(&Block::new(BlockKind::Paths, vec![1, 2, 3]));
        let before = all.clone();
        all.note(&Block::new(BlockKind::Calls, Vec::new()));
        assert!(Arc::ptr_eq(&all.names, &before.names) && Arc::ptr_eq(&all.paths, &before.paths));
        all.note(&Block::new(BlockKind::Paths, vec![4]));
        assert_eq!((&**all.paths, &**before.paths), (&[1, 2, 3, 4][..], &[1, 2, 3][..]));
        assert!(Arc::ptr_eq(&all.names, &before.names));
    }
}
