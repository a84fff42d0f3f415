//! The bytes of a recording: a file, several that `record --rotate` made of one, or memory.
//!
//! What reads a recording does not depend on where its bytes are. So it is compiled once, and a call by
//! way of a table for each block costs nothing beside reading it.

use std::io;

/// A source that can be read at any offset and from several threads.
pub trait ReadAt: Sync {
    /// Fills `bytes` from `offset` on, as far as the source goes, and returns the number of bytes.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Returns the number of bytes.
    fn len(&self) -> io::Result<u64>;
    /// True if there are no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        self.len().map(|len| len == 0)
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let length = rest.len().min(bytes.len());
        bytes[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(<[u8]>::len(self) as u64)
    }
}

impl ReadAt for Vec<u8> {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.as_slice().read_at(bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.as_slice().len() as u64)
    }
}

impl ReadAt for std::fs::File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut read = 0;
        while read < bytes.len() {
            let at = offset.saturating_add(read as u64);
            match std::os::unix::fs::FileExt::read_at(self, &mut bytes[read..], at) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn len(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }
}

/// Concatenated sources. No read crosses from one to the next.
pub(super) struct Source {
    /// The sources and their offsets.
    parts: Vec<(u64, Box<dyn ReadAt + Send>)>,
    len: u64,
}

impl Source {
    pub(super) fn of(part: impl ReadAt + Send + 'static) -> io::Result<Self> {
        Ok(Self { len: part.len()?, parts: vec![(0, Box::new(part))] })
    }

    /// Returns one without bytes.
    pub(super) fn none() -> Self {
        Self { parts: Vec::new(), len: 0 }
    }

    /// Adds another source at the end, and returns the offset at which it begins.
    pub(super) fn append(&mut self, next: Self) -> u64 {
        let begin = self.len;
        self.parts
            .extend(next.parts.into_iter().map(|(at, part)| (begin.saturating_add(at), part)));
        self.len = begin.saturating_add(next.len);
        begin
    }
}

impl ReadAt for Source {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let behind = self.parts.partition_point(|(begin, _)| *begin <= offset);
        match behind.checked_sub(1).and_then(|at| self.parts.get(at)) {
            Some((begin, part)) => part.read_at(bytes, offset - begin),
            None => Ok(0),
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.len)
    }
}
