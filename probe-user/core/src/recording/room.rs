//! Bounds on a file's calls, names and paths. Names and paths are kept in memory, which a small
//! hostile file must not fill.

use super::RecordError;
use super::block::BlockHeader;
use super::extent::CALLS_IN_A_BYTE;
use crate::calls::paths::Node;

/// The number of calls in a file, and its limit. Processing time grows with the number of calls,
/// and a small file can hold any number of equal ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallsRoom {
    so_far: u64,
    most: u64,
    bytes: u64,
}

impl CallsRoom {
    /// Calls accepted from any file: they take seconds at most.
    const FREE: u64 = 4 << 20;

    pub(super) fn of_file(bytes: u64) -> Self {
        let most = Self::FREE.saturating_add(bytes.saturating_mul(CALLS_IN_A_BYTE));
        Self { so_far: 0, most, bytes }
    }

    pub(super) fn up_to(self, most: u64) -> Self {
        Self { most, ..self }
    }

    /// Adds calls, and refuses the file once there are too many.
    pub(super) fn add(&mut self, calls: u64) -> Result<(), RecordError> {
        self.so_far = self.so_far.saturating_add(calls);
        match self.so_far <= self.most {
            true => Ok(()),
            false => Err(RecordError::TooManyCalls { most: self.most, bytes: self.bytes }),
        }
    }
}

/// The names and paths read so far.
#[derive(Debug, Default)]
pub(super) struct NamesRoom {
    /// Sizes of their blocks, in the file and unpacked.
    stored: u64,
    unpacked: u64,
    paths: u64,
    /// Frames of all paths together.
    frames: u64,
}

impl NamesRoom {
    /// Unpacked bytes allowed for each byte in the file, beyond [`Self::FREE`]. Names compress to
    /// about a tenth.
    const RATIO: u64 = 64;
    const FREE: u64 = 64 << 20;
    /// Paths, at most: many times more than ctrace distinguishes.
    const PATHS: u64 = 1 << 18;
    const FRAMES: u64 = 1 << 24;

    pub(super) fn take_block(
        &mut self,
        header: &BlockHeader,
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
        // One path for each function stands for its calls with an unknown place in the tree.
        self.frames += if node.other { 0 } else { u64::from(node.depth) };
        match self.paths <= Self::PATHS + functions as u64 && self.frames <= Self::FRAMES {
            true => Ok(()),
            false => Err(RecordError::Malformed("it has too many paths")),
        }
    }
}
