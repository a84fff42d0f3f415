//! A picture of a large recording before all of its calls were read.
//!
//! The index tells the time of each chunk. So a few chunks that are spread over the whole time are read, as many as there
//! is time for, and stand for those around them ([`estimate`](super::estimate)). All that was not read is marked as
//! such in each picture. A view of a part in which few chunks were read gets some of its own.

use super::about::{self, About};
use super::band::Band;
use super::estimate::{Estimate, show, touching};
use super::of_chunk::OfChunk;
use super::part::{Part, crossing};
use super::picture::{AT_ONCE, Picture, PictureRow, View, at_once};
use super::pyramid::{Facts, ThreadFacts, add_thread};
use crate::recording::{ChunkEntry, Recording};
use crate::stop::Stop;
use crate::units::{Nanos, ThreadId};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Chunks that are kept, at most: a screen has about as many pixels.
const MOST_PARTS: usize = 2_048;
/// Their memory, at most.
const MOST_BYTES: usize = 24 << 20;
/// Pixels for which their cells are short enough, if they show the whole recording, as a power of two.
const PIXELS: u32 = 11;
/// By so many levels their cells may be longer than a pixel.
const SOME_PIXELS: u32 = 2;

/// Some chunks of a recording.
#[derive(Debug)]
pub struct Draft {
    /// The level of their cells.
    level: u32,
    /// The chunks that are of use. The beginning of this list is spread over the time as all of it is.
    order: Vec<usize>,
    /// The same in order.
    chosen: Vec<usize>,
    kept: RwLock<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    parts: BTreeMap<usize, Arc<Part>>,
    threads: BTreeMap<ThreadId, ThreadFacts>,
    calls: u64,
    bytes: usize,
    /// There is no room for more.
    is_full: bool,
}

impl Draft {
    /// Makes one that has nothing yet.
    pub fn new(recording: &Recording) -> Self {
        let (start, end) = recording.period();
        let level = View::new(Vec::new(), start..end, 1 << PIXELS).level;
        let order = spread_out(recording.chunks());
        let mut chosen = order.clone();
        chosen.sort_unstable();
        Self { level, order, chosen, kept: RwLock::default() }
    }

    /// Reads chunks with all threads until `is_enough` of their number, and at least one.
    pub fn read(&self, recording: &Recording, is_enough: impl Fn(usize) -> bool + Sync) {
        let next = AtomicUsize::new(0);
        let read = |_| loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(number) = self.order.get(place).filter(|_| place == 0 || !is_enough(place))
            else {
                break;
            };
            if let Some((part, facts)) = Part::read(recording, *number, self.level) {
                self.insert(part, &facts, recording.chunks()[*number].calls);
            }
        };
        (0..rayon::current_num_threads()).into_par_iter().for_each(read);
    }

    /// True if a chunk is of use, and was not read yet.
    pub(super) fn wants(&self, number: usize) -> bool {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let is_kept = kept.is_full || kept.parts.contains_key(&number);
        !is_kept && self.chosen.binary_search(&number).is_ok()
    }

    pub(super) fn level(&self) -> u32 {
        self.level
    }

    /// Keeps a chunk that was read for something else.
    pub(super) fn keep(&self, recording: &Recording, number: usize, band: Band, of: &OfChunk) {
        let part = Part::new(recording, number, band, of);
        self.insert(part, &of.facts, recording.chunks()[number].calls);
    }

    fn insert(&self, part: Part, facts: &Facts, calls: u64) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let bytes = kept.bytes.saturating_add(part.bytes());
        kept.is_full |= bytes > MOST_BYTES;
        if !kept.is_full {
            (kept.bytes, kept.calls) = (bytes, kept.calls + calls);
            facts.threads.iter().for_each(|(id, of)| add_thread(&mut kept.threads, *id, *of));
            kept.parts.insert(part.number, Arc::new(part));
        }
    }

    /// Describes the recording, with the threads that were seen so far. The numbers of their calls are estimated.
    pub fn about(&self, recording: &Recording) -> About {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let calls = recording.ended_calls();
        let scale = calls as f64 / kept.calls.max(1) as f64;
        let mut threads = kept.threads.clone();
        drop(kept);
        threads.values_mut().for_each(|of| of.calls = (of.calls as f64 * scale).round() as u64);
        About { calls, ..about::of(recording, &threads, 0) }
    }

    /// Returns what is known of a view, or of a view of the same time with longer cells. `None` if it was stopped.
    pub fn picture(
        &self,
        recording: &Recording,
        view: &View,
        stop: &Stop,
    ) -> Option<(View, Picture)> {
        let parts = self.parts(recording, view, stop);
        let level = parts.iter().map(|part| part.level).max().unwrap_or(view.level);
        let view = if level > view.level { view.at_level(level) } else { view.clone() };
        let estimate = Estimate::new(recording, &parts, &view);
        let nodes = recording.nodes();
        let (from, to) = view.times();
        let row = |key| {
            let mut row = PictureRow::default();
            for part in parts.iter().take_while(|_| !stop.is_stopped()) {
                show(&mut row, part, key, &view, nodes);
            }
            crossing(parts.iter().map(|part| &**part), key)
                .filter(|span| span.touches(from, to))
                .for_each(|span| row.push(&span, &view, nodes));
            let mut row = row.finish(&view);
            estimate.fill(&mut row, key, nodes);
            row
        };
        let rows = view.rows.par_iter().map(|key| row(*key)).collect();
        let lost = parts.iter().filter(|part| part.is_lossy).map(|part| (part.from, part.to));
        let missing = recording.missing().iter().map(|time| (time.start.0, time.end.0));
        let mut lost: Vec<_> = lost.chain(missing).collect();
        lost.sort_unstable();
        let lost = view.touched(lost.into_iter());
        let unread = estimate.unread.clone();
        Some((view, Picture { rows, lost, unread })).filter(|_| !stop.is_stopped())
    }

    /// Returns the chunks that show a view, in order of time: those that are kept, with one before and one behind it, or
    /// some that are read for it if that is more exact.
    fn parts(&self, recording: &Recording, view: &View, stop: &Stop) -> Vec<Arc<Part>> {
        let chunks = recording.chunks();
        let Range { start: first, end: last } = touching(chunks, view);
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let shown = kept.parts.range(first..last).map(|(_, part)| part);
        let count = shown.clone().count();
        // Cells of some pixels are better than a few chunks.
        let is_fine = view.level + SOME_PIXELS >= self.level;
        if is_fine && count >= AT_ONCE || view.level >= self.level && count == last - first {
            let before = kept.parts.range(..first).next_back();
            let behind = kept.parts.range(last..).next();
            let [before, behind] = [before, behind].map(|found| found.map(|(_, part)| part));
            return before.into_iter().chain(shown).chain(behind).cloned().collect();
        }
        drop(kept);
        let numbers = spread(first..last, AT_ONCE);
        let numbers = &numbers[..at_once(&numbers, chunks).min(numbers.len())];
        let read = |number: &usize| {
            let part = (!stop.is_stopped()).then(|| Part::read(recording, *number, view.level))?;
            part.map(|(part, _)| Arc::new(part))
        };
        numbers.par_iter().filter_map(read).collect()
    }
}

/// Returns up to so many numbers of a range.
fn spread(range: Range<usize>, most: usize) -> Vec<usize> {
    let count = range.len().min(most);
    (0..count).map(|place| range.start + range.len() * (2 * place + 1) / (2 * count)).collect()
}

/// Returns the numbers of chunks that are spread over the time.
fn spread_out(chunks: &[ChunkEntry]) -> Vec<usize> {
    let (Some(first), Some(last)) = (chunks.first(), chunks.last()) else { return Vec::new() };
    let length = u128::from(last.to.since(first.from).0);
    let mut seen = HashSet::new();
    let number = |place: u32| {
        // With its bits in reverse, each place is between two before.
        let place = u128::from(place.reverse_bits() >> (u32::BITS - PIXELS));
        let time = Nanos(first.from.0 + ((length * (2 * place + 1)) >> (PIXELS + 1)) as u64);
        chunks.partition_point(|entry| entry.to < time).min(chunks.len() - 1)
    };
    let numbers = (0..1 << PIXELS).map(number).chain(0..chunks.len());
    numbers.filter(|number| seen.insert(*number)).take(MOST_PARTS).collect()
}
