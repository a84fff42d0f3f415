//! The definitions of a recording's ids, kept so that a rotated file can begin with all of them.

use super::block::{Block, BlockKind};
use super::names::{Names, ThreadRecord};
use super::writer::Writer;
use crate::units::{Nanos, ThreadId};
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

/// Everything defined so far.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// All but the threads.
    names: Names,
    threads: BTreeMap<ThreadId, ThreadRecord>,
    paths: Vec<u8>,
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
                    self.names.functions.extend(names.functions);
                    names.costs.iter().for_each(|new| new.apply(&mut self.names.functions));
                    self.names.objects.extend(names.objects);
                    self.names.addresses.extend(names.addresses);
                    self.threads.extend(names.threads.into_iter().map(|t| (t.id, t)));
                }
            }
            BlockKind::Paths => self.paths.extend(&*block.contents()),
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
        let names = Names { threads, ..self.names.clone() };
        names.to_blocks()?.iter().try_for_each(|block| writer.write(block))?;
        if !self.paths.is_empty() {
            writer.write(&Block::new(BlockKind::Paths, self.paths.clone()))?;
        }
        Ok(())
    }
}
