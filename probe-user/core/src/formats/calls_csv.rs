//! Every call as a row of comma-separated values.

use super::excerpt::{Ended, Excerpt};
use super::lines::{self, LineLayout};
use super::out::Out;
use super::{Coverage, ExportError};
use crate::report::render::csv::{quoted, text};

const HEADING: &str = "pid,tid,thread,start_ns,duration_ns,timed,open,function,depth,path";
/// An additional column if calls of the recording may have values.
const VALUES: &str = ",values";

const LAYOUT: LineLayout = LineLayout {
    thread: |thread| format!("{},{},{},", thread.pid, thread.tid, quoted(&text(&thread.name))),
    between: b",",
    ended: |ended| match ended {
        Ended::Timed => b",true,false",
        Ended::Untimed => b",false,false",
        Ended::Open => b",false,true",
    },
    path: |frames| {
        let function = quoted(&text(frames.last().copied().unwrap_or_default())).into_owned();
        let (depth, path) = (frames.len(), frames.join(";"));
        format!(",{function},{depth},{}", quoted(&text(&path)))
    },
    values: |values| {
        let values = values.map(ToString::to_string).unwrap_or_default();
        format!(",{}", quoted(&text(&values)))
    },
    end: b"\n",
};

pub(super) fn write(excerpt: &Excerpt<'_>, mut out: Out<'_>) -> Result<Coverage, ExportError> {
    out.text(HEADING);
    out.text(if excerpt.recording.has_values() { VALUES } else { "" });
    out.text("\n");
    lines::write(excerpt, &LAYOUT, out)
}
