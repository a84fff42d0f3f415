//! One file after the other, or one that keeps the newest calls only.

use super::files::{numbered, open};
use anyhow::Context;
use ctrace_core::record::{Block, BlockKind, Definitions, End, Framed, Start, Writer};
use ctrace_core::units::Nanos;
use std::{
    fs::File,
    io::{BufWriter, ErrorKind},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// What a recording may take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    #[default]
    None,
    /// Keep the newest calls in so many bytes.
    Newest(u64),
    /// Begin another file before one is larger than this, and keep so many.
    Rotate { at: u64, keep: Option<u32> },
}

/// What a file may say about its end.
const ENDING: u64 = 4 << 10;
/// Left for chunks without calls, so that the last one, which often is, begins no file.
const WITHOUT_CALLS: u64 = 4 << 10;

const NOT_BEGUN: &str = "the recording has not begun";

/// The file in the making, and those before it.
pub(super) struct Segments {
    path: PathBuf,
    limit: Limit,
    writer: Option<Writer<BufWriter<File>>>,
    file: Option<File>,
    /// Names and paths that the next chunk needs: they go where it goes.
    pending: Vec<Framed>,
    /// Whether the file in the making has chunks.
    has_chunks: bool,
    start: Start,
    /// What ids stand for: each file begins with it.
    definitions: Definitions,
    /// Number of the file in the making.
    number: u32,
    /// Files that are done and kept: their bytes, and where their last chunks end.
    done: Vec<(u64, Nanos)>,
    /// Where the calls that are kept begin, if older ones were dropped.
    newest_from: Option<Nanos>,
    written: Arc<AtomicU64>,
}

/// What there is of a recording in the end.
pub struct Kept {
    /// Bytes of all files.
    pub bytes: u64,
    /// Oldest first.
    pub files: Vec<PathBuf>,
    /// Older calls were dropped than those that ended after this.
    pub newest_from: Option<Nanos>,
}

impl Segments {
    pub(super) fn create(
        path: &Path,
        limit: Limit,
        written: Arc<AtomicU64>,
    ) -> anyhow::Result<Self> {
        let file = open(path)?;
        Ok(Self {
            path: path.to_owned(),
            limit,
            writer: None,
            file: Some(file),
            pending: Vec::new(),
            has_chunks: false,
            start: Start::default(),
            definitions: Definitions::default(),
            number: 0,
            done: Vec::new(),
            newest_from: None,
            written,
        })
    }

    pub(super) fn begin(&mut self, start: Start) -> anyhow::Result<()> {
        self.start = start;
        let file = self.file.take().context("the recording has begun already")?;
        file.set_len(0)?;
        self.writer = Some(Writer::new(BufWriter::new(file), &self.start)?);
        Ok(())
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

    /// For a chunk of this size.
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
        self.written.store(self.bytes_done() + here, Ordering::Relaxed);
    }

    fn bytes_done(&self) -> u64 {
        self.done.iter().map(|(bytes, _)| bytes).sum()
    }

    /// Ends the file and begins the next.
    fn rotate(&mut self, keep: Option<u32>) -> anyhow::Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let (size, from) = (writer.written(), writer.last_time());
        self.number += 1;
        let path = numbered(&self.path, self.number);
        let goes_on = format!("the recording goes on in {}", path.display());
        let target = self.start.target.clone();
        let end = End { end_ns: from, target, notes: vec![goes_on], ..End::default() };
        writer.finish(&end)?.into_inner().map_err(|error| error.into_error())?;
        self.done.push((size, from));
        let file = open(&path).and_then(|file| Ok((file.set_len(0)?, file).1))?;
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
            let oldest = self.number - self.done.len() as u32;
            remove(&numbered(&self.path, oldest))?;
            self.newest_from = Some(self.done.remove(0).1);
        }
        Ok(())
    }

    /// Replaces the file by one with its newest calls that takes no more than this, if names and paths
    /// leave room, and about half of it. Should ctrace die meanwhile, the old one is there.
    fn shrink(&mut self, most: u64) -> anyhow::Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let room = most.saturating_sub(self.size_without_calls()?);
        let kept = writer.newest_chunks(room.div_ceil(2), room);
        let from = kept.first().map_or(writer.last_time(), |chunk| chunk.from);
        let old = File::open(&self.path)?;
        let mut path = self.path.clone().into_os_string();
        path.push(".part");
        let path = PathBuf::from(path);
        let new =
            File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let start = Start { start_ns: from, ..self.start.clone() };
        let mut newer = Writer::new(BufWriter::new(new), &start)?;
        self.definitions.forget_threads_before(from);
        self.definitions.write(&mut newer)?;
        self.pending.clear();
        for chunk in &kept {
            newer.add(Framed::read(&old, chunk)?)?;
        }
        newer.flush()?;
        std::fs::rename(&path, &self.path)?;
        if kept.len() < writer.chunks() {
            self.newest_from = Some(from);
        }
        self.writer = Some(newer);
        Ok(())
    }

    /// Of a file with all names and paths.
    fn size_without_calls(&self) -> anyhow::Result<u64> {
        let mut writer = Writer::new(std::io::sink(), &self.start)?;
        self.definitions.write(&mut writer)?;
        Ok(writer.size_when_ended())
    }

    pub(super) fn finish(mut self, mut end: End) -> anyhow::Result<Kept> {
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
        self.written.store(bytes, Ordering::Relaxed);
        let oldest = self.number - self.done.len() as u32;
        let files = (oldest..=self.number).map(|number| numbered(&self.path, number)).collect();
        Ok(Kept { bytes, files, newest_from: self.newest_from })
    }
}

/// Somebody else may have moved it away.
fn remove(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
