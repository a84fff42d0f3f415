//! How much of names and paths is taken from a file. They are kept in memory, and a small file must
//! not become large there.

use super::RecordError;
use super::block::Header;
use crate::paths::Node;

/// What there is so far.
#[derive(Debug, Default)]
pub(super) struct Room {
    /// Bytes of their blocks, in the file and unpacked.
    stored: u64,
    unpacked: u64,
    paths: u64,
    /// Of all paths together.
    frames: u64,
}

impl Room {
    /// Bytes that one in the file may become, and so many more in all. Names shrink to a tenth.
    const RATIO: u64 = 64;
    const FREE: u64 = 64 << 20;
    /// Many times what ctrace tells apart.
    const PATHS: u64 = 1 << 18;
    const FRAMES: u64 = 1 << 24;

    pub(super) fn take_block(
        &mut self,
        header: &Header,
        contents: &[u8],
    ) -> Result<(), RecordError> {
        self.stored += u64::from(header.stored);
        self.unpacked += contents.len() as u64;
        match self.unpacked <= Self::FREE + self.stored * Self::RATIO {
            true => Ok(()),
            false => Err(RecordError::Malformed("it has more names than it has room for")),
        }
    }

    pub(super) fn take_path(&mut self, node: &Node, functions: usize) -> Result<(), RecordError> {
        self.paths += 1;
        // One for each function stands for its calls whose place in the tree is not known.
        self.frames += if node.other { 0 } else { u64::from(node.depth) };
        match self.paths <= Self::PATHS + functions as u64 && self.frames <= Self::FRAMES {
            true => Ok(()),
            false => Err(RecordError::Malformed("it has too many paths")),
        }
    }
}
