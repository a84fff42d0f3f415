//! Keeps every call of a session that reports once, for exact numbers. The calls are a recording
//! without a name, in memory as far as `--spool` allows and in a temporary file beyond. Those so far can be
//! read meanwhile.

use super::{behind::Behind, one_function::frame_function, parts::Parts};
use anyhow::bail;
use ctrace_core::{
    engine::ReportMeta,
    recording::{
        Block, End, ReadAt, Recording, Start, Writer,
        replay::{Query, report_with},
    },
    report::{By, FramesAsked, Report},
    units::Nanos,
};
use std::{
    fs::File,
    io::{self, Write},
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

pub(crate) struct Spill {
    max_memory: u64,
    stage: Stage,
}

enum Stage {
    /// Calls do not count yet, or have been reported.
    Idle,
    Writing(Behind<SpillWriter>, Store),
    Full(Writer<Store>),
}

/// The kept calls, and the error after which no more can be kept.
struct SpillWriter {
    writer: Writer<Store>,
    failure: Option<io::Error>,
}

impl Spill {
    pub(crate) fn new(max_memory: u64) -> Self {
        Self { max_memory, stage: Stage::Idle }
    }

    pub(crate) fn begin(&mut self, start_ns: Nanos) -> anyhow::Result<()> {
        let store = Store::new(self.max_memory);
        let start = Start { start_ns, ..Start::default() };
        let writer = Writer::uncompressed(store.clone(), &start).map_err(no_room)?;
        let open = move || Ok(SpillWriter { writer, failure: None });
        let write = |kept: &mut SpillWriter, block: Block| {
            kept.failure = kept.writer.write(&block).err();
            Ok(kept.failure.is_none())
        };
        self.stage = Stage::Writing(Behind::start("spill", open, write)?, store);
        Ok(())
    }

    /// Passes on the calls that were written until now, when they are; `None` if some have found no room.
    /// `take` is called on the thread that writes, so it must not take long.
    pub(crate) fn look(&self, take: impl FnOnce(Option<SoFar>) + Send + 'static) {
        match &self.stage {
            Stage::Writing(thread, store) => {
                let store = store.clone();
                // If the thread has failed, whoever asks waits in vain.
                let _ = thread.then(move || take(store.so_far().ok()));
            }
            Stage::Full(_) | Stage::Idle => take(None),
        }
    }

    /// Writes blocks. After a failure nothing more can be kept, but earlier calls can still be
    /// reported.
    pub(crate) fn write(&mut self, blocks: Vec<Block>) -> anyhow::Result<()> {
        match &self.stage {
            Stage::Writing(thread, _) if thread.write(blocks).is_err() => {}
            Stage::Writing(..) | Stage::Full(_) => return Ok(()),
            Stage::Idle => {}
        }
        let (writer, failure) = self.end()?;
        self.stage = Stage::Full(writer);
        failure.map_or(Ok(()), Err)
    }

    /// Stops keeping calls; returns the failure once.
    fn end(&mut self) -> anyhow::Result<(Writer<Store>, Option<anyhow::Error>)> {
        match std::mem::replace(&mut self.stage, Stage::Idle) {
            Stage::Writing(thread, _) => {
                let SpillWriter { writer, failure } = thread.join()?;
                Ok((writer, failure.map(no_room)))
            }
            Stage::Full(writer) => Ok((writer, None)),
            Stage::Idle => bail!("calls do not count yet"),
        }
    }

    /// Returns the calls up to `end_ns`. Later ones are not kept.
    pub(crate) fn take(&mut self, end_ns: Nanos) -> anyhow::Result<Kept> {
        let is_full = matches!(self.stage, Stage::Full(_));
        let (writer, failure) = self.end()?;
        let store = match is_full || failure.is_some() {
            true => writer.into_inner(),
            false => writer.finish(&End { end_ns, ..End::default() }).map_err(no_room)?,
        };
        let note = failure.as_ref().map(stopped_early);
        Ok(Kept { recording: Recording::open(store)?, note })
    }
}

/// All calls of a session.
pub(crate) struct Kept {
    recording: Recording,
    /// Why there are not more.
    note: Option<String>,
}

impl Kept {
    /// Completes what reports on these calls have in common. `frame` names the function whose calls
    /// are frames, or the mark between frames.
    pub(crate) fn prepare(&self, meta: &mut ReportMeta, frame: Option<&str>) {
        meta.notes.extend(self.note.clone());
        let of = |pattern| frame_function(pattern, self.recording.functions());
        match frame.map(of).transpose() {
            Ok(function) => {
                meta.extras.frames =
                    function.map(|function| FramesAsked { function, budget: None });
            }
            Err(error) => meta.notes.push(format!("there are no frames: {error}")),
        }
    }

    pub(crate) fn report(&self, query: &Query, meta: ReportMeta) -> Report {
        report_with(&self.recording, query, meta)
    }

    /// Returns the parts of all calls. `whole` is the report on these. Why there are none is a note
    /// of that report: the calls are worth it all the same.
    pub(crate) fn parts(&self, by: Option<&By>, whole: &mut Report) -> Parts {
        let of = |by| Parts::of(&self.recording, by, &Query::default(), whole);
        let parts = by.map(of).transpose();
        let parts = parts.unwrap_or_else(|error| Some(Parts::none(error.to_string())));
        let parts = parts.unwrap_or_default();
        whole.notes.extend(parts.none.iter().map(|why| format!("there are no parts: {why}")));
        parts
    }
}

fn no_room(error: io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context(format!(
        "no room for more calls in {} (TMPDIR says where, --spool how much stays in memory)",
        folder().display()
    ))
}

/// Returns the note for a report on this failure.
pub(crate) fn stopped_early(failure: &anyhow::Error) -> String {
    format!("tracing stopped early: {failure:#}")
}

/// Storage in memory, and then in a file that nobody else sees. Copies share it.
#[derive(Clone)]
struct Store(Arc<RwLock<Stored>>);

struct Stored {
    memory: Vec<u8>,
    max_memory: u64,
    file: Option<File>,
}

/// The bytes that were stored by some time.
pub(crate) struct SoFar {
    store: Store,
    len: u64,
}

impl Store {
    fn new(max_memory: u64) -> Self {
        Self(Arc::new(RwLock::new(Stored { memory: Vec::new(), max_memory, file: None })))
    }

    fn so_far(self) -> io::Result<SoFar> {
        let len = self.len()?;
        Ok(SoFar { store: self, len })
    }

    fn stored(&self) -> RwLockReadGuard<'_, Stored> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Store {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stored = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let all = (stored.memory.len() + bytes.len()) as u64;
        if stored.file.is_none() && all > stored.max_memory {
            let mut file = temporary()?;
            file.write_all(&stored.memory)?;
            stored.memory = Vec::new();
            stored.file = Some(file);
        }
        match &mut stored.file {
            Some(file) => file.write(bytes),
            None => stored.memory.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ReadAt for Store {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let stored = self.stored();
        match &stored.file {
            Some(file) => ReadAt::read_at(file, bytes, offset),
            None => stored.memory.read_at(bytes, offset),
        }
    }

    fn len(&self) -> io::Result<u64> {
        let stored = self.stored();
        match &stored.file {
            Some(file) => ReadAt::len(file),
            None => ReadAt::len(&stored.memory),
        }
    }
}

impl ReadAt for SoFar {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = bytes.len().min(left);
        self.store.read_at(&mut bytes[..wanted], offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.len)
    }
}

/// Returns the folder for the file: not /tmp, which is in memory on many systems.
fn folder() -> PathBuf {
    std::env::var_os("TMPDIR").map_or_else(|| "/var/tmp".into(), PathBuf::from)
}

/// Creates a file without a name: it disappears with the process, however that ends.
fn temporary() -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, open};
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(File::from(open(folder(), flags, Mode::RUSR | Mode::WUSR)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_much_for_memory_is_in_a_file() {
        let mut store = Store::new(10);
        let mut all: Vec<u8> = Vec::new();
        for piece in [&b"seven.."[..], b"three", b"and more", b""] {
            store.write_all(piece).expect("written");
            all.extend(piece);
            let mut read = vec![0; 100];
            let length = store.read_at(&mut read, 2).expect("read");
            assert_eq!(read[..length], all[2..]);
            assert_eq!(ReadAt::len(&store).expect("known"), all.len() as u64);
            assert_eq!(store.stored().file.is_some(), all.len() > 10);
        }
    }

    #[test]
    fn what_comes_later_is_not_in_what_was_there() {
        let mut store = Store::new(10);
        store.write_all(b"before").expect("written");
        let so_far = store.clone().so_far().expect("known");
        for later in [&b"."[..], b" and so much that it is in a file"] {
            store.write_all(later).expect("written");
            let mut read = [0; 100];
            assert_eq!(so_far.read_at(&mut read, 2).expect("read"), 4);
            assert_eq!(&read[..4], b"fore");
            assert_eq!(so_far.read_at(&mut read, 7).expect("read"), 0);
        }
        assert_eq!(ReadAt::len(&so_far).expect("known"), 6);
    }
}
