//! A call and its surroundings as JSON.

use ctrace_core::{
    recording::Recording,
    report::NamedValues,
    timeline::{Doubts, Near, RowKey, Span},
    units::Nanos,
};
use serde::Serialize;

/// A call, with times in nanoseconds since the start.
#[derive(Serialize)]
pub(super) struct CallJson {
    thread: u32,
    depth: u32,
    function: u32,
    start_ns: i64,
    duration_ns: u64,
    /// How it ended: `timed`, `untimed` or `open`.
    ended: &'static str,
}

impl CallJson {
    pub(super) fn new(recording: &Recording, row: RowKey, span: &Span) -> Self {
        let start = recording.period().0;
        Self {
            thread: row.thread.0,
            depth: row.depth,
            function: recording.path(span.path).map_or(u32::MAX, |path| path.function.0),
            start_ns: span.start.0.wrapping_sub(start.0) as i64,
            duration_ns: span.duration.0,
            ended: ["timed", "untimed", "open"][span.ended as usize],
        }
    }
}

/// The answer to a click.
#[derive(Serialize)]
pub(super) struct NearJson {
    call: CallJson,
    /// The calls around it, outermost first.
    parents: Vec<CallJson>,
    /// The number of them that could not be read.
    missing_parents: u32,
    /// True if the calls around it are not known.
    is_other: bool,
    /// The first calls directly inside it.
    inside: Vec<CallJson>,
    inside_calls: u64,
    inside_ns: u64,
    /// Its own time; `None` if not all calls inside it were read, or its end is not known.
    self_ns: Option<u64>,
    inside_is_partial: bool,
    /// Why its own time may be less.
    doubts: Vec<&'static str>,
    values: Option<NamedValues>,
}

impl NearJson {
    pub(super) fn new(recording: &Recording, near: Near) -> Self {
        let Near { call, row, parents, missing_parents, is_other, inside, values } = near;
        let of = |span: &Span, depth: u32| CallJson::new(recording, RowKey { depth, ..row }, span);
        let Doubts { lost, untimed, others } = inside.doubts;
        let doubts = [
            (lost, "events were lost, or calls cannot be read, while it ran"),
            (untimed, "the end of a call inside it was not seen"),
            (others, "its thread made calls beyond the bounds on paths, perhaps inside it"),
        ];
        let is_known = !inside.is_partial && call.ended == ctrace_core::formats::Ended::Timed;
        Self {
            call: of(&call, row.depth),
            parents: parents.iter().map(|(row, span)| of(span, row.depth)).collect(),
            missing_parents,
            is_other,
            inside: inside.calls.iter().map(|span| of(span, row.depth + 1)).collect(),
            inside_calls: inside.count,
            inside_ns: inside.total,
            self_ns: is_known.then(|| call.duration.since(Nanos(inside.total)).0),
            inside_is_partial: inside.is_partial,
            doubts: doubts.into_iter().filter(|doubt| doubt.0).map(|doubt| doubt.1).collect(),
            values,
        }
    }
}
