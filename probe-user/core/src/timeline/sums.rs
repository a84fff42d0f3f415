//! Sums over all calls that begin in a stretch of time.

use super::Timeline;
use super::cell::{RowKey, Span};
use super::leaf::calls_within;
use super::points::touched;
use super::pyramid::Node;
use crate::recording::Recording;
use crate::recording::replay::select::each_part;
use crate::stop::Stop;
use crate::units::Nanos;
use std::ops::Range;

/// A sum over calls, made of parts.
pub(super) trait Sum: Send {
    /// Adds a call that begins in the stretch of time.
    fn see(&mut self, row: RowKey, span: &Span);
    /// Adds another part.
    fn add(&mut self, other: Self);
}

/// Returns a stretch of time as numbers. It is never empty.
pub(super) fn not_empty(time: &Range<Nanos>) -> Range<u64> {
    time.start.0..time.end.0.max(time.start.0.saturating_add(1))
}

impl Timeline {
    /// Adds up all calls that begin in a stretch of time. Reads all chunks that it touches; the sum of work
    /// that was stopped is worth nothing.
    pub(super) fn sum<S: Sum>(
        &self,
        recording: &Recording,
        time: &Range<u64>,
        stop: &Stop,
        new: impl Fn() -> S + Sync,
    ) -> S {
        let nodes = recording.nodes();
        let see = |sum: &mut S, row: RowKey, span: &Span| {
            if time.contains(&span.start.0) {
                sum.see(row, span);
            }
        };
        let parts = each_part(touched(recording, time), |entries| {
            let mut sum = new();
            for entry in entries.iter().take_while(|_| !stop.is_stopped()) {
                let Ok(chunk) = recording.chunk(entry) else { continue };
                calls_within(&chunk, nodes).for_each(|(row, span)| see(&mut sum, row, &span));
            }
            sum
        });
        let mut sum = new();
        parts.into_iter().for_each(|part| sum.add(part));
        let mut to_do: Vec<&Node> = self.pyramid.root.iter().collect();
        let mut kept = vec![&self.pyramid.loose];
        while let Some(node) = to_do.pop() {
            kept.push(&node.own);
            to_do.extend(&node.children);
        }
        kept.into_iter().flatten().for_each(|(row, span)| see(&mut sum, *row, span));
        sum
    }
}
