//! Trace events as JSON, for chrome://tracing, ui.perfetto.dev and whatever else reads them: one
//! complete event (`X`) for each call.
//!
//! Times are microseconds since tracing began. What is not known of a call is in its `args`:
//! `untimed` or `open`; what is missing from the recording is in `otherData`.

use super::excerpt::{Ended, Excerpt};
use super::labels::{self, Labels};
use super::out::Out;
use super::{Coverage, ExportError};
use crate::recording::{ReadAt, Recording};
use crate::report::render::json::compact;
use std::collections::HashSet;

const UNTIMED: &[u8] = b",\"args\":{\"untimed\":true}";
const OPEN: &[u8] = b",\"args\":{\"open\":true}";

pub(super) fn write<R: ReadAt>(
    excerpt: &Excerpt<'_, R>,
    mut out: Out<'_>,
) -> Result<Coverage, ExportError> {
    let recording = excerpt.recording;
    let labels = Labels::of(recording);
    let names: Vec<String> =
        labels.all().iter().map(|name| format!(",\"name\":{}", compact(name))).collect();
    let (nodes, zero) = (excerpt.nodes(), recording.start().start_ns.0);
    let mut known = Known::default();
    out.text("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
    let told = excerpt.chunks(|step| {
        for (thread, rows) in step.rows() {
            let label = labels::thread(recording, thread);
            known.introduce(recording, &label, &mut out);
            let head =
                format!(",\n{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":", label.pid, label.tid);
            for row in rows {
                out.put(head.as_bytes());
                out.micros(row.start.saturating_sub(zero));
                out.put(b",\"dur\":");
                out.micros(row.duration);
                let function = nodes[row.path as usize].func;
                out.put(names.get(function.index()).map_or(b"", |name| name.as_bytes()));
                match row.ended {
                    Ended::Timed => {}
                    Ended::Untimed => out.put(UNTIMED),
                    Ended::Open => out.put(OPEN),
                }
                out.put(b"}");
                out.relieve()?;
            }
        }
        Ok(())
    })?;
    out.text("\n],\"otherData\":");
    out.text(&compact(&other_data(recording, &told)));
    out.text("}\n");
    out.finish()?;
    Ok(told)
}

/// What has a name already.
#[derive(Default)]
struct Known {
    processes: HashSet<u32>,
    threads: HashSet<(u32, u32, String)>,
}

impl Known {
    /// Names a thread and its process when they come up first.
    fn introduce<R: ReadAt>(
        &mut self,
        recording: &Recording<R>,
        thread: &labels::ThreadLabel,
        out: &mut Out<'_>,
    ) {
        let (pid, tid) = (thread.pid, thread.tid);
        let mut name = |what: &str, name: &str, separator: &str| {
            let name = compact(name);
            out.text(&format!(
                "{separator}\n{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"{what}\",\
                 \"args\":{{\"name\":{name}}}}}"
            ));
        };
        let separator = if self.processes.is_empty() { "" } else { "," };
        if self.processes.insert(pid) {
            name("process_name", &labels::process(recording, pid), separator);
        }
        if self.threads.insert((pid, tid, thread.name.clone())) && !thread.name.is_empty() {
            name("thread_name", &thread.name, ",");
        }
    }
}

fn other_data<R: ReadAt>(recording: &Recording<R>, told: &Coverage) -> serde_json::Value {
    let start = recording.start();
    serde_json::json!({
        "writer": format!("ctrace {}", env!("CARGO_PKG_VERSION")),
        "recorded_by": format!("ctrace {}", start.ctrace),
        "host": start.host,
        "command": start.target.command,
        "start_ns": start.start_ns,
        "epoch_offset_ns": start.epoch_offset_ns,
        "ctrace": told,
    })
}
