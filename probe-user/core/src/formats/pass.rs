//! The one way through a recording: chunk by chunk, counting what is missing.

use super::{Export, ExportError, Told};
use crate::record::{Call, Chunk, OpenCall, ReadAt, RecordError};
use crate::units::ThreadId;
use std::slice::Iter;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Timed,
    /// Its end was not seen: the duration goes up to the last event seen inside it.
    Untimed,
    /// Not yet: the duration goes up to the end of the recording.
    Open,
}

/// A call with its duration, whatever that is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) start: u64,
    pub(super) duration: u64,
    pub(super) path: u32,
    pub(super) ended: Ended,
}

/// What a chunk has of a thread, latest first.
pub(super) struct Rows<'a> {
    open: Iter<'a, OpenCall>,
    calls: Iter<'a, Call>,
    end: u64,
}

impl Iterator for Rows<'_> {
    type Item = Row;

    #[inline]
    fn next(&mut self) -> Option<Row> {
        if let Some(open) = self.open.next() {
            let (start, path) = (open.start.0, open.path);
            let duration = self.end.saturating_sub(start);
            return Some(Row { start, duration, path, ended: Ended::Open });
        }
        let call = self.calls.next()?;
        let ended = if call.is_timed() { Ended::Timed } else { Ended::Untimed };
        Some(Row { start: call.start().0, duration: call.duration().0, path: call.path(), ended })
    }
}

/// A chunk on its way through an export.
pub(super) struct Step<'a> {
    pub(super) chunk: &'a Chunk,
    /// For the last chunk: when the recording ended. Calls open then are open for good.
    pub(super) end: Option<u64>,
}

impl<'a> Step<'a> {
    /// The threads with calls, and these.
    pub(super) fn rows(&self) -> impl Iterator<Item = (ThreadId, Rows<'a>)> + use<'a> {
        let (chunk, end) = (self.chunk, self.end);
        chunk.threads().iter().map(move |thread| {
            let open = if end.is_some() { thread.open.as_slice() } else { &[] };
            let calls = chunk.calls(thread).iter();
            (thread.thread, Rows { open: open.iter(), calls, end: end.unwrap_or(0) })
        })
    }
}

/// Reads all chunks. One that is damaged is left out and counted.
pub(super) fn chunks<R: ReadAt>(
    export: &Export<'_, R>,
    mut each: impl FnMut(Step<'_>) -> Result<(), ExportError>,
) -> Result<Told, ExportError> {
    let recording = export.recording;
    let mut told = Told::of(recording);
    let entries = recording.chunks();
    for (place, entry) in entries.iter().enumerate() {
        match recording.chunk(entry) {
            Ok(chunk) => {
                told.add(recording, &chunk);
                let end = (place + 1 == entries.len()).then(|| recording.period().1.0);
                if end.is_some() {
                    told.add_open(chunk.threads().iter().map(|t| t.open.len() as u64).sum());
                }
                each(Step { chunk: &chunk, end })?;
            }
            Err(RecordError::Malformed(_)) => told.unreadable_calls += entry.calls,
            Err(error) => return Err(error.into()),
        }
        (export.progress)(entry.calls);
    }
    Ok(told)
}
