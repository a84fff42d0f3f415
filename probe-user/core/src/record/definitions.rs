//! What ids of a recording stand for, kept so that another file can begin in the middle of a trace.

use super::RecordError;
use super::block::{Block, BlockKind};
use super::names::Names;
use super::writer::Writer;
use crate::units::{Nanos, ThreadId};
use std::collections::HashMap;
use std::io::Write;

/// Everything defined so far.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    names: Names,
    paths: Vec<u8>,
    /// Threads, and the end of the last chunk that has something of them.
    last_seen: HashMap<ThreadId, Nanos>,
}

impl Definitions {
    /// Takes note of a block that was written.
    pub fn note(&mut self, block: &Block) {
        match block.kind {
            BlockKind::Names => {
                if let Ok(names) = serde_json::from_slice::<Names>(&block.contents) {
                    self.names.functions.extend(names.functions);
                    self.names.objects.extend(names.objects);
                    self.names.threads.extend(names.threads);
                }
            }
            BlockKind::Paths => self.paths.extend(&block.contents),
            BlockKind::Calls => {
                let end = Nanos(block.window.end);
                self.last_seen.extend(block.threads.iter().map(|thread| (*thread, end)));
            }
            BlockKind::Start | BlockKind::End | BlockKind::Index => {}
        }
    }

    /// Threads that no chunk from then on has anything of will not be needed.
    pub fn forget_threads_before(&mut self, from: Nanos) {
        let newest = self.last_seen.values().max().copied().unwrap_or_default();
        self.last_seen.retain(|_, seen| *seen > from);
        let last_seen = &self.last_seen;
        // What was named after the last chunk is still to come.
        let newest_id =
            last_seen.iter().filter(|(_, seen)| **seen == newest).map(|(id, _)| *id).max();
        self.names.threads.retain(|thread| {
            last_seen.contains_key(&thread.id) || newest_id.is_none_or(|newest| thread.id > newest)
        });
    }

    /// Writes all to a file that has just begun.
    pub fn write<W: Write>(&self, writer: &mut Writer<W>) -> Result<(), RecordError> {
        writer.write_json(BlockKind::Names, &self.names)?;
        if !self.paths.is_empty() {
            writer.write(&Block::new(BlockKind::Paths, self.paths.clone()))?;
        }
        Ok(())
    }
}
