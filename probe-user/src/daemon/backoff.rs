//! When a process that could not be traced is tried again.

use std::time::{Duration, Instant};

/// A program that has just started has not loaded its libraries yet: soon at first.
const PAUSES: [Duration; 7] = [
    Duration::from_millis(200),
    Duration::from_millis(800),
    Duration::from_secs(4),
    Duration::from_secs(15),
    Duration::from_secs(60),
    Duration::from_secs(300),
    Duration::from_secs(1800),
];

/// Failures before they are worth a word.
const QUIET: usize = 2;

/// The failures of one process.
#[derive(Clone, Debug)]
pub(super) struct Retry {
    /// Of the process, so that another one that gets its id begins anew.
    pub(super) start_time: u64,
    failures: usize,
    pub(super) at: Instant,
    /// Not tried at all, since others have the room.
    pub(super) waits_for_room: bool,
}

impl Retry {
    /// After the first failure, or one more.
    pub(super) fn after(before: Option<&Self>, start_time: u64, now: Instant) -> Self {
        let failures = before.filter(|b| b.start_time == start_time).map_or(0, |b| b.failures);
        let pause = PAUSES[failures.min(PAUSES.len() - 1)];
        Self { start_time, failures: failures + 1, at: now + pause, waits_for_room: false }
    }

    /// It was let go for its own good.
    pub(super) fn long(start_time: u64, now: Instant) -> Self {
        let failures = PAUSES.len() - 1;
        Self { start_time, failures, at: now + PAUSES[failures - 1], waits_for_room: false }
    }

    pub(super) fn is_worth_a_word(&self) -> bool {
        self.failures > QUIET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_another_process_begins_anew() {
        let now = Instant::now();
        let mut retry = Retry::after(None, 7, now);
        let mut words = Vec::new();
        for _ in 0..10 {
            words.push(retry.is_worth_a_word());
            let next = Retry::after(Some(&retry), 7, now);
            assert!(next.at >= retry.at);
            retry = next;
        }
        assert_eq!(words[..4], [false, false, true, true]);
        assert_eq!(retry.at - now, Duration::from_secs(1800));
        assert_eq!(Retry::after(Some(&retry), 8, now).at - now, Duration::from_millis(200));
    }
}
