//! Points of markers: messages as instants, plots as counters.

use super::{COUNTER, COUNTER_TRACK, INSTANT, Message, Sequence, Trace, annotation, clean, field};
use crate::points::PointShape;
use crate::recording::Recording;
use crate::report::{LOST_TEXT, NamedValues};
use crate::units::{FuncId, ThreadId};
use crate::values::Value;

/// Returns whether there are any.
pub(super) fn are_in(recording: &Recording) -> bool {
    recording.functions().iter().any(|info| info.point.is_some())
}

impl Trace<'_, '_> {
    /// Writes a point. A plot without a number has none.
    pub(super) fn point(
        &mut self,
        thread: ThreadId,
        sequence: &mut Sequence,
        at: u64,
        function: FuncId,
        values: Option<&NamedValues>,
    ) {
        let info = self.recording.functions().get(function.index());
        let is_lost = values.is_none() && info.is_some_and(|info| !info.values.is_empty());
        let values = values.map(|values| &*values.0).unwrap_or_default();
        let mut event = Message::default();
        let shape = PointShape::of(self.recording.functions(), function);
        if shape == Some(PointShape::Plot) {
            let Some(count) = values.iter().find_map(|(_, value)| count(value.as_ref()?)) else {
                return;
            };
            event.number(field::EVENT_TYPE, COUNTER);
            event.number(field::EVENT_TRACK, self.counter(thread, function));
            match count {
                Count::Whole(count) => event.number(field::EVENT_COUNT, count as u64),
                Count::Real(count) => event.double(field::EVENT_REAL_COUNT, count),
            };
        } else {
            event.number(field::EVENT_TYPE, INSTANT);
            let label = self.labels.function(function);
            let (text, others) = match values {
                [others @ .., (_, Some(Value::Text(text)))] => (Some(text), others),
                all => (None, all),
            };
            let text = text.map(|text| clean(&text.to_string()).into_owned());
            event.text(field::EVENT_OWN_NAME, text.as_deref().unwrap_or(label));
            let level = shape.and_then(PointShape::level).map(|level| ("level", level.name()));
            let name = text.is_some().then_some(("marker", label));
            let is_message = matches!(shape, Some(PointShape::Message { .. }));
            let lost = (is_message && is_lost).then_some(("text", LOST_TEXT));
            for (key, value) in level.into_iter().chain(name).chain(lost) {
                let mut annotation = Message::default();
                annotation.text(10, key).text(6, value);
                event.message(field::EVENT_ANNOTATION, &annotation);
            }
            for (name, value) in others {
                event.message(field::EVENT_ANNOTATION, &annotation(name, value.as_ref()));
            }
        }
        let packet = &mut self.packet;
        packet.number(field::TIMESTAMP, at.saturating_sub(sequence.last));
        packet.number(field::SEQUENCE, sequence.id).message(field::TRACK_EVENT, &event);
        sequence.last = at;
        self.end_packet();
    }

    /// Returns the track of a plot in a process, and introduces it the first time.
    fn counter(&mut self, thread: ThreadId, function: FuncId) -> u64 {
        let pid = self.recording.thread(thread).map_or(0, |thread| thread.pid.0);
        let next = COUNTER_TRACK | self.counters.len() as u64;
        if let Some(track) = self.counters.get(&(pid, function)) {
            return *track;
        }
        self.counters.insert((pid, function), next);
        let info = self.recording.functions().get(function.index());
        let unit = info.and_then(|info| info.values.first()?.unit.as_deref());
        let name = self.labels.function(function).to_owned();
        self.counter_track(next, pid, &name, unit);
        next
    }
}

/// A number of a counter.
enum Count {
    Whole(i64),
    Real(f64),
}

fn count(value: &Value) -> Option<Count> {
    match value {
        Value::Signed(number) => Some(Count::Whole(*number)),
        Value::Unsigned(number) => {
            Some(i64::try_from(*number).map_or(Count::Real(*number as f64), Count::Whole))
        }
        Value::Float(number) => Some(Count::Real(number.get())),
        Value::Bool(is_true) => Some(Count::Whole(i64::from(*is_true))),
        Value::Pointer(_) | Value::Char(_) | Value::Text(_) | Value::Enumerator(_) => None,
    }
}
