//! Reads the exported part of a recording chunk by chunk, as the query sees it, and counts missing
//! data.

use super::{Coverage, Export, ExportError, Options};
use crate::calls::paths::Node;
use crate::recording::replay::Query;
use crate::recording::replay::count::count;
use crate::recording::replay::frame_marks::{MarkedFrames, marked_frames};
use crate::recording::replay::lens::Lens;
use crate::recording::replay::locks::{LockWaits, lock_waits};
use crate::recording::replay::report::period;
use crate::recording::replay::select::{CallReader, Only};
use crate::recording::{Call, Chunk, ChunkEntry, OpenCall, RecordError, Recording, ValuesByCall};
use crate::report::{CallValues, NamedValues};
use crate::units::{FuncId, Nanos, ThreadId};
use std::slice::Iter;

/// The part of a recording that a query chooses, with the query's paths and calls.
pub(super) struct Excerpt<'a> {
    pub(super) recording: &'a Recording,
    pub(super) query: &'a Query,
    pub(super) options: &'a Options<'a>,
    progress: &'a dyn Fn(u64),
    /// True if values are read.
    values: bool,
    lens: Lens<'a>,
}

/// The manner in which a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Timed,
    /// Its end was not seen: the duration reaches to the last event seen inside it.
    Untimed,
    /// Still open: the duration reaches to the end of the recording.
    Open,
}

/// A call with its duration, which `Ended` qualifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallRow {
    pub(super) start: u64,
    pub(super) duration: u64,
    pub(super) path: u32,
    pub(super) ended: Ended,
    /// Its own time, set by [`Excerpt::chunks_with_own`].
    pub(super) own: u64,
}

/// A thread's calls in a chunk, latest first.
pub(super) struct CallRows<'a> {
    open: Iter<'a, OpenCall>,
    calls: Iter<'a, Call>,
    /// The times of these calls, as in [`Only::times`].
    times: Iter<'a, u64>,
    end: u64,
}

impl Iterator for CallRows<'_> {
    type Item = CallRow;

    #[inline]
    fn next(&mut self) -> Option<CallRow> {
        let Some(open) = self.open.next() else {
            let call = self.calls.next()?;
            let own = self.times.next().copied().unwrap_or(0);
            let ended = if call.is_timed() { Ended::Timed } else { Ended::Untimed };
            let (start, duration) = (call.start().0, call.duration().0);
            return Some(CallRow { start, duration, path: call.path(), ended, own });
        };
        let (start, path) = (open.start.0, open.path);
        let duration = self.end.saturating_sub(start);
        let ended = self.times.next().copied().unwrap_or(0);
        let inside = self.open.as_slice().first();
        let inside = inside.map_or(0, |inside| self.end.saturating_sub(inside.start.0));
        let own = duration.saturating_sub(ended).saturating_sub(inside);
        Some(CallRow { start, duration, path, ended: Ended::Open, own })
    }
}

/// A chunk in an export.
pub(super) struct Step<'a> {
    pub(super) chunk: &'a Chunk,
    times: &'a [u64],
    values: &'a ValuesByCall,
    /// The number of calls whose values were lost.
    pub(super) lost_payloads: u64,
    /// For the last chunk: the end of the recording. Calls open then stay open.
    pub(super) end: Option<u64>,
}

impl<'a> Step<'a> {
    /// Returns the values of the call of `function` that began at `start`.
    #[inline]
    pub(super) fn values(
        &self,
        thread: ThreadId,
        start: u64,
        function: FuncId,
    ) -> Option<&'a NamedValues> {
        self.call_values(thread, start, function).map(|values| &values.named)
    }

    /// Returns the same, with the result known as such.
    #[inline]
    pub(super) fn call_values(
        &self,
        thread: ThreadId,
        start: u64,
        function: FuncId,
    ) -> Option<&'a CallValues> {
        if self.values.is_empty() { None } else { self.values.get(&(thread, start, function)) }
    }

    /// Returns the threads with calls, and the calls.
    pub(super) fn rows(&self) -> impl Iterator<Item = (ThreadId, CallRows<'a>)> + use<'a> {
        let (chunk, end, mut times) = (self.chunk, self.end, self.times);
        chunk.threads().iter().map(move |thread| {
            let calls = chunk.calls(thread);
            let (of_thread, rest) = times.split_at(thread.open.len() + calls.len());
            times = rest;
            let (open, of_thread) = match end {
                Some(_) => (thread.open.as_slice(), of_thread),
                None => (&[][..], &of_thread[thread.open.len()..]),
            };
            let (open, calls, times) = (open.iter(), calls.iter(), of_thread.iter());
            (thread.thread, CallRows { open, calls, times, end: end.unwrap_or(0) })
        })
    }
}

impl<'a> Excerpt<'a> {
    /// Without `values`, [`Step::values`] has none.
    pub(super) fn new(export: &'a Export<'a>, values: bool) -> Self {
        let Export { recording, query, ref options, progress } = *export;
        let lens = Lens::new(query, recording.nodes(), recording.functions());
        Self { recording, query, options, progress, values, lens }
    }

    /// Returns the older recording, whose difference the export shows.
    pub(super) fn older(&self) -> Option<Export<'a>> {
        let (recording, query) = self.options.older?;
        Some(Export { recording, query, options: Options::default(), progress: self.progress })
    }

    /// Returns the tree of call paths.
    pub(super) fn nodes(&self) -> &[Node] {
        self.lens.paths.nodes()
    }

    /// Returns the start and end of the exported period.
    pub(super) fn period(&self) -> (Nanos, Nanos) {
        period(self.recording, &self.lens)
    }

    /// Returns whether calls may be at the same node as a call around them.
    pub(super) fn folds_recursion(&self) -> bool {
        self.query.fold_recursion
    }

    /// Returns the frames between marks of this function.
    pub(super) fn marked_frames(&self, function: FuncId) -> Result<MarkedFrames, ExportError> {
        let found = marked_frames(self.recording, &self.lens, self.entries(), function);
        found.map_err(|_| ExportError::TooMuch)
    }

    /// Returns how many threads waited for each lock over time. This takes passes of its own.
    pub(super) fn lock_waits(&self) -> LockWaits {
        lock_waits(self.recording, &self.lens, self.entries())
    }

    /// Reads all chunks. A damaged one is left out and counted.
    pub(super) fn chunks(
        &self,
        each: impl FnMut(Step<'_>) -> Result<(), ExportError>,
    ) -> Result<Coverage, ExportError> {
        // Whether a call counts is usually known at once, but can depend on later calls.
        let chunks = if self.lens.looks_ahead() { self.entries() } else { &[] };
        let counted = count(self.recording, &self.lens, chunks);
        self.read(CallReader::new(self.recording, &self.lens, &counted), each)
    }

    /// Like [`Self::chunks`], but with the own time of each call.
    pub(super) fn chunks_with_own(
        &self,
        each: impl FnMut(Step<'_>) -> Result<(), ExportError>,
    ) -> Result<Coverage, ExportError> {
        let counted = count(self.recording, &self.lens, self.entries());
        self.read(CallReader::with_own(self.recording, &self.lens, &counted), each)
    }

    /// Returns the values of a chunk's calls, if they are wanted, and the number of lost ones.
    fn values(&self, entry: &ChunkEntry) -> (ValuesByCall, u64) {
        if !self.values {
            return (ValuesByCall::new(), self.recording.payloads_lost(entry));
        }
        let payloads = self.recording.payloads(entry);
        let lost = payloads.as_ref().map_or(1, |payloads| payloads.lost);
        (self.recording.values_by_call(&payloads.unwrap_or_default()), lost)
    }

    fn entries(&self) -> &'a [ChunkEntry] {
        self.lens.chunks(self.recording.chunks())
    }

    fn read(
        &self,
        mut selected: CallReader<'_>,
        mut each: impl FnMut(Step<'_>) -> Result<(), ExportError>,
    ) -> Result<Coverage, ExportError> {
        let mut told = Coverage::of(self.recording);
        let entries = self.entries();
        for (place, entry) in entries.iter().enumerate() {
            let is_last = place + 1 == entries.len();
            if is_last || self.lens.is_in_window(entry.to.0) {
                match selected.only(entry) {
                    Ok(Only { chunk, times }) => {
                        told.add(self.nodes(), self.recording.functions(), &chunk);
                        let end = is_last.then(|| self.period().1.0);
                        if end.is_some() {
                            told.add_open(
                                chunk.threads().iter().map(|t| t.open.len() as u64).sum(),
                            );
                        }
                        let (values, lost_payloads) = self.values(entry);
                        told.lost.payloads = told.lost.payloads.saturating_add(lost_payloads);
                        let (chunk, times, values) = (&chunk, &times, &values);
                        each(Step { chunk, times, values, lost_payloads, end })?;
                    }
                    Err(RecordError::Malformed(_)) => {
                        told.unreadable_calls = told.unreadable_calls.saturating_add(entry.calls);
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            (self.progress)(entry.calls);
        }
        Ok(told)
    }
}
