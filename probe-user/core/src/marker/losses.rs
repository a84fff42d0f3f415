//! How many events of markers are lost, as far as what buffers tell can be believed: their counters
//! are the target's to write.

use super::buffer::{BATCHES_AT_ONCE, LEAST_NANOS_PER_BATCH, MOST_EVENTS_PER_BATCH};
use super::lives::CutOff;
use crate::units::Nanos;
use std::ops::Range;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Threads that can write at a time.
    writers: u64,
    /// Told by later batches.
    told: u64,
    /// Of batches that were dropped and are not told of yet.
    pending: u64,
    /// Of buffers that are forgotten.
    settled: u64,
    /// Counts that cannot be, and those of them that were not taken note of.
    implausible: u64,
    doubts: u64,
}

impl Losses {
    pub(super) fn of_writers(writers: u64) -> Self {
        Self { writers, ..Self::default() }
    }

    /// What is known, but for what is pending.
    pub(super) fn known(&self) -> u64 {
        self.told.saturating_add(self.settled)
    }

    /// How many counts could not be: what they told of is lost, and nobody knows how much that is.
    pub(super) fn implausible(&self) -> u64 {
        self.implausible
    }

    pub(super) fn disbelieve(&mut self) {
        self.implausible = self.implausible.saturating_add(1);
        self.doubts = self.doubts.saturating_add(1);
    }

    pub(super) fn take_doubts(&mut self) -> u64 {
        std::mem::take(&mut self.doubts)
    }

    /// Whether so many events more can have been lost in the time since tracing began.
    pub(super) fn can_be(&mut self, more: u64, since_begin: Nanos) -> bool {
        let batches = since_begin.0 / LEAST_NANOS_PER_BATCH + BATCHES_AT_ONCE;
        let most =
            batches.saturating_mul(MOST_EVENTS_PER_BATCH).saturating_mul(self.writers.max(1));
        let all = self.known().saturating_add(self.pending).saturating_add(more);
        let can_be = all <= most;
        if !can_be {
            self.disbelieve();
        }
        can_be
    }

    /// A batch was dropped, in place of an earlier one of its buffer.
    pub(super) fn expect(&mut self, before: Option<CutOff>, missing: u64) {
        let before = before.map_or(0, |cut_off| cut_off.missing);
        self.pending = self.pending.saturating_sub(before).saturating_add(missing);
    }

    /// So much of a dropped batch is missing, and will not come.
    pub(super) fn settle_pending(&mut self, cut_off: CutOff, missing: u64) {
        self.pending = self.pending.saturating_sub(cut_off.missing);
        self.settle(missing);
    }

    pub(super) fn tell(&mut self, lost: u64) {
        self.told = self.told.saturating_add(lost);
    }

    /// So many came after all.
    pub(super) fn take_back(&mut self, found: u64) {
        self.told = self.told.saturating_sub(found);
    }

    pub(super) fn settle(&mut self, lost: u64) {
        self.settled = self.settled.saturating_add(lost);
    }
}

/// Of a buffer whose last batch was dropped.
pub(super) struct Missing {
    /// That it had seen with that one.
    pub(super) events: u64,
    /// Up to here they are accounted for, or missing.
    pub(super) known: u64,
    pub(super) missing: u64,
}

impl Missing {
    /// A later reading has these.
    pub(super) fn take_off(&mut self, held: Range<u64>) {
        if held.start < self.events {
            let more = held.end.saturating_sub(held.start.max(self.known));
            self.missing = self.missing.saturating_sub(more);
            self.known = self.known.max(held.end);
        }
    }
}
