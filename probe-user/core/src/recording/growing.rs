//! A recording in the making: its blocks come from the engine one by one, for a reader that shows
//! calls while they happen. Names and paths stay; chunks pass by.

use super::block::{Block, BlockKind};
use super::chunk::Chunk;
use super::payloads::Payloads;
use super::reader::json;
use super::room::CallsRoom;
use super::source::Source;
use super::{RecordError, Recording, Start};
use crate::units::ThreadId;

impl Recording {
    /// Makes one without any block.
    pub(crate) fn begun(start: Start) -> Self {
        Self { start, ..Self::empty(Source::none(), CallsRoom::of_file(0)) }
    }

    /// Takes the next block. Returns the calls of a chunk, and their values.
    pub(crate) fn grow(&mut self, block: &Block) -> Result<Option<(Chunk, Payloads)>, RecordError> {
        let contents = block.contents();
        match block.kind {
            BlockKind::Names => self.add_names(json(&contents)?)?,
            BlockKind::Paths => self.add_paths(&contents)?,
            BlockKind::Calls => {
                let chunk = Chunk::decode(&contents, self.nodes.len(), self.functions.len())?;
                let payloads = block.payloads().map(|block| {
                    let contents = block.contents();
                    Payloads::decode(&contents, contents.len() as u32, &self.functions)
                });
                return Ok(Some((chunk, payloads.transpose()?.unwrap_or_default())));
            }
            BlockKind::Start
            | BlockKind::End
            | BlockKind::Index
            | BlockKind::Payloads
            | BlockKind::TypedPayloads
            | BlockKind::LongPayloads => {}
        }
        Ok(None)
    }

    /// Forgets threads that have ended.
    pub(crate) fn forget(&mut self, ended: impl IntoIterator<Item = ThreadId>) {
        ended.into_iter().for_each(|thread| _ = self.threads.remove(&thread));
    }
}
