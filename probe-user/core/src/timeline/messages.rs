//! The texts of a thread's messages in a short stretch of time.

use super::Timeline;
use super::lost::Lost;
use super::points::{Shapes, touched};
use super::sums::not_empty;
use crate::formats::labels;
use crate::points::{Level, PointShape};
use crate::recording::{Payload, Recording};
use crate::stop::Stop;
use crate::units::{Nanos, ThreadId};
use crate::values::Value;
use serde::Serialize;
use std::ops::Range;

/// Texts that are listed.
const MOST_TEXTS: usize = 100;
/// Chunks that are read for them.
const MOST_CHUNKS: usize = 256;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MessageText {
    /// The time since the start of the recording.
    pub time_ns: i64,
    /// The format or name.
    pub function: u32,
    /// The level, if it has one.
    pub level: Option<Level>,
    /// The text, harmless; `None` if it was lost.
    pub text: Option<String>,
}

/// The messages of a thread in a stretch of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Messages {
    /// The first of them.
    pub first: Vec<MessageText>,
    /// The number of all of them.
    pub count: u64,
    /// True if the stretch is so long that not all of it was read.
    pub is_partial: bool,
    /// The points that may be missing.
    pub lost: Lost,
}

impl Timeline {
    /// Returns the first messages of a thread in a stretch of time.
    pub fn messages(
        &self,
        recording: &Recording,
        thread: ThreadId,
        time: Range<Nanos>,
        stop: &Stop,
    ) -> Messages {
        let time = not_empty(&time);
        let (shapes, start) = (Shapes::of(recording), recording.period().0.0);
        let chunks = touched(recording, &time);
        let is_partial = chunks.len() > MOST_CHUNKS;
        let mut messages = Messages { is_partial, ..Messages::default() };
        for entry in chunks.iter().take(MOST_CHUNKS).take_while(|_| !stop.is_stopped()) {
            let values = messages.lost.read(recording, entry);
            let is_in = |of: &&Payload| of.thread == thread && time.contains(&of.time.0);
            let mut of_chunk = Vec::new();
            for payload in values.iter().filter(is_in) {
                let Some(PointShape::Message { level }) = shapes.get(payload.function) else {
                    continue;
                };
                messages.count += 1;
                of_chunk.push((payload, level));
            }
            // Within a thread, the latest comes first.
            of_chunk.sort_by_key(|(payload, _)| payload.time);
            let room = MOST_TEXTS - messages.first.len();
            messages.first.extend(of_chunk.into_iter().take(room).map(|(payload, level)| {
                let text = payload.values.iter().flatten().find_map(|value| match value {
                    Value::Text(text) => Some(labels::text(&text.to_string())),
                    _ => None,
                });
                let time_ns = payload.time.0.wrapping_sub(start) as i64;
                MessageText { time_ns, function: payload.function.0, level, text }
            }));
        }
        messages
    }
}
