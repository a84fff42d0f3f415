//! The events of a slot of an async function: of a poll, or of the end of a call.

use crate::ingest::event::Event;
use crate::marker::layout::{Moment, Slot};
use crate::marker::objects::MarkerPlace;
use crate::marker::pieces::EntryValues;
use ctrace_common::{AsyncCall, Kind};

/// Adds the events of a slot with this stack pointer and value. Returns `false` if something of it makes no
/// sense. A poll without its value is a poll, although nobody knows of which call.
pub(super) fn add_polls(
    (slot, sp): (&Slot, u64),
    values: Option<EntryValues<'_>>,
    (who, place): (u64, MarkerPlace),
    mut time: impl FnMut(u64) -> Option<u64>,
    events: &mut Vec<Event>,
) -> bool {
    let at = Event::place(place.function, place.number);
    let Some(ts) = time(slot.time) else { return false };
    let event = |kind, ts, sp| Event::of_scope(kind, ts, sp, who, at);
    if slot.moment == Moment::Exit {
        events.push(event(Kind::PollExit, ts, sp));
        return true;
    }
    let value = values.and_then(|values| values.numbers.first().copied().map(AsyncCall));
    let is_end = value.is_some_and(AsyncCall::is_end);
    if !is_end {
        events.push(event(Kind::PollEnter, ts, sp));
    }
    if let Some(call) = value.filter(|value| value.id().is_some()) {
        events.push(event(Kind::AsyncCall, ts, call.0));
    }
    if let Moment::Whole(duration) = slot.moment
        && !is_end
        && let Some(ts) = time(slot.time.wrapping_add(duration))
    {
        events.push(event(Kind::PollExit, ts, sp));
    }
    value.is_some()
}
