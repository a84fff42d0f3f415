//! The rings of all CPUs, merged so that every thread's events are in order of time.
//!
//! A thread moves between CPUs, so its events lie in several rings, and rings reach the reader at
//! different times. Events are therefore held until the reader says that nothing older is to be
//! expected (the watermark). Older events that still come are marked late.
//!
//! Order *across* threads matters only to process changes (unions are computed from the spool), and
//! an event-by-event merge of CPUs costs a mispredicted branch or two per event. So events are
//! released in slices of time. Within a slice they come ring by ring, except that the events of
//! threads seen in more than one ring are set aside and sorted. A process change ends a slice.
//!
//! Within a ring, events are nearly sorted: a thread can be interrupted between taking the time and
//! reserving its place. Such an event is inserted a few places back. A ring that is further out of
//! order is sorted as a whole when it is released.

mod ties;

use crate::ingest::change::ProcessEvent;
use crate::ingest::event::Event;
use crate::values::RingPayload;
use std::collections::{BTreeMap, VecDeque};

/// The farthest that an event is moved back. Beyond that, the ring is sorted later.
const NEAR: usize = 32;
/// Events of a ring in a slice: they must stay in the cache between the two passes over them.
const SLICE: usize = 4_096;
/// Slots for the threads of a slice. Two threads that share a slot count as one.
const PLACES: usize = 1_024;
/// Stands for more than one ring.
const SHARED: u64 = 0xffff;

/// Takes the released events. An event older than `late_before` is late: something newer was
/// released in an earlier call.
pub(crate) trait Sink {
    fn events(&mut self, events: &[Event], late_before: u64);
    fn change(&mut self, event: &ProcessEvent, late_before: u64);
    /// Takes a payload, after the event that it belongs to.
    fn payload(&mut self, payload: RingPayload);
    /// Everything up to the latest event seen has been released.
    fn caught_up(&mut self);
}

#[derive(Debug)]
struct Ring {
    /// The held events.
    queue: VecDeque<Event>,
    /// The number of events at the front that are in the current slice.
    slice: usize,
    sorted: bool,
    /// The time of the latest event pushed.
    newest: u64,
}

impl Ring {
    #[inline]
    fn push(&mut self, event: Event) {
        let out_of_order = self.newest > event.ts();
        self.newest = event.ts();
        self.queue.push_back(event);
        if out_of_order {
            self.sink_back();
        }
    }

    #[cold]
    fn sink_back(&mut self) {
        let held = self.queue.make_contiguous();
        let last = held.len() - 1;
        let ts = held[last].ts();
        let near = last.saturating_sub(NEAR);
        match held[near..last].iter().rposition(|event| event.ts() <= ts) {
            Some(at) => held[near + at + 1..].rotate_right(1),
            None if near == 0 => held.rotate_right(1),
            None => self.sorted = false,
        }
        self.newest = held[last].ts();
    }

    fn sort(&mut self) {
        if !self.sorted {
            self.queue.make_contiguous().sort_by_key(Event::ts);
            self.newest = self.queue.back().map_or(self.newest, Event::ts);
            self.sorted = true;
        }
    }

    /// Ends the slice with the last event up to `to`, which is usually near.
    fn cut(&mut self, to: u64) {
        let is_in = |event: &Event| event.ts() <= to;
        let (front, _) = self.queue.as_slices();
        let near = front.len().min(2 * SLICE);
        self.slice = front[..near].partition_point(is_in);
        if self.slice == near {
            self.slice = self.queue.partition_point(is_in);
        }
    }

    /// Returns the slice, in up to two parts.
    fn slice(&self) -> [&[Event]; 2] {
        let (front, back) = self.queue.as_slices();
        let in_front = self.slice.min(front.len());
        [&front[..in_front], &back[..self.slice - in_front]]
    }
}

/// The ring of each thread's events in a slice.
#[derive(Debug)]
struct Owners {
    /// By thread: the slice's number, above 16 bits for the ring's number.
    places: Vec<u64>,
    slice: u64,
    any_shared: bool,
}

impl Owners {
    #[inline]
    fn add(&mut self, tid: u32, ring: usize) {
        let place = &mut self.places[tid as usize % PLACES];
        let mine = self.slice << 16 | ring as u64;
        if *place >> 16 != self.slice {
            *place = mine;
        } else if *place != mine {
            *place |= SHARED;
            self.any_shared = true;
        }
    }

    #[inline]
    fn is_shared(&self, tid: u32) -> bool {
        self.places[tid as usize % PLACES] & SHARED == SHARED
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct EventOrder {
    rings: Vec<Ring>,
    /// Held process changes by time and arrival.
    changes: BTreeMap<(u64, u64), ProcessEvent>,
    next_change: u64,
    /// Held payloads. They are sorted by time when they are released.
    payloads: VecDeque<RingPayload>,
    released: u64,
    owners: Owners,
    /// Events that are set aside, with their rings.
    aside: Vec<(usize, Event)>,
    in_order: Vec<Event>,
}

impl EventOrder {
    pub(crate) fn new(rings: usize) -> Self {
        let owners = Owners { places: vec![0; PLACES], slice: 0, any_shared: false };
        let mut order = Self {
            rings: Vec::new(),
            changes: BTreeMap::new(),
            next_change: 0,
            payloads: VecDeque::new(),
            released: 0,
            owners,
            aside: Vec::new(),
            in_order: Vec::new(),
        };
        order.grow(rings);
        order
    }

    fn grow(&mut self, rings: usize) {
        let ring = || Ring { queue: VecDeque::new(), slice: 0, sorted: true, newest: 0 };
        self.rings.resize_with(rings, ring);
    }

    #[inline]
    pub(crate) fn push_event(&mut self, ring: usize, event: Event) {
        if ring >= self.rings.len() {
            self.grow(ring + 1);
        }
        self.rings[ring].push(event);
    }

    /// Pushes events of a ring in order of arrival.
    pub(crate) fn push_events(&mut self, ring: usize, events: &[Event]) {
        if ring >= self.rings.len() {
            self.grow(ring + 1);
        }
        let ring = &mut self.rings[ring];
        ring.queue.reserve(events.len());
        events.iter().for_each(|&event| ring.push(event));
    }

    /// Pushes events of a ring in order of time.
    pub(crate) fn push_sorted(&mut self, ring: usize, events: &[Event]) {
        let [first, .., last] = events else {
            return events.iter().for_each(|&event| self.push_event(ring, event));
        };
        if ring >= self.rings.len() {
            self.grow(ring + 1);
        }
        let ring = &mut self.rings[ring];
        // An event older than the last one is rare; the ring is sorted later.
        ring.sorted &= ring.newest <= first.ts() || ring.queue.is_empty();
        ring.newest = last.ts();
        ring.queue.extend(events);
    }

    /// Returns the events that are not released yet.
    pub(crate) fn held(&self) -> impl Iterator<Item = &Event> {
        self.rings.iter().flat_map(|ring| &ring.queue)
    }

    pub(crate) fn push_change(&mut self, event: ProcessEvent) {
        self.changes.insert((event.time.0, self.next_change), event);
        self.next_change += 1;
    }

    pub(crate) fn push_payload(&mut self, payload: RingPayload) {
        self.payloads.push_back(payload);
    }

    /// Hands every held event with `ts <= watermark` to `sink`. Those of one thread are in order of
    /// time; ties are in order of ring and arrival, unless `ties` knows better. A process change
    /// comes after all events up to it.
    pub(crate) fn release(&mut self, watermark: u64, sink: &mut impl Sink) {
        let late_before = self.released;
        self.released = watermark.max(self.released);
        self.rings.iter_mut().for_each(Ring::sort);
        self.payloads.make_contiguous().sort_by_key(|payload| payload.time);
        loop {
            let change = self.changes.first_entry().filter(|c| c.key().0 <= self.released);
            let change_at = change.as_ref().map_or(self.released, |change| change.key().0);
            let ends = self.rings.iter().filter_map(|ring| ring.queue.get(SLICE - 1));
            let to = ends.map(Event::ts).fold(change_at, u64::min);
            let change = change.filter(|_| to == change_at).map(|change| change.remove());
            self.release_slice(to, late_before, sink);
            while self.payloads.front().is_some_and(|payload| payload.time.0 <= to) {
                self.payloads.pop_front().into_iter().for_each(|payload| sink.payload(payload));
            }
            sink.caught_up();
            match change {
                Some(change) => sink.change(&change, late_before),
                None if to == self.released => break,
                None => {}
            }
        }
    }

    fn release_slice(&mut self, to: u64, late_before: u64, sink: &mut impl Sink) {
        self.owners.slice += 1;
        self.owners.any_shared = false;
        for (index, ring) in self.rings.iter_mut().enumerate() {
            ring.cut(to);
            for part in ring.slice() {
                for run in part.chunk_by(|a, b| a.who() == b.who()) {
                    self.owners.add(run[0].tid().0, index);
                }
            }
        }
        for (index, ring) in self.rings.iter_mut().enumerate() {
            for part in ring.slice() {
                if self.owners.any_shared {
                    for run in part.chunk_by(|a, b| a.who() == b.who()) {
                        if self.owners.is_shared(run[0].tid().0) {
                            self.aside.extend(run.iter().map(|&event| (index, event)));
                        } else {
                            sink.events(run, late_before);
                        }
                    }
                } else {
                    sink.events(part, late_before);
                }
            }
            ring.queue.drain(..ring.slice);
        }
        self.aside.sort_by_key(|(_, event)| event.ts());
        ties::settle(&mut self.aside);
        self.in_order.extend(self.aside.drain(..).map(|(_, event)| event));
        sink.events(&self.in_order, late_before);
        self.in_order.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{Nanos, Pid, Tid};
    use ctrace_common::{Change, Kind, Record};

    #[derive(Default)]
    struct Seen(Vec<(u32, u32, bool)>);

    impl Sink for Seen {
        fn events(&mut self, events: &[Event], late_before: u64) {
            let seen = events.iter().map(|e| (e.tid().0, e.func().0, e.ts() < late_before));
            self.0.extend(seen);
        }
        fn change(&mut self, event: &ProcessEvent, late_before: u64) {
            let Change::ProcessExit { status, .. } = event.change else { panic!("{event:?}") };
            self.0.push((event.tid.0, status, event.time.0 < late_before));
        }
        fn payload(&mut self, _: RingPayload) {}
        fn caught_up(&mut self) {}
    }

    /// A ring, a thread and a time.
    type Pushed = (usize, u32, u64);

    /// Pushes events numbered in order of arrival, releases at each watermark, and compares the
    /// numbers of thread 1 in order of release.
    fn check(steps: &[(&[Pushed], u64)], expected: &[u32], late: &[u32]) {
        let (mut order, mut seen, mut number) = (EventOrder::new(1), Seen::default(), 0);
        for (events, watermark) in steps {
            for &(ring, tid, ts_ns) in *events {
                let kind = Kind::Enter as u8;
                let record = Record { ts_ns, tid, probe: number, kind, ..Record::default() };
                order.push_event(ring, record.into());
                number += 1;
            }
            order.release(*watermark, &mut seen);
        }
        seen.0.retain(|event| event.0 == 1);
        assert_eq!(seen.0.iter().map(|e| e.1).collect::<Vec<_>>(), expected, "{steps:?}");
        let was_late = seen.0.iter().filter(|e| e.2).map(|e| e.1).collect::<Vec<_>>();
        assert_eq!(was_late, late, "{steps:?}");
    }

    #[test]
    fn a_threads_events_are_in_order_of_time() {
        check(&[(&[(0, 1, 1), (0, 1, 3), (1, 1, 2), (1, 1, 4)], 9)], &[0, 2, 1, 3], &[]);
        check(&[(&[(0, 1, 1), (0, 1, 3), (1, 1, 2), (1, 1, 4)], 2), (&[], 9)], &[0, 2, 1, 3], &[]);
        check(&[(&[(0, 1, 5), (0, 1, 3), (0, 1, 4)], 9)], &[1, 2, 0], &[]);
        check(&[(&[(0, 1, 5)], 4)], &[], &[]);
        check(&[(&[(2, 1, 3), (0, 1, 2), (1, 1, 1)], u64::MAX)], &[2, 1, 0], &[]);
        check(&[(&[(0, 1, 1), (0, 2, 2), (0, 1, 3), (1, 2, 1)], 9)], &[0, 2], &[]);
    }

    #[test]
    fn ties_keep_their_order() {
        check(&[(&[(1, 1, 7), (0, 1, 7), (0, 1, 7), (1, 1, 7)], 7)], &[1, 2, 0, 3], &[]);
        check(&[(&[(0, 1, 7), (0, 1, 8), (0, 1, 7)], 9)], &[0, 2, 1], &[]);
    }

    #[test]
    fn late_events_are_marked() {
        let second: &[_] = &[(1, 1, 9), (0, 1, 10), (0, 1, 11)];
        check(&[(&[(0, 1, 5)], 10), (second, 20)], &[0, 1, 2, 3], &[1]);
        check(&[(&[(0, 1, 5)], 10), (&[(0, 1, 4)], 3)], &[0, 1], &[1]);
    }

    #[test]
    fn a_ring_far_out_of_order_is_sorted() {
        let events = (0..500).map(|i| (0, 1, 1_000 - i)).collect::<Vec<_>>();
        check(&[(&events, 2_000)], &(0..500).rev().collect::<Vec<_>>(), &[]);
    }

    #[test]
    fn a_thread_that_hops_between_rings_stays_in_order_over_many_slices() {
        let count = 5 * SLICE as u32;
        let events =
            (0..count).map(|i| (i as usize / 700 % 3, 1, u64::from(i))).collect::<Vec<_>>();
        check(&[(&events, u64::MAX)], &(0..count).collect::<Vec<_>>(), &[]);
    }

    #[test]
    fn a_process_change_comes_after_the_events_up_to_it() {
        let (mut order, mut seen) = (EventOrder::new(2), Seen::default());
        let event = |ts_ns| {
            let probe = ts_ns as u32;
            Record { ts_ns, tid: probe, probe, kind: Kind::Enter as u8, ..Record::default() }.into()
        };
        for (ring, ts) in [(1, 3), (1, 6), (0, 5), (0, 9), (1, 12)] {
            order.push_event(ring, event(ts));
        }
        for ts_ns in [5, 4, 11] {
            let change = Change::ProcessExit { comm: [0; 16], status: 100 + ts_ns as u32 };
            let (time, pid, tid) = (Nanos(ts_ns), Pid(0), Tid(0));
            order.push_change(ProcessEvent { time, pid, tid, lost_before: 0, change });
        }
        order.release(10, &mut seen);
        assert_eq!(seen.0.iter().map(|e| e.1).collect::<Vec<_>>(), [3, 104, 5, 105, 9, 6]);
    }
}
