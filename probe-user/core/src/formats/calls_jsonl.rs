//! Every call as a line with a JSON object; those of a thread latest first.
//!
//! Each line is a call and nothing else, so what is missing is printed elsewhere.

use super::labels::{self, Labels};
use super::out::Out;
use super::pass::{self, Ended};
use super::per_path::PerPath;
use super::{Export, ExportError, Told};
use crate::export::json::compact;
use crate::record::ReadAt;

pub(super) fn write<R: ReadAt>(
    export: &Export<'_, R>,
    mut out: Out<'_>,
) -> Result<Told, ExportError> {
    let recording = export.recording;
    let labels = Labels::of(recording);
    let mut paths = PerPath::new(recording.nodes().len(), |path| {
        let frames = labels.path(recording, path);
        let function = compact(frames.last().copied().unwrap_or_default());
        format!(",\"function\":{function},\"path\":{}}}\n", compact(&frames)).into_bytes()
    });
    let told = pass::chunks(export, |step| {
        for (thread, rows) in step.rows() {
            let labels::ThreadLabel { pid, tid, name } = labels::thread(recording, thread);
            let name = compact(&name);
            let head = format!("{{\"pid\":{pid},\"tid\":{tid},\"thread\":{name},\"start_ns\":");
            for row in rows {
                out.text(&head);
                out.number(row.start);
                out.put(b",\"duration_ns\":");
                out.number(row.duration);
                out.put(match row.ended {
                    Ended::Timed => b",\"timed\":true,\"open\":false",
                    Ended::Untimed => b",\"timed\":false,\"open\":false",
                    Ended::Open => b",\"timed\":false,\"open\":true",
                });
                out.put(paths.get(row.path));
                out.relieve()?;
            }
        }
        Ok(())
    })?;
    out.finish()?;
    Ok(told)
}
