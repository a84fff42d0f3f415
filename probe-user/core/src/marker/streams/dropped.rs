//! Tracks batches that the programs had to drop. A later batch of the buffer reports the loss;
//! without one, the dropped batch itself is the only sign of it.

use super::super::buffer::events_in;
use super::super::lives::{CutOff, Life};
use super::super::losses::Missing;
use super::super::reading::BufferId;
use super::Markers;
use crate::units::Nanos;
use std::collections::HashMap;

/// Limit of unreported dropped batches; the losses of others are settled at once.
const MOST_CUT_OFF: usize = 1 << 14;

impl Markers {
    pub(super) fn forget(&mut self, over: Life) {
        // A dropped batch may be reported before the exec that began its buffer's life.
        let goes_on = self.life(over.0) != over;
        let mut of_next_life = Vec::new();
        if let Some(alive) = self.alive.remove(&over) {
            self.cut_offs -= alive.cut_off.len();
            for (address, cut_off) in &alive.cut_off {
                let is_known = alive.buffers.contains_key(address);
                let missing = match is_known || !goes_on {
                    true => alive.missing_of(*address, cut_off.events),
                    false => 0,
                };
                self.losses.settle_pending(*cut_off, missing);
                if !is_known && goes_on {
                    of_next_life.push((*address, cut_off.events));
                }
            }
            alive.buffers.values().for_each(|buffer| self.lanes.give_back(buffer.lane));
        }
        if !goes_on {
            self.lives.remove(&over.0);
        }
        for (address, events) in of_next_life {
            let next = self.alive.get(&self.life(over.0));
            if !next.is_some_and(|next| next.cut_off.contains_key(&address)) {
                self.cut_off_at(BufferId { pid: over.0, address }, events);
            }
        }
    }

    /// Returns the number of missing events that no later batch has reported. All events of an
    /// unknown buffer are missing; held events are not.
    pub(super) fn cut_off(&self) -> u64 {
        if self.cut_offs == 0 {
            return 0;
        }
        let cut_off = self.alive.iter().flat_map(|(life, alive)| {
            alive.cut_off.iter().map(move |(address, cut_off)| {
                let known = alive.buffers.get(address).map(|buffer| buffer.progress.accounted());
                let missing = alive.missing_of(*address, cut_off.events);
                let (events, known) = (cut_off.events, known.unwrap_or(0));
                (BufferId { pid: life.0, address: *address }, Missing { events, known, missing })
            })
        });
        let mut all: HashMap<_, _> = cut_off.collect();
        for (_, reading) in &self.held {
            if let Some(of_buffer) = all.get_mut(&reading.buffer) {
                of_buffer.take_off(events_in(&reading.bytes));
            }
        }
        all.values().map(|of_buffer| of_buffer.missing).fold(0, u64::saturating_add)
    }

    /// Sets the batches dropped by `time`: for each buffer, the number of events up to the last of
    /// them.
    pub fn set_cut_off(&mut self, buffers: impl IntoIterator<Item = (BufferId, u64)>, time: Nanos) {
        // A paused session reports this long after its last sample of the clocks.
        self.latest = self.latest.max(time);
        buffers.into_iter().for_each(|(id, events)| self.cut_off_at(id, events));
    }

    fn cut_off_at(&mut self, id: BufferId, events: u64) {
        let (life, traced) = (self.life(id.pid), self.latest.since(self.begun));
        let alive = self.alive.entry(life).or_default();
        let missing = alive.missing_of(id.address, events);
        let before = alive.cut_off.get(&id.address).map_or(0, |cut_off| cut_off.missing);
        if !self.losses.can_be(missing.saturating_sub(before), traced) {
            return;
        }
        let is_known = alive.cut_off.contains_key(&id.address);
        if is_known || self.cut_offs < MOST_CUT_OFF {
            self.cut_offs += usize::from(!is_known);
            let before = alive.cut_off.insert(id.address, CutOff { events, missing });
            self.losses.expect(before, missing);
        } else if let Some(buffer) = alive.buffer(id.address, self.begun, &mut self.lanes) {
            buffer.progress.settle(events);
            self.losses.settle(missing);
        } else {
            self.losses.disbelieve();
        }
    }
}

#[cfg(test)]
#[path = "dropped_tests.rs"]
mod tests;
