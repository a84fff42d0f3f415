//! Reads a recording: names at once, calls chunk by chunk.

use super::addresses::AddressNames;
use super::block::{self, BlockHeader, BlockKind};
use super::chunk::Chunk;
use super::extent;
use super::index::{ChunkEntry, Entry, Index};
use super::missing::missing;
use super::names::{End, Names, ObjectRecord, Start, ThreadRecord};
use super::payloads::{Payload, Payloads, ValuesByCall};
use super::room::{CallsRoom, NamesRoom};
use super::scan::{Blocks, scan};
use super::source::{ReadAt, Source};
use super::varint::{take, take_u32};
use super::{ROOT_PATH, RecordError};
use crate::calls::paths::Node;
use crate::function::{FunctionInfo, LONGEST_CONDITION, LONGEST_VALUE_NAME, is_word};
use crate::report::{CallValues, NamedValues};
use crate::units::{FuncId, Nanos, ThreadId};
use ctrace_common::MAX_VALUES;
use std::collections::HashMap;
use std::ops::Range;

/// A node of the tree of call paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathNode {
    /// The last function of the path: its index in [`Recording::functions`].
    pub function: FuncId,
    /// The caller's node; 0 for the first frame of a path.
    pub parent: u32,
    /// True for calls beyond the bounds on paths: their place in the tree is not known.
    pub is_other: bool,
}

/// An open recording: names and call paths in memory, calls still in the source.
pub struct Recording {
    pub(super) source: Source,
    pub(super) start: Start,
    pub(super) end: Option<End>,
    pub(super) functions: Vec<FunctionInfo>,
    pub(super) objects: Vec<ObjectRecord>,
    pub(super) addresses: AddressNames,
    pub(super) threads: HashMap<ThreadId, ThreadRecord>,
    pub(super) nodes: Vec<Node>,
    pub(super) chunks: Vec<ChunkEntry>,
    pub(super) unreadable: u64,
    /// Times of which blocks are missing.
    pub(super) missing: Vec<Range<Nanos>>,
    pub(super) room: NamesRoom,
    /// The limit on the calls of this file.
    pub(super) calls: CallsRoom,
}

impl Recording {
    /// Reads everything but the calls. A file that claims more calls than ctrace writes in so many
    /// bytes is refused.
    pub fn open(source: impl ReadAt + Send + 'static) -> Result<Self, RecordError> {
        let source = Source::of(source)?;
        let calls = CallsRoom::of_file(source.len()?);
        Self::open_with(source, calls)
    }

    /// Like [`open`](Self::open), but accepts up to `most_calls` calls.
    pub fn open_up_to(
        source: impl ReadAt + Send + 'static,
        most_calls: u64,
    ) -> Result<Self, RecordError> {
        let source = Source::of(source)?;
        let calls = CallsRoom::of_file(source.len()?).up_to(most_calls);
        Self::open_with(source, calls)
    }

    fn open_with(source: Source, calls: CallsRoom) -> Result<Self, RecordError> {
        let mut header = [0; block::FILE_HEADER];
        let read = source.read_at(&mut header, 0)?;
        block::check_file_header(&header[..read])?;
        let Blocks { index, mut gaps } = match Index::read(&source) {
            Ok(Some(index)) => Blocks { index, gaps: Vec::new() },
            Ok(None) | Err(RecordError::Malformed(_)) => scan(&source)?,
            Err(error) => return Err(error),
        };
        let mut recording = Self::empty(source, calls);
        let mut started = false;
        let ends = index.0.iter().skip(1).map(|entry| entry.offset);
        let ends = ends.chain([recording.source.len()?]).collect::<Vec<_>>();
        for (entry, end) in index.0.iter().zip(ends) {
            match recording.read_block(entry, end) {
                Ok(()) => started |= entry.kind == BlockKind::Start,
                // Later blocks depend on the damaged one.
                Err(RecordError::Malformed(_)) if started => {
                    gaps.retain(|gap| gap.start < entry.offset);
                    gaps.push(entry.offset..recording.source.len()?);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        if !started && index.0.is_empty() {
            return Err(RecordError::Empty);
        } else if !started {
            return Err(RecordError::Malformed("the block that it begins with is damaged"));
        }
        let (start, end) = (recording.start.start_ns, recording.end.as_ref().map(|end| end.end_ns));
        recording.missing = missing(&index, &gaps, &recording.chunks, (start, end));
        let gaps = gaps.iter().map(|gap| gap.end.saturating_sub(gap.start));
        recording.unreadable = gaps.fold(recording.unreadable, u64::saturating_add);
        Ok(recording)
    }

    /// Makes one of which nothing was read yet.
    pub(super) fn empty(source: Source, calls: CallsRoom) -> Self {
        Self {
            source,
            start: Start::default(),
            end: None,
            functions: Vec::new(),
            objects: Vec::new(),
            addresses: AddressNames::default(),
            threads: HashMap::new(),
            nodes: vec![Node::root()],
            chunks: Vec::new(),
            unreadable: 0,
            missing: Vec::new(),
            room: NamesRoom::default(),
            calls,
        }
    }

    /// Reads a block, which ends at `end` at the latest.
    fn read_block(&mut self, entry: &Entry, end: u64) -> Result<(), RecordError> {
        if entry.kind == BlockKind::Index || entry.kind.is_of_values() {
            return Ok(());
        }
        if entry.kind == BlockKind::Calls && entry.window.end > 0 {
            let stored = (end - entry.offset).saturating_sub(block::BLOCK_HEADER as u64);
            return self.push_chunk(ChunkEntry::new(entry, end), stored);
        }
        let header = self.header(entry.offset, entry.kind, end)?;
        let contents = block::contents_at(&self.source, entry.offset, &header);
        if entry.kind == BlockKind::Calls {
            return self.add_chunk(&ChunkEntry::new(entry, end), &header, contents);
        }
        let contents = contents?;
        if entry.kind.defines() {
            self.room.take_block(&header, &contents)?;
        }
        match entry.kind {
            BlockKind::Start => self.start = json(&contents)?,
            BlockKind::End => self.end = Some(json(&contents)?),
            BlockKind::Names => self.add_names(json(&contents)?)?,
            BlockKind::Paths => self.add_paths(&contents)?,
            BlockKind::Calls
            | BlockKind::Index
            | BlockKind::Payloads
            | BlockKind::TypedPayloads
            | BlockKind::LongPayloads => {}
        }
        Ok(())
    }

    /// Adds a chunk that no index lists. If it is damaged, only its own calls are lost.
    fn add_chunk(
        &mut self,
        entry: &ChunkEntry,
        header: &BlockHeader,
        contents: Result<Vec<u8>, RecordError>,
    ) -> Result<(), RecordError> {
        match contents.and_then(|contents| self.decode(header, &contents)) {
            Ok(chunk) => {
                let (from, to, calls) = (chunk.from, chunk.to, chunk.len() as u64);
                let entry = ChunkEntry { from, to, calls, ..*entry };
                self.push_chunk(entry, header.stored.into())?;
            }
            Err(RecordError::Malformed(_)) => self.unreadable += u64::from(header.stored),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Adds a chunk of so many bytes, if it comes after the others: sums over time would count twice what
    /// lies in two.
    fn push_chunk(&mut self, entry: ChunkEntry, bytes: u64) -> Result<(), RecordError> {
        let last = self.chunks.last().map_or(Nanos::ZERO, |last| last.to);
        if entry.from < last || entry.to < entry.from {
            self.unreadable += bytes;
            return Ok(());
        }
        self.calls.add(entry.calls)?;
        self.chunks.push(entry);
        Ok(())
    }

    fn decode(&self, header: &BlockHeader, contents: &[u8]) -> Result<Chunk, RecordError> {
        extent::check(contents, header.stored)?;
        Chunk::decode(contents, self.nodes.len(), self.functions.len())
    }

    /// Reads the header of a block of this kind, which ends at `end` at the latest.
    fn header(&self, offset: u64, kind: BlockKind, end: u64) -> Result<BlockHeader, RecordError> {
        let header = block::header_at(&self.source, offset)?
            .filter(|header| header.kind == Some(kind))
            .ok_or(RecordError::Malformed("a block is not where the index says"))?;
        ends_before(header, offset, end)
    }

    pub(super) fn add_names(&mut self, names: Names) -> Result<(), RecordError> {
        if !names.functions.iter().all(has_sound_values) {
            return Err(RecordError::Malformed("a function has more values than any should"));
        }
        self.functions.extend(names.functions);
        names.costs.iter().for_each(|new| new.apply(&mut self.functions));
        self.objects.extend(names.objects);
        names.addresses.into_iter().for_each(|record| self.addresses.add(record));
        self.threads.extend(names.threads.into_iter().map(|thread| (thread.id, thread)));
        Ok(())
    }

    pub(super) fn add_paths(&mut self, mut contents: &[u8]) -> Result<(), RecordError> {
        let bytes = &mut contents;
        while !bytes.is_empty() {
            let (parent, tag) = (take_u32(bytes)?, take(bytes)?);
            let func = FuncId(u32::try_from(tag >> 1).unwrap_or(u32::MAX));
            let known = (parent as usize) < self.nodes.len() && func.index() < self.functions.len();
            if !known {
                return Err(RecordError::Malformed("a path leads nowhere"));
            }
            let node = Node::new(func, parent, &self.nodes[parent as usize], tag & 1 == 1);
            self.room.take_path(&node, self.functions.len())?;
            self.nodes.push(node);
        }
        Ok(())
    }

    /// Returns the target, the machine and the settings.
    pub fn start(&self) -> &Start {
        &self.start
    }

    /// Returns how it ended; `None` if it was not ended: ctrace was killed, or is still recording.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// Returns its start and end. It starts at arming, or where older calls were dropped.
    pub fn period(&self) -> (Nanos, Nanos) {
        let last = self.chunks.last().map_or(self.start.start_ns, |chunk| chunk.to);
        (self.start.start_ns, self.end.as_ref().map_or(last, |end| end.end_ns.max(last)))
    }

    /// Returns the functions, indexed by [`FuncId`].
    pub fn functions(&self) -> &[FunctionInfo] {
        &self.functions
    }

    /// Returns the programs and libraries that contain the functions.
    pub fn objects(&self) -> &[ObjectRecord] {
        &self.objects
    }

    /// Returns a thread by its id in this recording.
    pub fn thread(&self, id: ThreadId) -> Option<&ThreadRecord> {
        self.threads.get(&id)
    }

    /// Returns all threads, in no particular order.
    pub fn threads(&self) -> impl Iterator<Item = &ThreadRecord> {
        self.threads.values()
    }

    /// Returns a node of the tree of call paths; `None` for the root, 0.
    pub fn path(&self, path: u32) -> Option<PathNode> {
        let node = self.nodes.get(path as usize).filter(|_| path != ROOT_PATH)?;
        Some(PathNode { function: node.func, parent: node.parent, is_other: node.other })
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the index entries of the chunks, in order of time.
    pub fn chunks(&self) -> &[ChunkEntry] {
        &self.chunks
    }

    /// Returns the number of all calls that have ended, as the index tells it.
    pub fn ended_calls(&self) -> u64 {
        self.chunks.iter().map(|entry| entry.calls).sum()
    }

    /// Reads a chunk's calls.
    pub fn chunk(&self, entry: &ChunkEntry) -> Result<Chunk, RecordError> {
        let header = self.header(entry.offset, BlockKind::Calls, entry.end)?;
        let contents = block::contents_at(&self.source, entry.offset, &header)?;
        let chunk = self.decode(&header, &contents)?;
        match (chunk.from, chunk.to, chunk.len() as u64) == (entry.from, entry.to, entry.calls) {
            true => Ok(chunk),
            false => Err(RecordError::Malformed("a chunk is not what the index says")),
        }
    }

    /// True if calls may have values.
    pub fn has_values(&self) -> bool {
        self.functions.iter().any(|function| !function.values.is_empty())
    }

    /// Returns the values of a payload with their names, except absent ones.
    pub fn named_values(&self, payload: &Payload) -> NamedValues {
        let info = self.functions.get(payload.function.index());
        let names = info.iter().flat_map(|info| &info.values).map(|value| value.name.clone());
        let named = names.zip(payload.values.iter().cloned()).enumerate();
        let there = named.filter(|(place, _)| payload.absent >> place & 1 == 0);
        NamedValues(there.map(|(_, value)| value).collect())
    }

    /// Returns the values of a chunk's calls, those of calls still open included.
    pub(crate) fn values_by_call(&self, payloads: &Payloads) -> ValuesByCall {
        let each = payloads.each.iter();
        each.map(|of| ((of.thread, of.time.0, of.function), self.call_values(of))).collect()
    }

    /// Returns the same as [`Self::named_values`], with the result known as such.
    fn call_values(&self, payload: &Payload) -> CallValues {
        let info = self.functions.get(payload.function.index());
        let values = info.map_or(&[][..], |info| &info.values);
        let last = values.len().min(payload.values.len()).checked_sub(1);
        let has_result =
            last.is_some_and(|last| values[last].is_result && payload.absent >> last & 1 == 0);
        CallValues { named: self.named_values(payload), has_result }
    }

    /// Reads the values of a chunk's calls.
    pub fn payloads(&self, entry: &ChunkEntry) -> Result<Payloads, RecordError> {
        match self.payload_block(entry)? {
            Some((header, contents)) => Payloads::decode(&contents, header.stored, &self.functions),
            None => Ok(Payloads::default()),
        }
    }

    /// Returns the number of a chunk's payloads that were lost, and 1 if they cannot be read.
    pub(crate) fn payloads_lost(&self, entry: &ChunkEntry) -> u64 {
        let lost = self.payload_block(entry).and_then(|block| match block {
            Some((_, contents)) => Payloads::decode_lost(&contents),
            None => Ok(0),
        });
        lost.unwrap_or(1)
    }

    /// Reads the block of payloads behind a chunk, if there is one.
    fn payload_block(
        &self,
        entry: &ChunkEntry,
    ) -> Result<Option<(BlockHeader, Vec<u8>)>, RecordError> {
        if !self.has_values() {
            return Ok(None);
        }
        let behind = self.header(entry.offset, BlockKind::Calls, entry.end)?.end(entry.offset);
        if behind == entry.end {
            return Ok(None);
        }
        match block::header_at(&self.source, behind)? {
            Some(header) if header.kind.is_some_and(BlockKind::is_of_values) => {
                let header = ends_before(header, behind, entry.end)?;
                let contents = block::contents_at(&self.source, behind, &header)?;
                Ok(Some((header, contents)))
            }
            Some(_) => Ok(None),
            None => Err(RecordError::Malformed("what follows a chunk is damaged")),
        }
    }
}

impl Recording {
    /// Returns the number of bytes that cannot be read: damaged ones, and those that ctrace was
    /// writing when it died. Damaged chunks that the index lists are not included.
    pub fn unreadable(&self) -> u64 {
        self.unreadable
    }
}

/// Refuses a block at `offset` that does not end at `end` or before: otherwise a file of many
/// headers could be read once for each of them.
fn ends_before(header: BlockHeader, offset: u64, end: u64) -> Result<BlockHeader, RecordError> {
    match header.end(offset) <= end {
        true => Ok(header),
        false => Err(RecordError::Malformed("a block does not end before the next one")),
    }
}

/// Checks the bounds on values. Their names and units must be short: reports repeat them with every
/// call. None must look like another value.
fn has_sound_values(function: &FunctionInfo) -> bool {
    let is_short = |name: &str| name.len() <= LONGEST_VALUE_NAME;
    function.condition.as_ref().is_none_or(|text| text.len() <= LONGEST_CONDITION)
        && function.values.len() <= MAX_VALUES
        && function.values.iter().all(|value| {
            let mut names = value.names.iter();
            is_short(&value.name)
                && value.unit.as_deref().is_none_or(is_short)
                && names.all(|one| is_short(&one.name) && is_word(&one.name))
        })
}

pub(super) fn json<'a, T: serde::Deserialize<'a>>(contents: &'a [u8]) -> Result<T, RecordError> {
    serde_json::from_slice(contents).map_err(|_| RecordError::Malformed("names cannot be read"))
}
