//! The files of a recording: one after the other, or a single one with only the newest calls.

use super::{
    files::{Replace, check_later, numbered, open},
    progress::RecordingProgress,
};
use crate::files::{FileId, Place};
use anyhow::{Context, bail};
use ctrace_core::recording::{Block, BlockKind, Definitions, End, Framed, Start, Writer};
use ctrace_core::units::Nanos;
use rustix::fs::OFlags;
use std::{fs::File, io::BufWriter, path::PathBuf, sync::Arc};

/// The limit to the size of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Limit {
    #[default]
    None,
    /// Keep the newest calls in this many bytes.
    Newest(u64),
    /// Start a new file before one is larger than `at`, and keep this many.
    Rotate { at: u64, keep: Option<u32> },
}

/// The greatest size of a file's ending.
const ENDING: u64 = 4 << 10;
/// The room left for chunks without calls, so that the last one, which often has none, starts no
/// file.
const WITHOUT_CALLS: u64 = 4 << 10;

/// The limit to names in a row that others have taken.
const MOST_TAKEN: u32 = 1_000;

const NOT_BEGUN: &str = "the recording has not begun";

/// The current file, and those before it.
pub(super) struct Segments {
    place: Place,
    replace: Replace,
    limit: Limit,
    writer: Option<Writer<BufWriter<File>>>,
    /// The current file, opened for reading.
    file: File,
    /// True if there was no file of the name before.
    is_new: bool,
    /// Names and paths that the next chunk needs: they go into the same file as the chunk.
    pending: Vec<Framed>,
    /// True if the current file has chunks.
    has_chunks: bool,
    start: Start,
    /// The meanings of ids: each file begins with them.
    definitions: Definitions,
    /// Number of the current file.
    number: u32,
    /// Finished files that are kept.
    done: Vec<Done>,
    /// The start of the kept calls, if older ones were dropped.
    newest_from: Option<Nanos>,
    progress: Arc<RecordingProgress>,
}

struct Done {
    number: u32,
    id: FileId,
    bytes: u64,
    /// The end of its last chunk.
    until: Nanos,
}

/// The summary of a finished recording.
pub(crate) struct RecordingSummary {
    /// Bytes of all files.
    pub bytes: u64,
    /// Oldest first.
    pub files: Vec<PathBuf>,
    /// Calls that ended before this were dropped.
    pub newest_from: Option<Nanos>,
}

impl Segments {
    pub(super) fn create(
        place: Place,
        replace: Replace,
        limit: Limit,
        progress: Arc<RecordingProgress>,
    ) -> anyhow::Result<Self> {
        let is_new = place.id().is_none();
        let file = open(&place, replace)?;
        if matches!(limit, Limit::Rotate { .. }) {
            check_later(&place, replace)?;
        }
        Ok(Self {
            place,
            replace,
            limit,
            writer: None,
            file,
            is_new,
            pending: Vec::new(),
            has_chunks: false,
            start: Start::default(),
            definitions: Definitions::default(),
            number: 0,
            done: Vec::new(),
            newest_from: None,
            progress,
        })
    }

    pub(super) fn begin(&mut self, start: Start) -> anyhow::Result<()> {
        self.start = start;
        self.file.set_len(0)?;
        let file = self.file.try_clone()?;
        self.writer = Some(Writer::new(BufWriter::new(file), &self.start)?);
        Ok(())
    }

    /// Empties the file, which has no calls, and removes it if there was none before.
    pub(super) fn discard(mut self) -> anyhow::Result<()> {
        drop(self.writer.take());
        self.file.set_len(0)?;
        self.remove_if_new();
        Ok(())
    }

    /// Removes a file that has not begun, if there was none before.
    pub(super) fn remove_if_new(self) {
        if self.is_new {
            self.place.remove_if_empty(&self.file);
        }
    }

    pub(super) fn write(&mut self, block: Block) -> anyhow::Result<()> {
        let framed = self.writer.as_ref().map(|writer| writer.frame(&block)).context(NOT_BEGUN)?;
        if block.kind != BlockKind::Calls {
            self.definitions.note(&block);
            self.pending.push(framed);
            return Ok(());
        }
        self.make_room(framed.size(), block.calls() > 0)?;
        let writer = self.writer.as_mut().context(NOT_BEGUN)?;
        self.pending.drain(..).try_for_each(|names| writer.add(names))?;
        writer.add(framed)?;
        writer.flush()?;
        self.has_chunks = true;
        self.definitions.note(&block);
        self.count();
        Ok(())
    }

    /// Makes room for a chunk of this size.
    fn make_room(&mut self, chunk: u64, has_calls: bool) -> anyhow::Result<()> {
        let (Limit::Newest(limit) | Limit::Rotate { at: limit, .. }) = self.limit else {
            return Ok(());
        };
        let ended = self.writer.as_ref().map_or(0, Writer::size_when_ended);
        let pending: u64 = self.pending.iter().map(Framed::size).sum();
        let left = ENDING + if has_calls { WITHOUT_CALLS } else { 0 };
        if !self.has_chunks || ended + pending + chunk + left <= limit {
            return Ok(());
        }
        match self.limit {
            Limit::Rotate { keep, .. } => self.rotate(keep),
            _ => self.shrink(limit.saturating_sub(chunk + left)),
        }
    }

    fn count(&self) {
        let here = self.writer.as_ref().map_or(0, Writer::written);
        self.progress.have_written(self.bytes_done() + here);
    }

    fn bytes_done(&self) -> u64 {
        self.done.iter().map(|done| done.bytes).sum()
    }

    /// Ends the current file and starts the next.
    fn rotate(&mut self, keep: Option<u32>) -> anyhow::Result<()> {
        let (number, next, file) = self.open_next()?;
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let (size, from) = (writer.written(), writer.last_time());
        let goes_on = format!("the recording goes on in {}", next.path().display());
        let target = self.start.target.clone();
        let end = End { end_ns: from, target, notes: vec![goes_on], ..End::default() };
        writer.finish(&end)?.into_inner().map_err(|error| error.into_error())?;
        let (done, id) = (std::mem::replace(&mut self.number, number), FileId::of(&self.file)?);
        self.done.push(Done { number: done, id, bytes: size, until: from });
        self.file = file;
        self.file.set_len(0)?;
        let file = self.file.try_clone()?;
        let start = Start { start_ns: from, ..self.start.clone() };
        let mut writer = Writer::new(BufWriter::new(file), &start)?;
        self.definitions.forget_threads_before(from);
        self.definitions.write(&mut writer)?;
        writer.flush()?;
        self.pending.clear();
        self.has_chunks = false;
        self.writer = Some(writer);
        let keep = keep.map_or(usize::MAX, |keep| keep as usize);
        while self.done.len() >= keep {
            let Done { number, id, until, .. } = self.done.remove(0);
            remove(&self.numbered(number), id)?;
            self.newest_from = Some(until);
        }
        Ok(())
    }

    /// Opens the first further file that is not taken. In a folder where others can write, they may
    /// have taken its name, which is no reason to end.
    fn open_next(&self) -> anyhow::Result<(u32, Place, File)> {
        let mut refusal = None;
        for number in (self.number + 1..).take(MOST_TAKEN as usize) {
            let place = self.numbered(number);
            match open(&place, self.replace) {
                Ok(file) => {
                    if let Some(refusal) = refusal {
                        let name = place.path().display();
                        self.progress.remark(format!("{refusal}; the recording goes on in {name}"));
                    }
                    return Ok((number, place, file));
                }
                Err(error) if error.is_taken() => refusal = refusal.or(Some(error)),
                Err(error) => return Err(error.into()),
            }
        }
        match refusal {
            Some(refusal) => bail!("{refusal}; and so with all further names"),
            None => bail!("there are no further numbers"),
        }
    }

    fn numbered(&self, number: u32) -> Place {
        let path = numbered(self.place.path(), number);
        match path.file_name() {
            Some(name) if number > 0 => self.place.sibling(name),
            _ => self.place.clone(),
        }
    }

    /// Replaces the file by one with its newest calls. The new file takes at most `most` bytes, if
    /// names and paths leave room, and the calls about half of that. If ctrace dies meanwhile, the
    /// old file is still there.
    fn shrink(&mut self, most: u64) -> anyhow::Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let room = most.saturating_sub(self.size_without_calls()?);
        let kept = writer.newest_chunks(room.div_ceil(2), room);
        let from = kept.first().map_or(writer.last_time(), |chunk| chunk.from);
        let new = self.place.temporary(OFlags::RDWR)?;
        let file = new.file()?;
        let start = Start { start_ns: from, ..self.start.clone() };
        let mut newer = Writer::new(BufWriter::new(file.try_clone()?), &start)?;
        self.definitions.forget_threads_before(from);
        self.definitions.write(&mut newer)?;
        self.pending.clear();
        for chunk in &kept {
            newer.add(Framed::read(&self.file, chunk)?)?;
        }
        newer.flush()?;
        new.persist(&self.place, FileId::of(&self.file)?)?;
        self.file = file;
        if kept.len() < writer.chunks() {
            self.newest_from = Some(from);
        }
        self.writer = Some(newer);
        Ok(())
    }

    /// Returns the size of a file with all names and paths.
    fn size_without_calls(&self) -> anyhow::Result<u64> {
        let mut writer = Writer::new(std::io::sink(), &self.start)?;
        self.definitions.write(&mut writer)?;
        Ok(writer.size_when_ended())
    }

    pub(super) fn finish(mut self, mut end: End) -> anyhow::Result<RecordingSummary> {
        let writer = self.writer.take().context(NOT_BEGUN)?;
        if let (Limit::Newest(_), Some(from)) = (self.limit, self.newest_from) {
            let before = from.since(self.start.start_ns).0 as f64 / 1e9;
            end.notes.push(format!(
                "only the newest calls are kept, as --max-size says: none that ended in the first \
                 {before:.3} s are here, and functions called only then count as never called"
            ));
        }
        let file = writer.finish(&end)?.into_inner().map_err(|error| error.into_error())?;
        let bytes = self.bytes_done() + file.metadata()?.len();
        self.progress.have_written(bytes);
        let numbers = self.done.iter().map(|done| done.number).chain([self.number]);
        let files = numbers.map(|number| self.numbered(number).path().to_owned()).collect();
        Ok(RecordingSummary { bytes, files, newest_from: self.newest_from })
    }
}

/// Removes a file, unless somebody has moved it away and put another in its place.
fn remove(place: &Place, id: FileId) -> anyhow::Result<()> {
    if place.id() != Some(id) {
        return Ok(());
    }
    place.remove().with_context(|| format!("cannot remove {}", place.path().display()))
}
