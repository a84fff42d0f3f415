//! What is shown: a recording, or the newest calls of a session that goes on.

use super::{NoTimeline, saved::Saved};
use crate::session::keep::{live_calls::LiveLook, newest::Held};
use ctrace_core::{
    recording::{End, Recording, Writer},
    timeline::{Draft, Timeline},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// A recording of fewer calls has no draft: all of them are read soon.
const LEAST_OF_DRAFT: u64 = 2_000_000;
/// The time for which chunks are read for a draft. The program's start, a picture, and its way take some more.
const FOR_DRAFT: Duration = Duration::from_millis(250);
/// The part of all chunks that are read for a draft, if they take less time. They are read again.
const PART_OF_DRAFT: usize = 8;

/// A recording and its timeline, as soon as all calls were read.
pub(super) struct Source {
    pub(super) recording: Recording,
    pub(super) timeline: OnceLock<Result<Timeline, NoTimeline>>,
    /// What is shown until then.
    draft: Mutex<Option<Arc<Draft>>>,
    /// The number of calls that were read so far.
    pub(super) read: AtomicU64,
    /// Where the timeline is kept.
    saved: Option<Saved>,
}

impl Source {
    pub(super) fn new(recording: Recording, saved: Option<Saved>) -> Arc<Self> {
        let (timeline, draft, read) = (OnceLock::new(), Mutex::default(), AtomicU64::new(0));
        Arc::new(Self { recording, timeline, draft, read, saved })
    }

    /// Takes the timeline that was kept, or reads some chunks of a large recording, to have something to show until all
    /// calls were read.
    pub(super) fn sketch(&self) {
        let kept = self.saved.as_ref().and_then(|saved| saved.read(&self.recording));
        if let Some(timeline) = kept {
            self.read.store(self.recording.ended_calls(), Ordering::Relaxed);
            // Only one thread sets it.
            let _ = self.timeline.set(Ok(timeline));
            return;
        }
        if !is_large(&self.recording) {
            return;
        }
        let begin = Instant::now();
        let most = self.recording.chunks().len() / PART_OF_DRAFT;
        self.sketch_until(|read| read >= most || begin.elapsed() >= FOR_DRAFT);
    }

    /// Reads chunks until `is_enough` of their number.
    pub(super) fn sketch_until(&self, is_enough: impl Fn(usize) -> bool + Sync) {
        let draft = Draft::new(&self.recording);
        // Without a draft, a page waits.
        let read = catch_unwind(AssertUnwindSafe(|| draft.read(&self.recording, is_enough)));
        if read.is_ok() {
            *self.drafted() = Some(Arc::new(draft));
        }
    }

    /// Reads all calls, if that is necessary.
    pub(super) fn build(&self) {
        if self.timeline.get().is_some() {
            return;
        }
        let draft = self.draft();
        let build = || match &draft {
            Some(draft) => Timeline::build_behind(&self.recording, draft, &self.read),
            None => Timeline::build(&self.recording, &self.read),
        };
        // Of a panic nothing is left but the source, which is only read.
        let built = match catch_unwind(AssertUnwindSafe(build)) {
            Ok(built) => built.map_err(NoTimeline::Refused),
            Err(_) => Err(NoTimeline::Failed),
        };
        // Only one thread sets it.
        let _ = self.timeline.set(built);
        *self.drafted() = None;
        self.keep();
    }

    /// Keeps the timeline for the next page.
    fn keep(&self) {
        // What could not be read now may be readable the next time.
        if let (Some(saved), Some(Ok(timeline))) = (&self.saved, self.timeline.get())
            && timeline.unreadable_calls() == 0
            && let Err(error) = saved.write(timeline, &self.recording)
        {
            tracing::warn!("the timeline is not kept for the next time: {error}");
        }
    }

    /// Returns what is shown until all calls were read, if there is anything.
    pub(super) fn draft(&self) -> Option<Arc<Draft>> {
        self.drafted().clone()
    }

    fn drafted(&self) -> MutexGuard<'_, Option<Arc<Draft>>> {
        self.draft.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if reading all calls takes long enough to be noticed.
pub(super) fn is_large(recording: &Recording) -> bool {
    recording.ended_calls() >= LEAST_OF_DRAFT
}

/// The source of the answers. That of a live page is replaced whenever there are new calls.
pub(super) struct Shown {
    source: RwLock<Option<Arc<Source>>>,
    is_live: bool,
    has_ended: AtomicBool,
}

impl Shown {
    pub(super) fn recording(source: Arc<Source>) -> Self {
        let source = RwLock::new(Some(source));
        Self { source, is_live: false, has_ended: AtomicBool::new(true) }
    }

    pub(super) fn live() -> Self {
        Self { source: RwLock::default(), is_live: true, has_ended: AtomicBool::new(false) }
    }

    /// Returns what is shown now; a live page has nothing at first.
    pub(super) fn now(&self) -> Option<Arc<Source>> {
        self.source.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether the session has ended, if this is the page of one.
    pub(super) fn has_ended(&self) -> Option<bool> {
        self.is_live.then(|| self.has_ended.load(Ordering::Relaxed))
    }

    fn show(&self, source: Arc<Source>) {
        let before = self.source.write().unwrap_or_else(PoisonError::into_inner).replace(source);
        // It may be large: nobody waits while it goes.
        drop(before);
    }
}

impl Shown {
    /// Shows new calls until the session ends. Making a timeline takes at most a fifth of the time.
    pub(super) fn follow(&self, look: &LiveLook) {
        const SHORTEST: Duration = Duration::from_millis(200);
        // Nothing new comes after a panic either.
        let _ended = Ended(&self.has_ended);
        while let Some((held, end)) = look.next() {
            let began = Instant::now();
            match source_of(&held, &end) {
                Ok(source) => self.show_if_better(source),
                Err(error) => tracing::warn!("the newest calls cannot be shown: {error:#}"),
            }
            std::thread::sleep((4 * began.elapsed()).max(SHORTEST));
        }
    }

    /// Shows a source. One without a timeline is shown only if there is no other: it says why.
    fn show_if_better(&self, source: Arc<Source>) {
        match source.timeline.get() {
            Some(Err(error)) if self.now().is_some() => {
                tracing::warn!("the newest calls cannot be shown: {error}");
            }
            _ => self.show(source),
        }
    }
}

/// Says at last that nothing new will come.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn source_of(held: &Held, end: &End) -> anyhow::Result<Arc<Source>> {
    let writer = Writer::uncompressed(Vec::new(), &held.start)?;
    let source = Source::new(Recording::open(held.write_to(writer, end)?)?, None);
    source.build();
    Ok(source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctrace_core::{recording::Start, timeline::TimelineError};

    /// Returns a source of as many functions, which has no timeline if there is an error.
    fn source(end_ns: u64, error: Option<TimelineError>) -> Arc<Source> {
        let writer = Writer::uncompressed(Vec::new(), &Start::default()).expect("in memory");
        let end = End { end_ns: ctrace_core::units::Nanos(end_ns), ..End::default() };
        let file = writer.finish(&end).expect("in memory");
        let source = Source::new(Recording::open(file).expect("a recording"), None);
        match error {
            Some(error) => _ = source.timeline.set(Err(NoTimeline::Refused(error))),
            None => source.build(),
        }
        source
    }

    #[test]
    fn a_source_without_a_timeline_replaces_none_that_has_one() {
        let shown = Shown::live();
        let length = |shown: &Shown| shown.now().map(|now| now.recording.period().1.0);
        let refused = || Some(TimelineError::TooManyThreads);
        shown.show_if_better(source(3, refused()));
        assert_eq!(length(&shown), Some(3), "it says why");
        shown.show_if_better(source(5, None));
        shown.show_if_better(source(7, refused()));
        assert_eq!(length(&shown), Some(5));
        shown.show_if_better(source(9, None));
        assert_eq!(length(&shown), Some(9));
    }
}
