//! Every call as a row of comma-separated values; those of a thread latest first.
//!
//! A table has no place for what is missing; who writes one prints that elsewhere.

use super::labels::{self, Labels};
use super::out::Out;
use super::pass::{self, Ended};
use super::per_path::PerPath;
use super::{Export, ExportError, Told};
use crate::export::csv::quoted;
use crate::record::ReadAt;

const HEADING: &str = "pid,tid,thread,start_ns,duration_ns,timed,open,function,depth,path\n";

pub(super) fn write<R: ReadAt>(
    export: &Export<'_, R>,
    mut out: Out<'_>,
) -> Result<Told, ExportError> {
    let recording = export.recording;
    let labels = Labels::of(recording);
    let mut paths = PerPath::new(recording.nodes().len(), |path| {
        let frames = labels.path(recording, path);
        let function = quoted(frames.last().copied().unwrap_or_default());
        let (depth, path) = (frames.len(), frames.join(";"));
        format!(",{function},{depth},{}\n", quoted(&path)).into_bytes()
    });
    out.text(HEADING);
    let told = pass::chunks(export, |step| {
        for (thread, rows) in step.rows() {
            let labels::ThreadLabel { pid, tid, name } = labels::thread(recording, thread);
            let head = format!("{pid},{tid},{},", quoted(&name));
            for row in rows {
                out.text(&head);
                out.number(row.start);
                out.put(b",");
                out.number(row.duration);
                out.put(match row.ended {
                    Ended::Timed => b",true,false",
                    Ended::Untimed => b",false,false",
                    Ended::Open => b",false,true",
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
