//! The calls of one frame of all threads, as one JSON document: `events` is as ChronoProfiler has it, with
//! times in milliseconds from the frame's start.
//!
//! A frame has the calls that ended in it, so each call is in one frame, and a call that began before has a
//! time below 0. Without a frame, all calls are one.

use super::excerpt::{CallRow, Ended, Excerpt};
use super::labels::{self, Labels, ThreadLabel};
use super::out::Out;
use super::per_path::PerPath;
use super::{Coverage, ExportError};
use crate::function::FunctionInfo;
use crate::recording::replay::frames::outermost;
use crate::report::render::json::compact;
use crate::units::{FuncId, ThreadId};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Limit of calls in a frame: a document is read as a whole.
const MOST_CALLS: usize = 1 << 20;
/// Limit of frames in a recording, among which one is chosen.
const MOST_FRAMES: usize = 1 << 22;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Frame {
    start: u64,
    duration: u64,
    thread: ThreadId,
    path: u32,
}

impl Frame {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.duration)
    }

    fn has(&self, call: &CallRow) -> bool {
        let end = call.start.saturating_add(call.duration);
        call.ended != Ended::Open && self.start < end && end <= self.end()
    }
}

pub(super) fn write(excerpt: &Excerpt<'_>, mut out: Out<'_>) -> Result<Coverage, ExportError> {
    let found = match excerpt.options.frame {
        Some(chosen) => {
            let frames = find(excerpt, chosen.function)?;
            let (frame, number) = frames.choose(chosen.number)?;
            Some((frame, number, frames))
        }
        None => None,
    };
    let frame = found.as_ref().map(|(frame, ..)| frame);
    let mut calls = Vec::new();
    let told = excerpt.chunks(|step| {
        for (thread, rows) in step.rows() {
            let rows = rows.filter(|row| frame.is_none_or(|frame| frame.has(row)));
            calls.extend(rows.map(|row| (thread, row)).take(MOST_CALLS + 1 - calls.len()));
            if calls.len() > MOST_CALLS {
                return Err(ExportError::TooMuch);
            }
        }
        Ok(())
    })?;
    calls.sort_by_key(|(thread, row)| (row.start, Reverse(row.duration), *thread));
    let nodes = excerpt.nodes();
    let labels = Labels::of(excerpt.recording);
    let mut threads = BTreeMap::<ThreadId, ThreadLabel>::new();
    let mut thread_text = |thread: ThreadId| {
        let label = threads.entry(thread);
        let label = label.or_insert_with(|| labels::thread(excerpt.recording, thread));
        format!(",\"thread\":{},\"thread_name\":{}", label.tid, label.name_in_json)
    };
    let name = |path: u32| {
        let function = nodes[path as usize].func;
        let group = excerpt.recording.functions()[function.index()].group.as_deref();
        let group = group.map(|group| format!(",\"category\":{}", compact(&labels::text(group))));
        format!("\"name\":{}{}", compact(labels.function(function)), group.unwrap_or_default())
    };
    out.text("{");
    if let Some((frame, number, frames)) = &found {
        out.text(&format!("\"frame\":{{{}", name(frame.path)));
        out.text(&format!(",\"number\":{number},\"frames\":{}", frames.each.len()));
        if let Some(unknown) = frames.unknown {
            out.text(&format!(",\"unknown\":{unknown}"));
        }
        out.text(&thread_text(frame.thread));
        let start = frame.start.saturating_sub(excerpt.period().0.0);
        out.text(&format!(",\"start\":{},\"duration\":{}}},\n", ms(start), ms(frame.duration)));
    }
    out.text("\"events\":[");
    let mut paths = PerPath::default();
    let from = frame.map_or_else(|| excerpt.period().0.0, |frame| frame.start);
    for (nth, (thread, row)) in calls.iter().enumerate() {
        out.text(if nth == 0 { "\n{" } else { ",\n{" });
        out.put(paths.get(row.path, nodes.len(), |path| {
            let depth = labels::frames(nodes, path).0.len().saturating_sub(1);
            format!("{},\"depth\":{depth}", name(path)).into_bytes()
        }));
        out.text(&thread_text(*thread));
        let end = row.start.saturating_add(row.duration);
        let [start, end] = [row.start, end].map(|time| signed_ms(time, from));
        out.text(&format!(",\"start\":{start},\"end\":{end},\"duration\":{}", ms(row.duration)));
        out.text(match row.ended {
            Ended::Timed => "}",
            Ended::Untimed => ",\"timed\":false}",
            Ended::Open => ",\"timed\":false,\"open\":true}",
        });
        out.relieve()?;
    }
    out.text("\n]}\n");
    out.finish()?;
    Ok(told)
}

/// The frames among which one is chosen, in order.
struct Frames {
    each: Vec<Frame>,
    /// The number of those between marks that are unknown; `None` if frames are calls.
    unknown: Option<u64>,
}

impl Frames {
    /// Returns the chosen frame and its number.
    fn choose(&self, number: Option<NonZeroUsize>) -> Result<(Frame, usize), ExportError> {
        let place = match number {
            Some(number) => number.get() - 1,
            None => {
                let numbered = self.each.iter().enumerate();
                let longest = numbered.max_by_key(|(nth, it)| (it.duration, Reverse(*nth)));
                longest.map_or(0, |(nth, _)| nth)
            }
        };
        let frames = self.each.len();
        let frame = self.each.get(place).ok_or(match self.unknown {
            Some(unknown) => ExportError::NoSuchMarkedFrame { frames, unknown },
            None => ExportError::NoSuchFrame { frames },
        })?;
        Ok((*frame, place + 1))
    }
}

/// Returns all frames. Calls without a known duration are none.
fn find(excerpt: &Excerpt<'_>, function: FuncId) -> Result<Frames, ExportError> {
    let info = excerpt.recording.functions().get(function.index());
    if info.is_some_and(FunctionInfo::is_edge_of_frames) {
        let found = excerpt.marked_frames(function)?;
        let frames = found.each.iter().map(|frame| Frame {
            start: frame.start,
            duration: frame.duration(),
            thread: frame.thread,
            path: frame.node,
        });
        return Ok(Frames { each: frames.collect(), unknown: Some(found.unknown) });
    }
    let paths = outermost(excerpt.nodes(), function);
    let mut frames = Vec::new();
    excerpt.chunks(|step| {
        for (thread, rows) in step.rows() {
            let rows = rows.filter(|row| row.ended == Ended::Timed && paths.contains(&row.path));
            let found = rows.map(|row| Frame {
                start: row.start,
                duration: row.duration,
                thread,
                path: row.path,
            });
            frames.extend(found.take(MOST_FRAMES + 1 - frames.len()));
            if frames.len() > MOST_FRAMES {
                return Err(ExportError::TooMuch);
            }
        }
        Ok(())
    })?;
    frames.sort_unstable();
    Ok(Frames { each: frames, unknown: None })
}

/// Returns nanoseconds as milliseconds.
fn ms(nanos: u64) -> String {
    format!("{}.{:06}", nanos / 1_000_000, nanos % 1_000_000)
}

/// Returns a time as milliseconds after `from`, or before it.
fn signed_ms(time: u64, from: u64) -> String {
    let sign = if time < from { "-" } else { "" };
    format!("{sign}{}", ms(time.abs_diff(from)))
}
