//! Chosen calls over time, as a strip of counts.

use super::Timeline;
use super::cell::{RowKey, Span};
use super::chosen::Chosen;
use super::sums::{Sum, not_empty};
use crate::calls::paths::Node;
use crate::recording::Recording;
use crate::stop::Stop;
use crate::units::Nanos;
use std::ops::Range;

/// Columns of a strip, at most.
pub(super) const MOST_COLUMNS: usize = 4_096;
/// Calls that are listed.
const MOST_LISTED: usize = 100;

/// The beginnings of chosen calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// The number that began in each column. Columns are equal parts of the time asked for.
    pub columns: Vec<u64>,
    /// The number that began in all of it.
    pub count: u64,
    /// The longest of them, longest first.
    pub longest: Vec<(RowKey, Span)>,
}

struct Counted<'a> {
    hits: Hits,
    chosen: &'a Chosen,
    nodes: &'a [Node],
    time: &'a Range<u64>,
}

impl Sum for Counted<'_> {
    fn see(&mut self, row: RowKey, span: &Span) {
        if !self.chosen.has(span, self.nodes) {
            return;
        }
        let Self { hits, time, .. } = self;
        let length = u128::from(time.end - time.start);
        let place = u128::from(span.start.0 - time.start) * hits.columns.len() as u128 / length;
        hits.columns[place as usize] += 1;
        hits.count += 1;
        hits.longest.push((row, *span));
        if hits.longest.len() >= 4 * MOST_LISTED {
            hits.cut();
        }
    }

    fn add(&mut self, Self { hits: other, .. }: Self) {
        let hits = &mut self.hits;
        hits.columns.iter_mut().zip(other.columns).for_each(|(sum, more)| *sum += more);
        hits.count += other.count;
        hits.longest.extend(other.longest);
    }
}

impl Hits {
    fn cut(&mut self) {
        self.longest
            .sort_by_key(|(key, span)| (std::cmp::Reverse(span.duration), span.order(), *key));
        self.longest.truncate(MOST_LISTED);
    }
}

impl Timeline {
    /// Counts the chosen calls that began in a stretch of time. Reads all chunks that it touches; the answer
    /// to work that was stopped is worth nothing.
    pub fn hits(
        &self,
        recording: &Recording,
        chosen: &Chosen,
        time: Range<Nanos>,
        columns: usize,
        stop: &Stop,
    ) -> Hits {
        let (time, nodes) = (&not_empty(&time), recording.nodes());
        let columns = columns.clamp(1, MOST_COLUMNS);
        let none = || Hits { columns: vec![0; columns], ..Hits::default() };
        let new = || Counted { hits: none(), chosen, nodes, time };
        let mut hits = self.sum(recording, time, stop, new).hits;
        hits.cut();
        hits
    }
}
