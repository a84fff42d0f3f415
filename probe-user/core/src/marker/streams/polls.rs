//! The events of a slot of an async function: of a poll, or of the end of a call.

use crate::ingest::event::Event;
use crate::marker::layout::{Moment, Slot};
use crate::marker::objects::MarkerPlace;
use ctrace_common::{AsyncCall, Kind};

/// Returns the events of a slot with this stack pointer and value. `None` if its time makes no sense.
pub(super) fn polls(
    slot: &Slot,
    (sp, value): (u64, Option<AsyncCall>),
    who: u64,
    place: MarkerPlace,
    mut time: impl FnMut(u64) -> Option<u64>,
) -> Option<impl Iterator<Item = Event>> {
    let at = Event::place(place.function, place.number);
    let ts = time(slot.time)?;
    let event = |kind, ts, sp| Event::of_scope(kind, ts, sp, who, at);
    let is_end = value.is_some_and(AsyncCall::is_end);
    let exit = match slot.moment {
        Moment::Exit => Some(ts),
        Moment::Whole(duration) if !is_end => Some(time(slot.time.wrapping_add(duration))?),
        _ => None,
    };
    let begins = slot.moment != Moment::Exit && !is_end;
    let enter = begins.then(|| event(Kind::PollEnter, ts, sp));
    let call = value.filter(|value| value.id().is_some());
    let call = call.map(|call| event(Kind::AsyncCall, ts, call.0));
    let exit = exit.map(|ts| event(Kind::PollExit, ts, sp));
    Some([enter, call, exit].into_iter().flatten())
}
