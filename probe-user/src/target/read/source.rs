//! A file of a target, read by part.
//!
//! Only requested parts are read, so a sparse file of terabytes costs only its headers and tables.
//! It is not mapped: shortening a mapped file kills its readers with SIGBUS. Each part stays in
//! memory and counts against the object's [`Budget`].

use super::budget::{Budget, ObjectLimits, TooLarge};
use elsa::sync::FrozenVec;
use object::ReadRef;
use rustix::buffer::spare_capacity;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex, PoisonError};

/// Longer texts count as having no end.
pub(crate) const LONGEST_TEXT: u64 = 64 << 10;
/// Bytes that are read at once if they are not kept.
const CHUNK: usize = 1 << 20;

/// The bytes of a file.
#[derive(Debug)]
pub struct Source {
    content: Content,
    length: u64,
    budget: Arc<Budget>,
    parts: FrozenVec<Box<[u8]>>,
    /// The longest part that begins at each offset.
    places: Mutex<BTreeMap<u64, (u64, usize)>>,
}

#[derive(Debug)]
enum Content {
    File(File),
    Bytes(Arc<[u8]>),
}

impl Source {
    pub(crate) fn of_file(file: File, budget: Arc<Budget>) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self::new(Content::File(file), length, budget))
    }

    /// Wraps bytes that are in memory already.
    pub fn of_bytes(bytes: &[u8], limits: ObjectLimits) -> Self {
        Self::new(Content::Bytes(bytes.into()), bytes.len() as u64, Budget::new(limits))
    }

    /// Wraps bytes that another part of the object was unpacked to.
    pub(crate) fn of_shared(bytes: Arc<[u8]>, budget: Arc<Budget>) -> Self {
        let length = bytes.len() as u64;
        Self::new(Content::Bytes(bytes), length, budget)
    }

    fn new(content: Content, length: u64, budget: Arc<Budget>) -> Self {
        Self { content, length, budget, parts: FrozenVec::new(), places: Mutex::default() }
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Returns a part of the file, which is read once. Returns `None` if the file has no such part
    /// or it cannot be read. The budget records refusals.
    pub(crate) fn part(&self, offset: u64, size: u64) -> Option<&[u8]> {
        if size == 0 {
            return Some(&[]);
        }
        let end = offset.checked_add(size).filter(|end| *end <= self.length)?;
        if let Some(known) = self.known(offset..end) {
            return Some(known);
        }
        self.budget.check().ok()?;
        self.budget.charge(size).ok()?;
        let mut bytes = empty(size).map_err(|why| self.budget.refuse(why)).ok()?;
        self.append(&mut bytes, offset, size as usize).ok()?;
        let place = self.parts.push_get_index(bytes.into_boxed_slice());
        self.places().insert(offset, (size, place));
        self.parts.get(place)
    }

    /// Returns the text at an offset, which a zero byte ends before `end`.
    pub(crate) fn text(&self, range: Range<u64>) -> Option<&[u8]> {
        let end = range.end.min(range.start.saturating_add(LONGEST_TEXT)).min(self.length);
        let bytes = self.part(range.start, end.checked_sub(range.start)?)?;
        Some(&bytes[..memchr::memchr(0, bytes)?])
    }

    /// Reads bytes that are not kept. Returns fewer than asked for at the end of the file.
    pub fn peek(&self, offset: u64, most: usize) -> Vec<u8> {
        let left = self.length.saturating_sub(offset).min(most as u64) as usize;
        let mut bytes = Vec::with_capacity(left);
        match self.append(&mut bytes, offset, left) {
            Ok(()) => bytes,
            Err(_) => Vec::new(),
        }
    }

    /// Reads a part of the file for an owner of its own.
    pub(crate) fn copy(&self, offset: u64, size: u64) -> Option<Arc<[u8]>> {
        offset.checked_add(size).filter(|end| *end <= self.length)?;
        let mut bytes = self.shared(size)?;
        self.fill(Arc::get_mut(&mut bytes)?, offset).ok()?;
        Some(bytes)
    }

    fn fill(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        match &self.content {
            Content::File(file) => file.read_exact_at(bytes, offset),
            Content::Bytes(all) => {
                let all = all.get(offset as usize..offset as usize + bytes.len());
                bytes.copy_from_slice(all.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }

    /// Allocates memory if both the budget and the system have it.
    pub(crate) fn shared(&self, size: u64) -> Option<Arc<[u8]>> {
        self.budget.check().ok()?;
        self.budget.charge(size).ok()?;
        // Allocating shared memory aborts when there is none, so this tries first.
        drop(empty(size).map_err(|why| self.budget.refuse(why)).ok()?);
        Some(std::iter::repeat_n(0, usize::try_from(size).ok()?).collect())
    }

    /// Visits a part of the file by chunks, each preceded by the last `overlap` bytes of the one
    /// before it. `visit` gets the chunk's offset in the part.
    pub(crate) fn scan(
        &self,
        part: Range<u64>,
        overlap: usize,
        mut visit: impl FnMut(u64, &[u8]) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let end = part.end.min(self.length);
        let _loan = self.budget.lend((CHUNK + overlap) as u64).map_err(io::Error::other)?;
        let mut bytes = Vec::with_capacity(CHUNK + overlap);
        let mut at = part.start;
        while at < end {
            self.budget.check().map_err(io::Error::other)?;
            let fresh = (end - at).min(CHUNK as u64) as usize;
            bytes.drain(..bytes.len().saturating_sub(overlap));
            let start = at - part.start - bytes.len() as u64;
            self.append(&mut bytes, at, fresh)?;
            if visit(start, &bytes).is_break() {
                break;
            }
            at += fresh as u64;
        }
        Ok(())
    }

    /// Returns a part already read that contains all of these bytes.
    fn known(&self, range: Range<u64>) -> Option<&[u8]> {
        if let Content::Bytes(bytes) = &self.content {
            let (start, end) = (usize::try_from(range.start), usize::try_from(range.end));
            return bytes.get(start.ok()?..end.ok()?);
        }
        let (start, place) = {
            let places = self.places();
            let (start, (size, place)) = places.range(..=range.start).next_back()?;
            (range.end - start <= *size).then_some((*start, *place))?
        };
        let from = (range.start - start) as usize;
        self.parts.get(place)?.get(from..from + (range.end - range.start) as usize)
    }

    fn places(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, (u64, usize)>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, bytes: &mut Vec<u8>, offset: u64, size: usize) -> io::Result<()> {
        match &self.content {
            Content::File(file) => {
                let goal = bytes.len() + size;
                bytes.reserve_exact(size);
                while bytes.len() < goal {
                    let at = offset + (size - (goal - bytes.len())) as u64;
                    match rustix::io::pread(file, spare_capacity(bytes), at) {
                        Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                        Err(rustix::io::Errno::INTR) | Ok(_) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                // The allocator may have given more room.
                bytes.truncate(goal);
            }
            Content::Bytes(all) => bytes.extend_from_slice(
                all.get(offset as usize..offset as usize + size)
                    .ok_or(io::ErrorKind::UnexpectedEof)?,
            ),
        }
        Ok(())
    }
}

/// Allocates an empty vector with room for this many bytes.
fn empty(size: u64) -> Result<Vec<u8>, TooLarge> {
    let mut bytes = Vec::new();
    let room = usize::try_from(size).ok().map(|size| bytes.try_reserve_exact(size));
    match room {
        Some(Ok(())) => Ok(bytes),
        _ => Err(TooLarge::NoMemory(size)),
    }
}

impl<'a> ReadRef<'a> for &'a Source {
    fn len(self) -> Result<u64, ()> {
        Ok(self.length)
    }

    fn read_bytes_at(self, offset: u64, size: u64) -> Result<&'a [u8], ()> {
        self.part(offset, size).ok_or(())
    }

    fn read_bytes_at_until(self, range: Range<u64>, delimiter: u8) -> Result<&'a [u8], ()> {
        debug_assert_eq!(delimiter, 0);
        self.text(range).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn source(limits: ObjectLimits) -> Source {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"one\0two\0three").unwrap();
        file.set_len(8 << 40).unwrap();
        Source::of_file(file, Budget::new(limits)).unwrap()
    }

    #[test]
    fn reads_what_is_asked_for() {
        let source = source(ObjectLimits { memory: 1 << 20, ..ObjectLimits::DEFAULT });
        assert_eq!(source.part(4, 3), Some(&b"two"[..]));
        assert_eq!(source.part(0, 0), Some(&b""[..]));
        assert_eq!(source.part(0, 13), Some(&b"one\0two\0three"[..]));
        assert_eq!(source.text(4..100), Some(&b"two"[..]));
        assert_eq!(source.text(4..6), None);
        assert_eq!(source.text(8..100), Some(&b"three"[..]));
        assert_eq!(source.peek((8 << 40) - 2, 9), [0, 0]);
        assert_eq!(source.copy(1, 2).as_deref(), Some(&b"ne"[..]));
        assert_eq!(source.part(8 << 40, 1), None);
        assert_eq!(source.budget().watch(|| source.part(u64::MAX, 2)), (None, None));
    }

    #[test]
    fn refuses_what_is_more_than_the_budget() {
        let source = source(ObjectLimits { memory: 100, ..ObjectLimits::DEFAULT });
        let refused = Some(TooLarge::Memory(100));
        assert_eq!(source.budget().watch(|| source.part(0, 101)), (None, refused));
        assert_eq!(source.part(0, 60).map(<[u8]>::len), Some(60));
        // A known part is not read again.
        assert_eq!(source.part(1, 59).map(<[u8]>::len), Some(59));
        assert_eq!(source.budget().watch(|| source.copy(0, 60)), (None, refused));
    }

    #[test]
    fn chunks_overlap() {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..CHUNK * 2 + 77).map(|at| (at % 251) as u8).collect();
        file.write_all(&bytes).unwrap();
        let source = Source::of_file(file, Budget::new(ObjectLimits::DEFAULT)).unwrap();
        let mut seen = Vec::new();
        let visit = |start: u64, chunk: &[u8]| {
            let start = start as usize;
            assert_eq!(chunk, &bytes[10 + start..10 + start + chunk.len()]);
            seen.push((start, chunk.len()));
            ControlFlow::Continue(())
        };
        source.scan(10..bytes.len() as u64 + 9, 5, visit).unwrap();
        assert_eq!(seen, [(0, CHUNK), (CHUNK - 5, CHUNK + 5), (CHUNK * 2 - 5, 72)]);
    }
}
