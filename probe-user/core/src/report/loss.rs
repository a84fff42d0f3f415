//! What a report lacks, by kind.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LossReport {
    /// The exact number of events dropped because a ring was full.
    pub events: u64,
    /// The number of events that came after the hold time.
    pub late: u64,
    /// Hits of USDT probes that are in no pair among them.
    pub calls_untimed: u64,
    /// The number of these hits. A point has no end that could be missing.
    #[serde(skip)]
    pub points: u64,
    pub calls_open: u64,
    pub calls_headless: u64,
    pub decode_errors: u64,
    /// The number of calls in damaged parts of a recording, according to its index.
    #[serde(skip_serializing_if = "is_none")]
    pub unreadable_calls: u64,
    /// The number of unreadable bytes of a recording that no index describes.
    #[serde(skip_serializing_if = "is_none")]
    pub unreadable_bytes: u64,
    /// The number of calls' values that are lost or unreadable; the calls are there.
    #[serde(skip_serializing_if = "is_none")]
    pub payloads: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
pub(super) fn is_none(count: &u64) -> bool {
    *count == 0
}

impl LossReport {
    /// Returns true if a part of a recording is damaged.
    pub fn is_damage(&self) -> bool {
        self.unreadable_calls > 0 || self.unreadable_bytes > 0
    }

    /// Returns the number of events that are missing or wrong, and of calls that cannot be read.
    pub fn missing(&self) -> u64 {
        let kinds = [self.events, self.late, self.decode_errors, self.unreadable_calls];
        kinds.into_iter().fold(0, u64::saturating_add)
    }

    /// Returns the number of calls that are over and whose end was not seen.
    pub fn ended_unseen(&self) -> u64 {
        self.calls_untimed.saturating_sub(self.points)
    }

    /// Adds the losses of another stretch of tracing.
    pub fn add(&mut self, other: &Self) {
        let Self {
            events,
            late,
            calls_untimed,
            points,
            calls_open,
            calls_headless,
            decode_errors,
            unreadable_calls,
            unreadable_bytes,
            payloads,
        } = other;
        for (mine, other) in [
            (&mut self.events, events),
            (&mut self.late, late),
            (&mut self.calls_untimed, calls_untimed),
            (&mut self.points, points),
            (&mut self.calls_open, calls_open),
            (&mut self.calls_headless, calls_headless),
            (&mut self.decode_errors, decode_errors),
            (&mut self.unreadable_calls, unreadable_calls),
            (&mut self.unreadable_bytes, unreadable_bytes),
            (&mut self.payloads, payloads),
        ] {
            *mine = mine.saturating_add(*other);
        }
    }

    /// Adds the losses of the following stretch. Open calls are those at its end.
    pub fn add_later(&mut self, later: &Self) {
        self.calls_open = 0;
        self.add(later);
    }

    /// Takes away an earlier stretch with which this one begins. Open calls are those at the end.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            events: self.events.saturating_sub(earlier.events),
            late: self.late.saturating_sub(earlier.late),
            calls_untimed: self.calls_untimed.saturating_sub(earlier.calls_untimed),
            points: self.points.saturating_sub(earlier.points),
            calls_open: self.calls_open,
            calls_headless: self.calls_headless.saturating_sub(earlier.calls_headless),
            decode_errors: self.decode_errors.saturating_sub(earlier.decode_errors),
            unreadable_calls: self.unreadable_calls.saturating_sub(earlier.unreadable_calls),
            unreadable_bytes: self.unreadable_bytes.saturating_sub(earlier.unreadable_bytes),
            payloads: self.payloads.saturating_sub(earlier.payloads),
        }
    }
}
