//! An export's remarks about itself: its number of calls, and missing or uncertain data.

use crate::calls::paths::Node;
use crate::function::FunctionInfo;
use crate::points::PointShape;
use crate::recording::{Chunk, ChunkLoss, Recording};
use crate::report::LossReport;
use serde::Serialize;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// Exported calls: timed, untimed and open ones.
    pub calls: u64,
    pub lost: LossReport,
    /// Calls that a filter left out, here or during recording.
    pub filtered_calls: u64,
    /// Calls beyond the recording's limit of call paths: only their function is known.
    pub calls_without_path: u64,
    /// Calls in damaged parts of the file.
    pub unreadable_calls: u64,
    /// Bytes of the file that cannot be read: damaged or incomplete.
    pub unreadable_bytes: u64,
    /// True if ctrace was killed while it recorded, or is still recording.
    pub has_no_end: bool,
    /// The sum of losses over the chunks.
    #[serde(skip)]
    pub losses: ChunkLoss,
}

impl Coverage {
    pub(super) fn of(recording: &Recording) -> Self {
        Self {
            unreadable_bytes: recording.unreadable(),
            has_no_end: recording.end().is_none(),
            ..Self::default()
        }
    }

    /// Adds a chunk. `nodes` are the paths of its calls, which are of `functions`.
    pub(super) fn add(&mut self, nodes: &[Node], functions: &[FunctionInfo], chunk: &Chunk) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        self.losses.events = self.losses.events.wrapping_add(chunk.loss.events);
        self.lost.events = self.losses.lost_events();
        add(&mut self.lost.late, chunk.loss.late);
        add(&mut self.lost.decode_errors, chunk.loss.decode_errors);
        add(&mut self.filtered_calls, chunk.loss.filtered);
        chunk.headless.iter().for_each(|(_, count)| add(&mut self.lost.calls_headless, *count));
        for call in chunk.threads().iter().flat_map(|thread| chunk.calls(thread)) {
            let node = &nodes[call.path() as usize];
            let is_untimed = !call.is_timed() && PointShape::of(functions, node.func).is_none();
            self.lost.calls_untimed += u64::from(is_untimed);
            let is_hit = functions.get(node.func.index()).is_some_and(FunctionInfo::is_point);
            self.lost.points += u64::from(is_untimed && is_hit);
            self.calls_without_path += u64::from(node.other);
        }
        self.calls += chunk.len() as u64;
    }

    /// Adds calls that have not ended.
    pub(super) fn add_open(&mut self, open: u64) {
        self.lost.calls_open += open;
        self.calls += open;
    }

    /// Returns all fields as keys and values, for formats with flat text.
    pub(super) fn pairs(&self) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        if let Ok(serde_json::Value::Object(object)) = serde_json::to_value(self) {
            for (key, value) in object {
                match value {
                    serde_json::Value::Object(inner) => pairs.extend(
                        inner
                            .into_iter()
                            .map(|(inner, value)| (format!("{key}_{inner}"), value.to_string())),
                    ),
                    value => pairs.push((key, value.to_string())),
                }
            }
        }
        pairs
    }

    /// Returns a summary of calls and what is missing, for a title.
    pub fn in_short(&self) -> String {
        let lost = &self.lost;
        let parts = [
            (lost.events, "event lost", "events lost"),
            (lost.late, "event late", "events late"),
            (lost.decode_errors, "decode error", "decode errors"),
            (lost.calls_untimed, "call ended unseen", "calls ended unseen"),
            (lost.calls_open, "call still running", "calls still running"),
            (lost.calls_headless, "call began before", "calls began before"),
            (self.filtered_calls, "call filtered out", "calls filtered out"),
            (self.calls_without_path, "call without a path", "calls without a path"),
            (self.unreadable_calls, "call unreadable", "calls unreadable"),
            (self.unreadable_bytes, "byte unreadable", "bytes unreadable"),
            (lost.payloads, "payload lost", "payloads lost"),
        ];
        let counted =
            |(n, one, many): (u64, &str, &str)| format!("{n} {}", if n == 1 { one } else { many });
        let missing = parts.into_iter().filter(|(n, ..)| *n > 0).map(counted);
        let mut all = vec![counted((self.calls, "call", "calls"))];
        all.extend(missing);
        all.extend(self.has_no_end.then(|| "the recording has no end".to_owned()));
        all.join(", ")
    }
}
