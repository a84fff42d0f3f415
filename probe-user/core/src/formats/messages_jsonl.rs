//! Messages of a [stream](super::stream) as lines with a JSON object each.

use super::labels::{self, Labels};
use super::per_path::PerPath;
use super::stream::{Message, Scene};
use crate::report::render::json::compact;
use crate::units::ThreadId;
use std::collections::HashMap;

/// Makes the lines.
#[derive(Default)]
pub struct JsonMessages {
    labels: Labels,
    paths: PerPath,
    threads: HashMap<ThreadId, String>,
}

impl JsonMessages {
    /// Takes names that were added.
    pub fn define(&mut self, scene: &Scene<'_>) {
        if self.labels.all().len() < scene.recording.functions().len() {
            self.labels = Labels::of(scene.recording);
        }
        self.threads.clear();
    }

    pub fn line(&mut self, scene: &Scene<'_>, message: &Message<'_>, to: &mut Vec<u8>) {
        let call = message.call;
        let thread = self.threads.entry(call.thread).or_insert_with(|| {
            let labels::ThreadLabel { pid, tid, name_in_json, .. } =
                labels::thread(scene.recording, call.thread);
            format!(",\"pid\":{pid},\"tid\":{tid},\"thread\":{name_in_json}")
        });
        let path = self.paths.get(call.path, scene.nodes.len(), |path| {
            let frames = self.labels.path(scene.nodes, path);
            let (category, stack) = frames.split_last().unwrap_or((&"", &[]));
            let level = compact(&message.level.map(|level| level.name()));
            let [category, stack] = [compact(category), compact(stack)];
            format!(",\"level\":{level},\"category\":{category},\"stack\":{stack},\"text\":")
                .into_bytes()
        });
        to.extend_from_slice(b"{\"time_ns\":");
        to.extend_from_slice(itoa::Buffer::new().format(call.start.0).as_bytes());
        to.extend_from_slice(thread.as_bytes());
        to.extend_from_slice(path);
        to.extend_from_slice(compact(&message.text().map(ToString::to_string)).as_bytes());
        let others = message.others();
        if !others.is_empty() {
            to.extend_from_slice(b",\"values\":");
            to.extend_from_slice(compact(&others).as_bytes());
        }
        to.extend_from_slice(b"}\n");
    }
}
