//! Every call as a line with a JSON object: of a recording, or of a [stream](super::stream).

use super::excerpt::{CallRow, Ended, Excerpt};
use super::labels::{self, Labels};
use super::lines::{self, LineLayout};
use super::out::Out;
use super::per_path::PerPath;
use super::stream::{CallPart, Scene, StreamLine};
use super::{Coverage, ExportError};
use crate::report::render::json::compact;
use crate::units::ThreadId;
use std::collections::HashMap;

const LAYOUT: LineLayout = LineLayout {
    thread: |thread| {
        let (pid, tid, name) = (thread.pid, thread.tid, &thread.name_in_json);
        format!("{{\"pid\":{pid},\"tid\":{tid},\"thread\":{name},\"start_ns\":")
    },
    between: b",\"duration_ns\":",
    ended: |ended| match ended {
        Ended::Timed => b",\"timed\":true,\"open\":false",
        Ended::Untimed => b",\"timed\":false,\"open\":false",
        Ended::Open => b",\"timed\":false,\"open\":true",
    },
    path: |frames| {
        let function = compact(frames.last().copied().unwrap_or_default());
        format!(",\"function\":{function},\"path\":{}", compact(frames))
    },
    values: |values| values.map_or_else(String::new, |it| format!(",\"values\":{}", compact(it))),
    end: b"}\n",
};

pub(super) fn write(excerpt: &Excerpt<'_>, out: Out<'_>) -> Result<Coverage, ExportError> {
    lines::write(excerpt, &LAYOUT, out)
}

/// Makes the lines of a stream, in the order of the calls' beginnings. A call that was announced gets
/// its line when it has ended, because a line has a whole call.
#[derive(Default)]
pub struct JsonLines {
    labels: Labels,
    paths: PerPath,
    heads: HashMap<ThreadId, String>,
}

impl JsonLines {
    /// Takes names that were added.
    pub fn define(&mut self, scene: &Scene<'_>) {
        if self.labels.all().len() < scene.recording.functions().len() {
            self.labels = Labels::of(scene.recording);
        }
        self.heads.clear();
    }

    /// Appends the line, if it is one of a whole call.
    pub fn line(&mut self, scene: &Scene<'_>, line: &StreamLine<'_>, to: &mut Vec<u8>) {
        let StreamLine::Call(call, values) = line else { return };
        if matches!(call.part, CallPart::Begun | CallPart::Gone) {
            return;
        }
        let head = self.heads.entry(call.thread);
        let head =
            head.or_insert_with(|| (LAYOUT.thread)(&labels::thread(scene.recording, call.thread)));
        let path = self.paths.get(call.path, scene.nodes.len(), |path| {
            LAYOUT.text_of_path(&self.labels, scene.nodes, path)
        });
        let values = values.map_or_else(String::new, |it| (LAYOUT.values)(Some(&it.named)));
        let (start, duration) = (call.start.0, call.duration.0);
        let row = CallRow { start, duration, path: call.path, ended: call.ended, own: 0 };
        LAYOUT.line((head.as_str(), &row), path, &values, to);
    }
}
