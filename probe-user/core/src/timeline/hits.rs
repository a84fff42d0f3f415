//! The calls of some functions over time, as a strip of counts.

use super::Timeline;
use super::cell::{RowKey, Span};
use super::leaf::calls_within;
use super::pyramid::Node;
use crate::recording::Recording;
use crate::recording::replay::select::each_part;
use crate::stop::Stop;
use crate::units::Nanos;
use std::ops::Range;

/// Columns of a strip, at most.
const MOST_COLUMNS: usize = 4_096;
/// Calls that are listed.
const MOST_LISTED: usize = 100;

/// The beginnings of calls of some functions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// The number that began in each column. Columns are equal parts of the time asked for.
    pub columns: Vec<u64>,
    /// The number that began in all of it.
    pub count: u64,
    /// The longest of them, longest first.
    pub longest: Vec<(RowKey, Span)>,
}

impl Hits {
    fn see(&mut self, key: RowKey, span: &Span, time: &Range<u64>, chosen: bool) {
        if !chosen || !time.contains(&span.start.0) {
            return;
        }
        let length = u128::from(time.end - time.start);
        let place = u128::from(span.start.0 - time.start) * self.columns.len() as u128 / length;
        self.columns[place as usize] += 1;
        self.count += 1;
        self.longest.push((key, *span));
        if self.longest.len() >= 4 * MOST_LISTED {
            self.cut();
        }
    }

    fn cut(&mut self) {
        self.longest
            .sort_by_key(|(key, span)| (std::cmp::Reverse(span.duration), span.order(), *key));
        self.longest.truncate(MOST_LISTED);
    }

    fn add(&mut self, other: Self) {
        self.columns.iter_mut().zip(other.columns).for_each(|(sum, more)| *sum += more);
        self.count += other.count;
        self.longest.extend(other.longest);
    }
}

impl Timeline {
    /// Counts the calls of some functions, by id, that began in a stretch of time. Reads all chunks
    /// that it touches; the answer to work that was stopped is worth nothing.
    pub fn hits(
        &self,
        recording: &Recording,
        functions: &[bool],
        time: Range<Nanos>,
        columns: usize,
        stop: &Stop,
    ) -> Hits {
        let time = time.start.0..time.end.0.max(time.start.0.saturating_add(1));
        let nodes = recording.nodes();
        let is_chosen = |span: &Span| {
            let function = nodes[span.path as usize].func;
            functions.get(function.index()).copied().unwrap_or(false)
        };
        let none = || Hits { columns: vec![0; columns.clamp(1, MOST_COLUMNS)], ..Hits::default() };
        let first = recording.chunks().partition_point(|entry| entry.to.0 < time.start);
        let last = recording.chunks().partition_point(|entry| entry.from.0 < time.end);
        let chunks = &recording.chunks()[first.min(last)..last];
        let parts = each_part(chunks, |entries| {
            let mut hits = none();
            for entry in entries.iter().take_while(|_| !stop.is_stopped()) {
                let Ok(chunk) = recording.chunk(entry) else { continue };
                for (key, span) in calls_within(&chunk, nodes) {
                    hits.see(key, &span, &time, is_chosen(&span));
                }
            }
            hits
        });
        let mut hits = none();
        parts.into_iter().for_each(|part| hits.add(part));
        let mut to_do: Vec<&Node> = self.pyramid.root.iter().collect();
        let mut kept = vec![&self.pyramid.loose];
        while let Some(node) = to_do.pop() {
            kept.push(&node.own);
            to_do.extend(&node.children);
        }
        for (key, span) in kept.into_iter().flatten() {
            hits.see(*key, span, &time, is_chosen(span));
        }
        hits.cut();
        hits
    }
}
