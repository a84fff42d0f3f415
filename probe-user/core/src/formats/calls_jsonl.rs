//! Every call as a line with a JSON object.

use super::excerpt::{Ended, Excerpt};
use super::lines::{self, Layout};
use super::out::Out;
use super::{Coverage, ExportError};
use crate::recording::ReadAt;
use crate::report::render::json::compact;

const LAYOUT: Layout = Layout {
    thread: |thread| {
        let (pid, tid, name) = (thread.pid, thread.tid, compact(&thread.name));
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

pub(super) fn write<R: ReadAt>(
    excerpt: &Excerpt<'_, R>,
    out: Out<'_>,
) -> Result<Coverage, ExportError> {
    lines::write(excerpt, &LAYOUT, out)
}
