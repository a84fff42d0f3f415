//! Chrome's trace events as JSON, for chrome://tracing, ui.perfetto.dev and others: one complete
//! event (`X`) for each call.
//!
//! Times are microseconds since tracing began. A call's `args` have its values and mark it as
//! `untimed` or `open`. `otherData` lists what is missing from the recording.

use super::enclosing::enclosing;
use super::excerpt::{CallRow, Ended, Excerpt};
use super::labels::{self, Labels};
use super::out::Out;
use super::{Coverage, ExportError};
use crate::recording::Recording;
use crate::report::NamedValues;
use crate::report::render::json::compact;
use std::collections::HashSet;

pub(super) fn write(excerpt: &Excerpt<'_>, mut out: Out<'_>) -> Result<Coverage, ExportError> {
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
            // Calls are in the order of their ends.
            let (mut rows, mut before) = (rows.peekable(), None);
            while let Some(row) = rows.next() {
                out.put(head.as_bytes());
                let start = row.start.saturating_sub(zero);
                let (end, next) = (end(&row), rows.peek().map(end));
                // A tail call ends at the same event as its caller, and an exception ends several calls.
                let is_shared = before == Some(end) || next == Some(end);
                before = Some(end);
                match row.ended {
                    Ended::Timed if !is_shared => {
                        out.micros(start);
                        out.put(b",\"dur\":");
                        out.micros(row.duration);
                    }
                    _ => {
                        let (from, duration) = enclosing(start, start.saturating_add(row.duration));
                        out.text(&format!("{from},\"dur\":{duration}"));
                    }
                }
                let function = nodes[row.path as usize].func;
                out.put(names.get(function.index()).map_or(b"", |name| name.as_bytes()));
                let remark = match row.ended {
                    Ended::Timed => None,
                    Ended::Untimed => Some("untimed"),
                    Ended::Open => Some("open"),
                };
                arguments(remark, step.values(thread, row.start, function), &mut out);
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

fn end(row: &CallRow) -> u64 {
    row.start.saturating_add(row.duration)
}

/// Writes the details that viewers show of a call: how it ended, if not as usual, and its values.
#[inline]
fn arguments(remark: Option<&str>, values: Option<&NamedValues>, out: &mut Out<'_>) {
    match (remark, values) {
        (None, None) => {}
        (Some(remark), None) => {
            out.put(b",\"args\":{\"");
            out.text(remark);
            out.put(b"\":true}");
        }
        (None, Some(values)) => out.text(&format!(",\"args\":{}", compact(values))),
        (Some(remark), Some(values)) => {
            let values = compact(values);
            out.text(&format!(",\"args\":{{\"{remark}\":true,{}", &values[1..]));
        }
    }
}

/// The threads and processes that were named already.
#[derive(Default)]
struct Known {
    processes: HashSet<u32>,
    threads: HashSet<(u32, u32, String)>,
}

impl Known {
    /// Names a thread and its process at their first occurrence.
    fn introduce(
        &mut self,
        recording: &Recording,
        thread: &labels::ThreadLabel,
        out: &mut Out<'_>,
    ) {
        let (pid, tid) = (thread.pid, thread.tid);
        let mut name = |what: &str, name: &str, separator: &str| {
            out.text(&format!(
                "{separator}\n{{\"ph\":\"M\",\"pid\":{pid},\"tid\":{tid},\"name\":\"{what}\",\
                 \"args\":{{\"name\":{name}}}}}"
            ));
        };
        let separator = if self.processes.is_empty() { "" } else { "," };
        if self.processes.insert(pid) {
            name("process_name", &compact(&labels::process(recording, pid)), separator);
        }
        if self.threads.insert((pid, tid, thread.name.clone())) && !thread.name.is_empty() {
            name("thread_name", &thread.name_in_json, ",");
        }
    }
}

fn other_data(recording: &Recording, told: &Coverage) -> serde_json::Value {
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
