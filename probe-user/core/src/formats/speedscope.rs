//! speedscope's file format: a profile for each thread, with a sample for each call path. A
//! sample's weight is its path's own time.
//!
//! The samples are sums and have no order in time. To see calls over time, load the Chrome format
//! into speedscope.

use super::excerpt::Excerpt;
use super::labels::{self, Labels, UNKNOWN_FRAMES};
use super::out::Out;
use super::path_sums::PathSums;
use super::{Coverage, ExportError};
use crate::report::render::json::compact;
use serde_json::json;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

pub(super) fn write(excerpt: &Excerpt<'_>, mut out: Out<'_>) -> Result<Coverage, ExportError> {
    let recording = excerpt.recording;
    let (all, told) = PathSums::of(excerpt)?;
    let name = format!("{}: {}", labels::target(&recording.start().target), told.in_short());
    let exporter = concat!("ctrace ", env!("CARGO_PKG_VERSION"));
    let head = compact(&json!({
        "$schema": SCHEMA, "exporter": exporter, "name": name, "activeProfileIndex": 0,
    }));
    out.text(head.trim_end_matches('}'));
    out.text(",\"shared\":{\"frames\":[\n");
    let labels = Labels::of(recording);
    for (label, info) in labels.all().iter().zip(recording.functions()) {
        let mut frame = json!({ "name": label });
        if let Some(file) = &info.file {
            frame["file"] = json!(labels::text(file));
        }
        if let Some(line) = info.line {
            frame["line"] = json!(line);
        }
        out.text(&compact(&frame));
        out.text(",\n");
        out.relieve()?;
    }
    out.text(&compact(&json!({ "name": UNKNOWN_FRAMES })));
    out.text("\n]},\"profiles\":[");
    for (place, (thread, sums)) in all.threads().enumerate() {
        let label = labels::thread(recording, thread);
        let name = match label.id_beside_name() {
            Some(id) => format!("{} ({id})", label.name),
            None => label.name,
        };
        let total = sums.iter().fold(0_u64, |total, (_, sum)| total.saturating_add(sum.own));
        let head = compact(&json!({
            "type": "sampled", "name": name.trim_start(), "unit": "nanoseconds", "startValue": 0,
            "endValue": total,
        }));
        out.text(if place == 0 { "\n" } else { ",\n" });
        out.text(head.trim_end_matches('}'));
        out.text(",\"samples\":[");
        for (place, (path, _)) in sums.iter().enumerate() {
            let (frames, is_whole) = labels::frames(excerpt.nodes(), *path);
            let unknown = (!is_whole).then_some(labels.all().len() as u64);
            let frames = frames.into_iter().map(|function| u64::from(function.0));
            let frames: Vec<u64> = unknown.into_iter().chain(frames).collect();
            out.text(if place == 0 { "" } else { "," });
            out.text(&compact(&frames));
            out.relieve()?;
        }
        out.text("],\"weights\":[");
        for (place, (_, sum)) in sums.iter().enumerate() {
            out.text(if place == 0 { "" } else { "," });
            out.number(sum.own);
        }
        out.text("]}");
        out.relieve()?;
    }
    out.text("\n]}\n");
    out.finish()?;
    Ok(told)
}
