//! The way of what marker buffers hold: events to the order of all events, values beside them, names to
//! functions, requests to whoever answers them.

use super::names::LateNames;
use super::requests::Requests;
use super::tracker::Tracker;
use crate::ingest::event::Event;
use crate::ingest::order::EventOrder;
use crate::marker::{EntryValues, MarkerSink, Request};
use crate::units::FuncId;
use crate::values::RingPayload;

/// Takes what comes out of marker buffers. Their lanes follow the rings.
pub(super) struct MarkerLanes<'a> {
    pub(super) order: &'a mut EventOrder,
    pub(super) rings: usize,
    pub(super) tracker: &'a mut Tracker,
    pub(super) names: &'a mut LateNames,
    pub(super) requests: &'a mut Requests,
}

impl MarkerSink for MarkerLanes<'_> {
    fn events(&mut self, lane: usize, events: &[Event]) {
        self.order.push_sorted(self.rings + lane, events);
    }

    fn named(&mut self, scope: FuncId, name: &[u8]) -> Option<FuncId> {
        self.names.of(scope, name, self.tracker)
    }

    fn values(&mut self, event: &Event, values: Option<EntryValues<'_>>) {
        let payload = values
            .and_then(|EntryValues { numbers, text }| RingPayload::of_marks(event, numbers, text));
        match payload {
            Some(payload) => self.order.push_payload(payload),
            None => self.tracker.lose_values(event),
        }
    }

    fn asked(&mut self, request: Request) {
        self.requests.add(request);
    }
}
