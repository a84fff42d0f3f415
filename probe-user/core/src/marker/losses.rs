//! Counts lost marker events as far as buffers can be believed: the target writes their counters.

use super::buffer::{BATCHES_AT_ONCE, LEAST_NANOS_PER_BATCH, MOST_EVENTS_PER_BATCH};
use super::lives::CutOff;
use crate::units::Nanos;
use std::ops::Range;

/// The counts of lost events: see the module.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// The number of threads that can write at a time.
    writers: u64,
    /// Losses reported by later batches.
    told: u64,
    /// Losses of dropped batches that no later batch has reported.
    pending: u64,
    /// Losses of forgotten buffers.
    settled: u64,
    /// The number of impossible counts, and of those since the last [`Self::take_doubts`].
    implausible: u64,
    doubts: u64,
}

impl Losses {
    pub(super) fn of_writers(writers: u64) -> Self {
        Self { writers, ..Self::default() }
    }

    /// Returns the known losses, except the pending ones.
    pub(super) fn known(&self) -> u64 {
        self.told.saturating_add(self.settled)
    }

    /// Returns the number of impossible counts. Their losses are unknown.
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

    /// Returns whether `more` further events can have been lost since tracing began. If not,
    /// records an impossible count.
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

    /// Counts a dropped batch, which replaces an earlier one of its buffer.
    pub(super) fn expect(&mut self, before: Option<CutOff>, missing: u64) {
        let before = before.map_or(0, |cut_off| cut_off.missing);
        self.pending = self.pending.saturating_sub(before).saturating_add(missing);
    }

    /// Settles the missing part of a dropped batch, which will not come.
    pub(super) fn settle_pending(&mut self, cut_off: CutOff, missing: u64) {
        self.pending = self.pending.saturating_sub(cut_off.missing);
        self.settle(missing);
    }

    pub(super) fn tell(&mut self, lost: u64) {
        self.told = self.told.saturating_add(lost);
    }

    /// Subtracts events that arrived after all.
    pub(super) fn take_back(&mut self, found: u64) {
        self.told = self.told.saturating_sub(found);
    }

    pub(super) fn settle(&mut self, lost: u64) {
        self.settled = self.settled.saturating_add(lost);
    }
}

/// The missing events of a buffer whose last batch was dropped.
pub(super) struct Missing {
    /// The number of events that it had seen with that batch.
    pub(super) events: u64,
    /// Events up to this number are accounted for or missing.
    pub(super) known: u64,
    pub(super) missing: u64,
}

impl Missing {
    /// Subtracts the events that a later reading holds.
    pub(super) fn take_off(&mut self, held: Range<u64>) {
        if held.start < self.events {
            let more = held.end.saturating_sub(held.start.max(self.known));
            self.missing = self.missing.saturating_sub(more);
            self.known = self.known.max(held.end);
        }
    }
}
