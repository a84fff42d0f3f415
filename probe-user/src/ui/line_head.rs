//! The time and the thread with which lines of a stream begin, and lines that tell of losses.

use crate::ui::notes::loss::loss_line;
use crate::ui::output::style::{Style, Tone};
use crate::ui::text::names;
use ctrace_core::{
    formats::stream::{Lost, Scene},
    goroutines::id_beside_name,
    recording::ThreadRecord,
    report::{LossReport, render::clean::clean},
    units::{Nanos, ThreadId, Tid},
};
use std::collections::HashMap;

/// The longest name of a thread, in columns.
const MOST_NAME: usize = 32;

pub(super) struct LineHead {
    style: Style,
    /// Times count from here.
    start: Nanos,
    /// The name of a thread in its column.
    name: fn(&ThreadRecord) -> String,
    /// The column of each thread, once it is shown.
    threads: HashMap<ThreadId, String>,
    /// The first thread. A program that is executed has a new one with the same id.
    first: Option<Tid>,
    shows_threads: bool,
    thread_width: usize,
}

impl LineHead {
    /// Makes the beginnings of lines that name the thread once there are several.
    pub(super) fn of_calls(style: Style) -> Self {
        Self::new(style, false, |record| match &*record.name {
            "" => record.tid.0.to_string(),
            name => match id_beside_name(record.tid, name) {
                Some(id) => format!("{}/{id}", harmless(name)),
                None => harmless(name),
            },
        })
    }

    /// Makes the beginnings of lines that always name the process and the thread.
    pub(super) fn of_messages(style: Style) -> Self {
        Self::new(style, true, |record| {
            let ids = match id_beside_name(record.tid, &record.name) {
                Some(id) => format!("{}/{id}", record.pid.0),
                None => record.pid.0.to_string(),
            };
            if record.name.is_empty() { ids } else { format!("{ids} {}", harmless(&record.name)) }
        })
    }

    fn new(style: Style, shows_threads: bool, name: fn(&ThreadRecord) -> String) -> Self {
        let (threads, first, thread_width) = Default::default();
        Self { style, start: Nanos::ZERO, name, threads, first, shows_threads, thread_width }
    }

    /// Takes threads that were added.
    pub(super) fn define(&mut self, scene: &Scene<'_>) {
        let recording = scene.recording;
        self.start = recording.start().start_ns;
        self.threads.clear();
        let mut tids = recording.threads().map(|record| record.tid);
        self.first = self.first.or_else(|| recording.threads().next().map(|record| record.tid));
        self.shows_threads |= tids.any(|tid| Some(tid) != self.first);
        let widths = recording.threads().map(|record| names::width(&(self.name)(record)));
        self.thread_width = widths.fold(self.thread_width, usize::max);
    }

    /// Appends the time, the thread if it is shown, and a gap.
    pub(super) fn begin(
        &mut self,
        scene: &Scene<'_>,
        (at, thread): (Nanos, ThreadId),
        to: &mut String,
    ) {
        *to += &self.seconds(at);
        if self.shows_threads {
            let (width, name) = (self.thread_width, self.name);
            let column = self.threads.entry(thread).or_insert_with(|| {
                let name = scene.recording.thread(thread).map(name).unwrap_or_default();
                let pad = width.saturating_sub(names::width(&name));
                format!("  {name}{}", " ".repeat(pad))
            });
            *to += column.as_str();
        }
        *to += "  ";
    }

    /// Appends a line that tells of a loss.
    pub(super) fn lost(&self, lost: &Lost, to: &mut String) {
        let Lost { from, events, late, decode_errors, payloads, .. } = *lost;
        let loss = LossReport { events, late, decode_errors, payloads, ..LossReport::default() };
        let since = self.seconds(from);
        let text = format!("-- {} since {} --", loss_line(&loss), since.trim_start());
        *to += &self.seconds(lost.to);
        *to += "  ";
        *to += &self.toned(Tone::Warning, &text);
    }

    /// Formats seconds since the start.
    fn seconds(&self, at: Nanos) -> String {
        let micros = at.since(self.start).0 / 1_000;
        format!("{:>4}.{:06}", micros / 1_000_000, micros % 1_000_000)
    }

    /// Marks text where the output has colours.
    pub(super) fn toned(&self, tone: Tone, text: &str) -> String {
        if self.style.colour { tone.mark(text) } else { text.to_owned() }
    }

    /// Appends a finished line.
    pub(super) fn finish(&self, line: &str, to: &mut Vec<u8>) {
        if self.style.colour || self.style.ascii {
            to.extend_from_slice(self.style.resolve(line).as_bytes());
        } else {
            to.extend_from_slice(line.as_bytes());
        }
        to.push(b'\n');
    }
}

fn harmless(name: &str) -> String {
    names::cut_end(&clean(name), MOST_NAME)
}
