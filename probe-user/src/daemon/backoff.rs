//! Decides when to retry a process that could not be traced, and remembers why.

use super::ids::TargetName;
use std::time::{Duration, Instant};

/// A program that has just started has not loaded its libraries yet, so the first pauses are short.
const PAUSES: [Duration; 7] = [
    Duration::from_millis(200),
    Duration::from_millis(800),
    Duration::from_secs(4),
    Duration::from_secs(15),
    Duration::from_secs(60),
    Duration::from_secs(300),
    Duration::from_secs(1800),
];

/// The pause of a process whose probes slowed it too much. Each further time doubles it: every try
/// slows the process again.
const FIRST_REST: Duration = Duration::from_secs(300);
const LONGEST_REST: Duration = Duration::from_secs(24 * 3600);

/// Failures before the first message.
const QUIET: usize = 2;

/// The reason why a process, known by its start time, could not be traced for a target.
pub(super) struct Failure<'a> {
    pub(super) start_time: u64,
    pub(super) target: &'a TargetName,
    pub(super) why: &'a str,
}

/// The number of times that a process was let go because its probes slowed it too much.
#[derive(Clone, Copy)]
pub(super) struct Slowed {
    /// The process's start.
    pub(super) start_time: u64,
    times: u32,
}

impl Slowed {
    pub(super) fn once_more(before: Option<Self>, start_time: u64) -> Self {
        let before = before.filter(|before| before.start_time == start_time);
        Self { start_time, times: before.map_or(0, |before| before.times).saturating_add(1) }
    }
}

/// The failures of one process.
#[derive(Clone, Debug)]
pub(super) struct Retry {
    /// The process's start, so that another process with its id begins anew.
    pub(super) start_time: u64,
    pub(super) target: TargetName,
    pub(super) why: String,
    failures: usize,
    pub(super) at: Instant,
    /// True if it was not tried for lack of room.
    pub(super) waits_for_room: bool,
}

impl Retry {
    /// Makes the state after the first or a further failure of a process.
    pub(super) fn after(before: Option<&Self>, failure: Failure<'_>, now: Instant) -> Self {
        let before = before.filter(|before| before.start_time == failure.start_time);
        let failures = before.map_or(0, |before| before.failures);
        Self::new(failure, failures + 1, now + PAUSES[failures.min(PAUSES.len() - 1)])
    }

    /// Makes a long pause for a process that was let go for its own good.
    pub(super) fn of_slowed(slowed: Slowed, failure: Failure<'_>, now: Instant) -> Self {
        let pause = FIRST_REST * 2_u32.saturating_pow(slowed.times - 1);
        Self::new(failure, PAUSES.len() - 1, now + pause.min(LONGEST_REST))
    }

    fn new(failure: Failure<'_>, failures: usize, at: Instant) -> Self {
        let Failure { start_time, target, why } = failure;
        let (target, why) = (target.clone(), why.to_owned());
        Self { start_time, target, why, failures, at, waits_for_room: false }
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
        let target = TargetName::default();
        let failure = |start_time| Failure { start_time, target: &target, why: "no" };
        let mut retry = Retry::after(None, failure(7), now);
        let mut words = Vec::new();
        for _ in 0..10 {
            words.push(retry.is_worth_a_word());
            let next = Retry::after(Some(&retry), failure(7), now);
            assert!(next.at >= retry.at);
            retry = next;
        }
        assert_eq!(words[..4], [false, false, true, true]);
        assert_eq!(retry.at - now, Duration::from_secs(1800));
        assert_eq!(
            Retry::after(Some(&retry), failure(8), now).at - now,
            Duration::from_millis(200)
        );
    }

    #[test]
    fn a_process_that_is_slowed_again_and_again_is_left_alone_for_longer() {
        let now = Instant::now();
        let target = TargetName::default();
        let mut slowed = None;
        let mut rests = Vec::new();
        for start_time in [7, 7, 7, 8].into_iter().chain([8; 40]) {
            let failure = Failure { start_time, target: &target, why: "slow" };
            let times = Slowed::once_more(slowed, start_time);
            rests.push((Retry::of_slowed(times, failure, now).at - now).as_secs());
            slowed = Some(times);
        }
        assert_eq!(rests[..6], [300, 600, 1200, 300, 600, 1200]);
        assert_eq!(rests[43], 86_400);
    }
}
