//! Messages, plots and frame marks over time: how many there are in each column of a picture. `messages` has
//! the texts in a few columns.
//!
//! These are not in tiles. A picture reads the values beside the chunks that it shows, and for frame marks the
//! chunks, so recordings without such points pay nothing. An answer is bounded whatever a recording has.

use super::Timeline;
use super::lost::Lost;
use super::sums::not_empty;
use crate::points::{Level, PointShape};
use crate::recording::replay::select::each_part;
use crate::recording::{ChunkEntry, Payload, Recording};
use crate::stop::Stop;
use crate::units::{FuncId, Nanos, ThreadId};
use crate::values::Value;
use std::collections::BTreeMap;
use std::ops::Range;

/// Columns of a strip, at most.
const MOST_COLUMNS: usize = 8_192;
/// Columns with something in them that one answer has of each kind of points.
const MOST_FILLED: usize = 1 << 16;

/// The messages of a thread in a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageColumn {
    /// How many there are.
    pub count: u64,
    /// The gravest level.
    pub level: Option<Level>,
}

/// The numbers of a plot in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlotColumn {
    /// How many there are.
    pub count: u64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// The time and the number of the latest.
    last: (u64, f64),
}

impl PlotColumn {
    /// Returns the latest number.
    pub fn last(&self) -> f64 {
        self.last.1
    }
}

/// Points by what they are of, and by column. Columns are equal parts of the time asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Points {
    /// Messages by thread.
    pub messages: BTreeMap<(ThreadId, u32), MessageColumn>,
    /// Plots by function.
    pub plots: BTreeMap<(FuncId, u32), PlotColumn>,
    /// The number of frame marks by function.
    pub marks: BTreeMap<(FuncId, u32), u64>,
    /// The number of points for which the answer has no room.
    pub left_out: u64,
    /// The points that may be missing.
    pub lost: Lost,
}

/// The shapes of a recording's points, by function.
pub(super) struct Shapes(Vec<Option<PointShape>>);

impl Shapes {
    pub(super) fn of(recording: &Recording) -> Self {
        Self(recording.functions().iter().map(|function| function.point).collect())
    }

    fn has(&self, is_wanted: impl Fn(PointShape) -> bool) -> bool {
        self.0.iter().flatten().any(|shape| is_wanted(*shape))
    }

    pub(super) fn get(&self, function: FuncId) -> Option<PointShape> {
        self.0.get(function.index()).copied().flatten()
    }
}

/// Returns the chunks that a stretch of time touches.
pub(super) fn touched<'a>(recording: &'a Recording, time: &Range<u64>) -> &'a [ChunkEntry] {
    let chunks = recording.chunks();
    let first = chunks.partition_point(|entry| entry.to.0 < time.start);
    let last = chunks.partition_point(|entry| entry.from.0 < time.end);
    &chunks[first.min(last)..last]
}

impl Points {
    /// Adds to an entry, if there is room for it.
    fn add<K: Ord, V>(
        (map, left_out): (&mut BTreeMap<K, V>, &mut u64),
        key: K,
        count: u64,
        (new, add): (V, impl FnOnce(&mut V)),
    ) {
        if let Some(known) = map.get_mut(&key) {
            add(known);
        } else if map.len() < MOST_FILLED {
            map.insert(key, new);
        } else {
            *left_out = left_out.saturating_add(count);
        }
    }

    fn message(&mut self, key: (ThreadId, u32), of: MessageColumn) {
        Self::add(
            (&mut self.messages, &mut self.left_out),
            key,
            of.count,
            (of, |known| {
                known.count += of.count;
                known.level = known.level.max(of.level);
            }),
        );
    }

    /// Adds the number that a payload of a plot has.
    fn value(&mut self, payload: &Payload, place: u32) {
        match payload.values.iter().flatten().find_map(Value::number) {
            Some(n) if n.is_finite() => {
                let of = PlotColumn { count: 1, min: n, max: n, last: (payload.time.0, n) };
                self.plot((payload.function, place), of);
            }
            Some(_) => self.lost.not_finite += 1,
            None => self.lost.values = self.lost.values.saturating_add(1),
        }
    }

    fn plot(&mut self, key: (FuncId, u32), of: PlotColumn) {
        Self::add(
            (&mut self.plots, &mut self.left_out),
            key,
            of.count,
            (of, |known| {
                known.count += of.count;
                (known.min, known.max) = (known.min.min(of.min), known.max.max(of.max));
                if of.last.0 >= known.last.0 {
                    known.last = of.last;
                }
            }),
        );
    }

    fn mark(&mut self, key: (FuncId, u32), count: u64) {
        Self::add(
            (&mut self.marks, &mut self.left_out),
            key,
            count,
            (count, |known| {
                *known += count;
            }),
        );
    }

    fn merge(&mut self, other: Self) {
        self.left_out = self.left_out.saturating_add(other.left_out);
        self.lost.add(other.lost);
        other.messages.into_iter().for_each(|(key, of)| self.message(key, of));
        other.plots.into_iter().for_each(|(key, of)| self.plot(key, of));
        other.marks.into_iter().for_each(|(key, count)| self.mark(key, count));
    }
}

impl Timeline {
    /// Returns the points in a stretch of time: messages of these threads, plots and frame marks of all. An
    /// answer to work that was stopped is worth nothing.
    pub fn points(
        &self,
        recording: &Recording,
        threads: &[ThreadId],
        time: Range<Nanos>,
        columns: usize,
        stop: &Stop,
    ) -> Points {
        let time = not_empty(&time);
        let shapes = Shapes::of(recording);
        let columns = columns.clamp(1, MOST_COLUMNS) as u128;
        let length = u128::from(time.end - time.start);
        let column = |at: u64| (u128::from(at - time.start) * columns / length) as u32;
        let has_marks = shapes.has(|shape| shape == PointShape::Frame);
        let reads_values = shapes.has(has_values);
        if !has_marks && !reads_values {
            return Points::default();
        }
        let mut threads = threads.to_vec();
        threads.sort_unstable();
        let parts = each_part(touched(recording, &time), |entries| {
            let mut points = Points::default();
            for entry in entries.iter().take_while(|_| !stop.is_stopped()) {
                let unreadable = points.lost.chunks;
                let values =
                    if reads_values { points.lost.read(recording, entry) } else { Vec::new() };
                for payload in values.iter().filter(|of| time.contains(&of.time.0)) {
                    let place = column(payload.time.0);
                    match shapes.get(payload.function) {
                        Some(PointShape::Message { level })
                            if threads.binary_search(&payload.thread).is_ok() =>
                        {
                            let of = MessageColumn { count: 1, level };
                            points.message((payload.thread, place), of);
                        }
                        Some(PointShape::Plot) => points.value(payload, place),
                        _ => {}
                    }
                }
                if !has_marks {
                    continue;
                }
                let Ok(chunk) = recording.chunk(entry) else {
                    points.lost.chunks = unreadable + 1;
                    continue;
                };
                let calls = chunk.threads().iter().flat_map(|thread| chunk.calls(thread));
                for call in calls.filter(|call| time.contains(&call.start().0)) {
                    let function = recording.nodes()[call.path() as usize].func;
                    if shapes.get(function) == Some(PointShape::Frame) {
                        points.mark((function, column(call.start().0)), 1);
                    }
                }
            }
            points
        });
        let mut points = Points::default();
        parts.into_iter().for_each(|part| points.merge(part));
        points
    }
}

/// Returns whether values are beside points of this shape.
fn has_values(shape: PointShape) -> bool {
    matches!(shape, PointShape::Message { .. } | PointShape::Plot)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_bound_and_says_what_it_leaves_out() {
        let mut points = Points::default();
        for thread in 0..MOST_FILLED as u32 + 3 {
            let level = (thread == 1).then_some(Level::Warn);
            points.message((ThreadId(thread), 0), MessageColumn { count: 2, level });
        }
        assert_eq!((points.messages.len(), points.left_out), (MOST_FILLED, 6));
        // There is room in columns that are there.
        points.message((ThreadId(1), 0), MessageColumn { count: 5, level: Some(Level::Info) });
        let of = points.messages[&(ThreadId(1), 0)];
        assert_eq!((of.count, of.level), (7, Some(Level::Warn)));
        assert_eq!(points.left_out, 6);
    }

    #[test]
    fn the_parts_of_a_column_are_one() {
        let column = |numbers: &[(u64, f64)]| {
            let mut points = Points::default();
            for &(time, n) in numbers {
                let of = PlotColumn { count: 1, min: n, max: n, last: (time, n) };
                points.plot((FuncId(3), 7), of);
            }
            points
        };
        let all = [(10, 4.0), (30, -2.0), (20, 9.5), (40, 1.0)];
        for split in 0..=all.len() {
            let (first, second) = all.split_at(split);
            let mut points = column(second);
            points.merge(column(first));
            let of = points.plots[&(FuncId(3), 7)];
            assert_eq!((of.count, of.min, of.max, of.last()), (4, -2.0, 9.5, 1.0));
        }
    }
}
