//! The timeline of a recording: pictures of all calls, at any zoom.
//!
//! [`Timeline::picture`] answers what is visible in some rows (a thread at a depth), from one time
//! to another, in so many pixels. A call at least as long as a cell (a pixel, or up to two) is a span of
//! its own; shorter ones are added up in cells. Both are exact: a picture equals the one that
//! is made by looking at every call.
//!
//! Pictures of long stretches read no call. `pyramid` is a tree over the chunks of the recording, built in one
//! pass. Each node has a `tile`: the rows of its stretch of time at several levels, packed, where
//! cells of a level are twice as long as those of the level below. Only where cells are shorter than
//! those of a chunk's tile, the chunk is read (`leaf`), and kept for the next pictures (`leaves`).
//! [`Timeline::quick`] tells which coarser picture can do without. All memory is bounded
//! (docs/decisions/051-timeline-in-memory.md). A pyramid can be `saved` for the next start.
//!
//! Before all calls were read, a [`Draft`] shows the time with some of the chunks, and says where it does.
//!
//! [`Timeline::near`] tells about one call, [`Timeline::hits`] where [chosen](Chosen) calls are,
//! [`Timeline::picture_of`] draws only these, and [`Timeline::durations`] tells how long they took.
//! [`Timeline::nth`] finds one of them by its number. [`Timeline::points`] tells where messages, plots and frame marks are.
#![warn(missing_docs)]

mod about;
mod band;
mod cell;
mod chosen;
#[cfg(test)]
mod chosen_tests;
mod draft;
#[cfg(test)]
mod draft_tests;
mod durations;
mod estimate;
mod hits;
#[cfg(test)]
mod hostile_tests;
mod leaf;
mod leaves;
mod lost;
mod messages;
mod near;
#[cfg(test)]
mod near_tests;
mod nth;
mod numbers;
mod of_chunk;
mod part;
mod picture;
mod points;
mod pyramid;
mod quick;
mod saved;
mod sums;
#[cfg(test)]
mod tests;
mod tile;

pub use about::{About, FunctionAbout, ThreadAbout};
pub use cell::{Cell, RowKey, Span};
pub use chosen::Chosen;
pub use draft::Draft;
pub use durations::{DurationBar, Durations};
pub use hits::Hits;
pub use lost::Lost;
pub use messages::{MessageText, Messages};
pub use near::{Doubts, Inside, Near};
pub use picture::{MOST_PIXELS, MOST_SPANS, Picture, PictureRow, View};
pub use points::{MessageColumn, PlotColumn, Points};
pub use pyramid::ThreadFacts;

use crate::recording::Recording;
use crate::units::ThreadId;
use leaves::Leaves;
use pyramid::{Builder, Pyramid};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

/// A timeline cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimelineError {
    /// Calls that cross the edges of chunks are kept in memory one by one.
    #[error(
        "has too many calls that go on from one chunk to the next: `ctrace report` and `ctrace trace` \
         can read it"
    )]
    TooManyCrossing,
    /// Facts about each thread are kept in memory.
    #[error(
        "has calls of more than {} threads: `ctrace report` and `ctrace trace` can read it",
        pyramid::MOST_THREADS
    )]
    TooManyThreads,
}

/// The material of pictures of a recording. Its methods take the recording that it was built of.
#[derive(Debug)]
pub struct Timeline {
    pyramid: Pyramid,
    leaves: Leaves,
}

impl Timeline {
    /// Reads all calls once. `progress` counts those that were read.
    pub fn build(recording: &Recording, progress: &AtomicU64) -> Result<Self, TimelineError> {
        Self::build_scaled(recording, None, progress, 1.0)
    }

    /// The same. Until it is done, a draft of the recording gets some of what was read.
    pub fn build_behind(
        recording: &Recording,
        draft: &Draft,
        progress: &AtomicU64,
    ) -> Result<Self, TimelineError> {
        Self::build_scaled(recording, Some(draft), progress, 1.0)
    }

    /// `scale`: how many times the usual bytes tiles may have.
    fn build_scaled(
        recording: &Recording,
        draft: Option<&Draft>,
        progress: &AtomicU64,
        scale: f64,
    ) -> Result<Self, TimelineError> {
        let pyramid = Builder::new(recording, draft, progress, scale).build()?;
        Ok(Self { pyramid, leaves: Leaves::default() })
    }

    /// Returns the threads that have calls, by id.
    pub fn threads(&self) -> &BTreeMap<ThreadId, ThreadFacts> {
        &self.pyramid.facts.threads
    }

    /// Returns the number of calls that are missing because their chunks cannot be read.
    pub fn unreadable_calls(&self) -> u64 {
        self.pyramid.facts.unreadable_calls
    }

    /// Returns the bytes of the tiles, and those of calls that cross the edges of chunks.
    pub fn memory(&self) -> (usize, usize) {
        let (tiles, own) = self.pyramid.root.as_ref().map_or((0, 0), pyramid::Node::memory);
        (tiles, own + self.pyramid.loose.capacity() * size_of::<(RowKey, Span)>())
    }
}
