//! Reads the first block of a recording without the rest.

use super::block::{self, BlockKind, FILE_HEADER};
use super::names::Start;
use super::{ReadAt, RecordError};

/// Largest size of the block: far more than command lines need.
const MOST: u32 = 4 << 20;

impl Start {
    /// Reads it from a recording, and nothing else.
    pub fn read(source: &dyn ReadAt) -> Result<Self, RecordError> {
        let mut header = [0; FILE_HEADER];
        let read = source.read_at(&mut header, 0)?;
        block::check_file_header(&header[..read])?;
        let header = block::header_at(source, FILE_HEADER as u64)?
            .filter(|header| header.kind == Some(BlockKind::Start))
            .filter(|header| header.stored.max(header.len) <= MOST)
            .ok_or(RecordError::Malformed("the block that it begins with is damaged"))?;
        let contents = block::contents_at(source, FILE_HEADER as u64, &header)?;
        serde_json::from_slice(&contents)
            .map_err(|_| RecordError::Malformed("the block that it begins with is damaged"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Writer;

    #[test]
    fn the_start_is_read_alone() {
        let start = Start { daemon_target: Some("web".to_owned()), ..Start::default() };
        let whole = Writer::new(Vec::new(), &start).unwrap().into_inner();
        assert_eq!(Start::read(&whole).unwrap(), start);
        for length in 0..whole.len() {
            assert!(Start::read(&whole[..length].to_vec()).is_err(), "{length}");
        }
    }
}
