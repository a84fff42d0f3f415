//! The rings of all CPUs, merged into one stream in order of time.
//!
//! A thread moves between CPUs, so its events lie in several rings, and rings reach the reader at
//! different times. Events are therefore held until the reader says that nothing older is to be
//! expected (the watermark); what comes later all the same is marked late.
//!
//! Within a ring, events are nearly sorted: a thread can be interrupted between taking the time
//! and reserving its place. Such an event is inserted a few places back. A ring that is further
//! out of order is sorted as a whole when it is released.

use crate::merge::{Frontier, Head};
use ctrace_common::{Control, Kind, Record};
use std::collections::BTreeMap;

/// How far back an event may be inserted before the ring is left to be sorted.
const NEAR: usize = 32;

/// Takes the ordered stream. `late`: older than what was released before.
pub(crate) trait Sink {
    fn event(&mut self, record: &Record, late: bool);
    fn control(&mut self, control: &Control, late: bool);
}

#[derive(Debug)]
struct Ring {
    /// Held events; those before `head` are released.
    queue: Vec<Record>,
    head: usize,
    sorted: bool,
}

impl Ring {
    #[inline]
    fn push(&mut self, record: Record) {
        let out_of_order = self.queue.last().is_some_and(|last| last.ts_ns > record.ts_ns);
        self.queue.push(record);
        if out_of_order {
            self.sink_back();
        }
    }

    #[cold]
    fn sink_back(&mut self) {
        let held = &mut self.queue[self.head..];
        let last = held.len() - 1;
        let ts = held[last].ts_ns;
        let near = last.saturating_sub(NEAR);
        match held[near..last].iter().rposition(|record| record.ts_ns <= ts) {
            Some(at) => held[near + at + 1..].rotate_right(1),
            None if near == 0 => held.rotate_right(1),
            None => self.sorted = false,
        }
    }

    fn sort(&mut self) {
        if !self.sorted {
            self.queue[self.head..].sort_by_key(|record| record.ts_ns);
            self.sorted = true;
        }
    }

    fn next_at(&self) -> Option<u64> {
        self.queue.get(self.head).map(|record| record.ts_ns)
    }

    /// Frees the room of released events, at a cost of at most one move per event.
    fn compact(&mut self) {
        if self.head * 2 >= self.queue.len() {
            self.queue.drain(..self.head);
            self.head = 0;
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Order {
    rings: Vec<Ring>,
    /// What control records carry beyond a record; the queue holds the key in place of `sp`.
    controls: BTreeMap<u64, Control>,
    next_control: u64,
    released: u64,
    frontier: Frontier,
}

impl Order {
    pub(crate) fn new(rings: usize) -> Self {
        let mut order = Self::default();
        order.grow(rings);
        order
    }

    fn grow(&mut self, rings: usize) {
        self.rings.resize_with(rings, || Ring { queue: Vec::new(), head: 0, sorted: true });
    }

    #[inline]
    pub(crate) fn push_event(&mut self, ring: usize, record: Record) {
        if ring >= self.rings.len() {
            self.grow(ring + 1);
        }
        self.rings[ring].push(record);
    }

    pub(crate) fn push_control(&mut self, ring: usize, control: Control) {
        let key = self.next_control;
        self.next_control += 1;
        self.controls.insert(key, control);
        self.push_event(ring, Record { sp: key, ..control.record });
    }

    /// Hands every held event with `ts <= watermark` to `sink`, in order of time; ties in order of
    /// ring, then of arrival.
    pub(crate) fn release(&mut self, watermark: u64, sink: &mut impl Sink) {
        let late_before = self.released;
        let limit = watermark.max(self.released);
        self.released = limit;
        for (source, ring) in self.rings.iter_mut().enumerate() {
            ring.sort();
            if let Some(ts) = ring.next_at().filter(|&ts| ts <= limit) {
                self.frontier.push(Head { key: !ts, source });
            }
        }
        let mut next = self.frontier.pop();
        while let Some(head) = next {
            let run_end = match self.frontier.peek() {
                Some(other) if other.source < head.source => {
                    limit.min((!other.key).wrapping_sub(1))
                }
                Some(other) => limit.min(!other.key),
                None => limit,
            };
            let ring = &mut self.rings[head.source];
            let mut at = ring.head;
            for record in &ring.queue[ring.head..] {
                if record.ts_ns > run_end {
                    break;
                }
                at += 1;
                let late = record.ts_ns < late_before;
                if record.kind < Kind::Fork as u8 {
                    sink.event(record, late);
                } else if let Some(control) = self.controls.remove(&record.sp) {
                    sink.control(&control, late);
                }
            }
            ring.head = at;
            next = match ring.next_at() {
                Some(ts) if ts <= limit => {
                    Some(self.frontier.exchange(Head { key: !ts, source: head.source }))
                }
                _ => self.frontier.pop(),
            };
        }
        for ring in &mut self.rings {
            ring.compact();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Vec<(u64, u32, bool)>);

    impl Sink for Seen {
        fn event(&mut self, record: &Record, late: bool) {
            self.0.push((record.ts_ns, record.probe, late));
        }
        fn control(&mut self, control: &Control, late: bool) {
            self.0.push((control.record.ts_ns, control.arg0 as u32, late));
        }
    }

    /// Pushes (ring, ts) numbered in order of arrival, releases at each watermark, and compares
    /// the numbers in order of release.
    fn check(steps: &[(&[(usize, u64)], u64)], expected: &[u32], late: &[u32]) {
        let (mut order, mut seen, mut number) = (Order::new(1), Seen::default(), 0);
        for (events, watermark) in steps {
            for &(ring, ts) in *events {
                let kind = Kind::Enter as u8;
                order.push_event(
                    ring,
                    Record { ts_ns: ts, probe: number, kind, ..Record::default() },
                );
                number += 1;
            }
            order.release(*watermark, &mut seen);
        }
        assert_eq!(seen.0.iter().map(|e| e.1).collect::<Vec<_>>(), expected, "{steps:?}");
        let was_late = seen.0.iter().filter(|e| e.2).map(|e| e.1).collect::<Vec<_>>();
        assert_eq!(was_late, late, "{steps:?}");
    }

    #[test]
    fn releases_in_order_of_time() {
        check(&[(&[(0, 1), (0, 3), (1, 2), (1, 4)], 9)], &[0, 2, 1, 3], &[]);
        check(&[(&[(0, 1), (0, 3), (1, 2), (1, 4)], 2), (&[], 9)], &[0, 2, 1, 3], &[]);
        check(&[(&[(0, 5), (0, 3), (0, 4)], 9)], &[1, 2, 0], &[]);
        check(&[(&[(0, 5)], 4)], &[], &[]);
        check(&[(&[(2, 3), (0, 2), (1, 1)], u64::MAX)], &[2, 1, 0], &[]);
    }

    #[test]
    fn ties_keep_their_order() {
        check(&[(&[(1, 7), (0, 7), (0, 7), (1, 7)], 7)], &[1, 2, 0, 3], &[]);
        check(&[(&[(0, 7), (0, 8), (0, 7)], 9)], &[0, 2, 1], &[]);
    }

    #[test]
    fn late_events_are_marked() {
        check(&[(&[(0, 5)], 10), (&[(1, 9), (0, 10), (0, 11)], 20)], &[0, 1, 2, 3], &[1]);
        check(&[(&[(0, 5)], 10), (&[(0, 4)], 3)], &[0, 1], &[1]);
    }

    #[test]
    fn a_ring_far_out_of_order_is_sorted() {
        let events = (0..500).map(|i| (0, 1_000 - i)).collect::<Vec<_>>();
        check(&[(&events, 2_000)], &(0..500).rev().collect::<Vec<_>>(), &[]);
    }

    #[test]
    fn control_records_keep_their_place() {
        let (mut order, mut seen) = (Order::new(2), Seen::default());
        let record = Record { ts_ns: 5, kind: Kind::Fork as u8, ..Record::default() };
        order.push_control(1, Control { record, arg0: 77, ..Control::default() });
        let record = Record { ts_ns: 6, kind: Kind::Enter as u8, ..Record::default() };
        order.push_event(0, record);
        order.release(9, &mut seen);
        assert_eq!(seen.0, [(5, 77, false), (6, 0, false)]);
        assert!(order.controls.is_empty());
    }
}
