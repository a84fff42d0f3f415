//! Functions for calls whose values are their names: methods of a language, which its runtime announces
//! by one pair of USDT probes for all.
//!
//! Values come beside events, before these are in order. So a call's name is known when its event is applied.

use crate::engine::names::LateNames;
use crate::engine::tracker::Tracker;
use crate::ingest::event::Event;
use crate::recording::payloads::value_of;
use crate::units::{FuncId, Nanos, Pid, Tid};
use crate::values::{RingPayload, Value};
use std::collections::HashMap;

/// The event that begins a call.
type Start = (Pid, Tid, Nanos, FuncId);

/// The functions of calls whose events are not applied yet.
#[derive(Debug, Default)]
pub(crate) struct CallNames(HashMap<Start, FuncId>);

impl CallNames {
    /// Returns the function of a call that begins with this event, if its values have named it.
    pub(super) fn of(&self, event: &Event) -> Option<FuncId> {
        self.0.get(&(event.pid(), event.tid(), Nanos(event.ts()), event.func())).copied()
    }

    /// Forgets the name of a call, whose event is applied. Returns true if these values were its name.
    pub(super) fn forget(&mut self, payload: &RingPayload) -> bool {
        !self.0.is_empty() && self.0.remove(&start(payload)).is_some()
    }
}

/// Notes the name of a call, if these values are one.
pub(super) fn note(payload: &RingPayload, names: &mut LateNames, tracker: &mut Tracker) {
    let info = tracker.functions.get(payload.function.index());
    let Some((info, between)) = info.and_then(|info| Some((info, info.named_by?))) else { return };
    let kinds = info.values.iter().map(|value| value.kind);
    let read = payload.values(kinds).zip(&info.values);
    let texts = read.map(|(read, info)| match value_of(info, payload, read) {
        Some(Value::Text(text)) => Some(text.to_string()),
        _ => None,
    });
    // A part that could not be read would make it the name of another one.
    let Some(parts) = texts.collect::<Option<Vec<String>>>() else { return };
    let name = parts.join(between);
    if let Some(function) = names.of(payload.function, name.as_bytes(), tracker) {
        tracker.call_names.0.insert(start(payload), function);
    }
}

fn start(payload: &RingPayload) -> Start {
    (payload.pid, payload.tid, payload.time, payload.function)
}
