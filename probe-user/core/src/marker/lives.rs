//! The state of each process in each of its lives. A target can name any number of buffers and
//! sections, so their numbers are limited.

use super::buffer::BufferState;
use super::losses::Losses;
use super::names::OpenNames;
use super::sites::ProcessSites;
use crate::units::{Nanos, Pid};
use std::collections::HashMap;

/// A process in one of its lives. Each exec begins another.
pub(super) type Life = (Pid, u32);

/// Limit of buffers in a process: more than it has threads.
const MOST_BUFFERS: usize = 1 << 16;
/// Limit of lanes, because each change of a process visits all. Beyond it, buffers share lanes.
const MOST_LANES: usize = 1 << 10;

/// The state of one buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    pub(super) progress: BufferState,
    pub(super) lane: usize,
    /// The number of events lost since the last delivered one.
    pub(super) lost_before: u64,
    /// The number of its events that count as lost.
    pub(super) lost: u64,
    /// The time when its latest reading is due.
    pub(super) due: Nanos,
    /// The time of its latest event, 0 without one.
    pub(super) latest: u64,
}

/// A batch that the programs had to drop.
#[derive(Clone, Copy, Debug)]
pub(super) struct CutOff {
    /// The number of events that the buffer had seen with it.
    pub(super) events: u64,
    /// The number of events then missing.
    pub(super) missing: u64,
}

/// One life of a process.
#[derive(Debug, Default)]
pub(super) struct Alive {
    pub(super) sites: ProcessSites,
    pub(super) names: OpenNames,
    /// Buffers by address.
    pub(super) buffers: HashMap<u64, Buffer>,
    /// Buffers whose last batch was dropped.
    pub(super) cut_off: HashMap<u64, CutOff>,
}

/// Lanes for the events of buffers.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    free: Vec<usize>,
    given: usize,
}

impl Lanes {
    pub(super) fn take(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.given += 1;
            (self.given - 1) % MOST_LANES
        })
    }

    pub(super) fn give_back(&mut self, lane: usize) {
        // A shared lane is kept once.
        if self.free.len() < MOST_LANES {
            self.free.push(lane);
        }
    }
}

impl Buffer {
    /// Records plausible losses before a batch. A negative number is of events that were counted as
    /// lost but arrived later.
    pub(super) fn lose(&mut self, missing: i64, losses: &mut Losses, since_begin: Nanos) {
        let Ok(more) = u64::try_from(missing) else {
            let found = missing.unsigned_abs().min(self.lost);
            self.lost -= found;
            return losses.take_back(found);
        };
        let told = if more == 0 || losses.can_be(more, since_begin) { more } else { 0 };
        self.lost = self.lost.saturating_add(told);
        self.lost_before = self.lost_before.saturating_add(more);
        losses.tell(told);
    }
}

impl Alive {
    /// Makes the state of a forked child: a copy with empty buffers.
    pub(super) fn like(parent: &Self) -> Self {
        Self { sites: parent.sites.clone(), ..Self::default() }
    }

    /// Returns a buffer, possibly new since `begun`; `None` when there are too many.
    pub(super) fn buffer(
        &mut self,
        address: u64,
        begun: Nanos,
        lanes: &mut Lanes,
    ) -> Option<&mut Buffer> {
        let has_room = self.buffers.len() < MOST_BUFFERS;
        match self.buffers.entry(address) {
            std::collections::hash_map::Entry::Occupied(known) => Some(known.into_mut()),
            std::collections::hash_map::Entry::Vacant(new) if has_room => {
                let (progress, lane) = (BufferState::new(begun), lanes.take());
                let (due, latest) = (Nanos::ZERO, 0);
                Some(new.insert(Buffer { progress, lane, lost_before: 0, lost: 0, due, latest }))
            }
            std::collections::hash_map::Entry::Vacant(_) => None,
        }
    }

    /// Takes the dropped batch of a buffer, if nothing of it is missing any more.
    pub(super) fn take_accounted(&mut self, address: u64) -> Option<CutOff> {
        let events = self.cut_off.get(&address)?.events;
        if self.missing_of(address, events) > 0 {
            return None;
        }
        self.cut_off.remove(&address)
    }

    /// Returns the number of missing events if a buffer has seen so many.
    pub(super) fn missing_of(&self, address: u64, events: u64) -> u64 {
        let buffer = self.buffers.get(&address);
        buffer.map_or(events, |buffer| buffer.progress.missing_of(events))
    }
}
