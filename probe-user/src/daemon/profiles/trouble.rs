//! Tells in the log that profiles cannot be sent, and how many are lost: each in one line of ten minutes,
//! because a receiver may refuse one target's profiles at each interval and take those of others.

use std::time::Duration;
use tokio::time::Instant;

/// The time after a line without another of its kind.
const QUIET: Duration = Duration::from_secs(600);

/// What is known of a receiver. Methods return a line to tell, if there is one.
#[derive(Debug)]
pub(super) struct Trouble {
    /// The receiver's name and address.
    receiver: String,
    /// True if it was told that the receiver is away, and it took nothing since then.
    is_away: bool,
    /// The number of lost profiles that no line has told.
    lost: u64,
    /// The last lines: away, lost, no room.
    told: [Option<Instant>; 3],
}

impl Trouble {
    pub(super) fn new(receiver: String) -> Self {
        Self { receiver, is_away: false, lost: 0, told: [None; 3] }
    }

    fn may_tell(&mut self, kind: usize, now: Instant) -> bool {
        let is_due = self.told[kind].is_none_or(|told| now.duration_since(told) >= QUIET);
        if is_due {
            self.told[kind] = Some(now);
        }
        is_due
    }

    /// An attempt failed that is made again.
    pub(super) fn failed(&mut self, why: &str, now: Instant) -> Option<String> {
        if self.is_away || !self.may_tell(0, now) {
            return None;
        }
        self.is_away = true;
        let lost = match std::mem::take(&mut self.lost) {
            0 => String::new(),
            lost => format!("; {lost} were lost before"),
        };
        Some(format!(
            "profiles cannot be sent to {}: {why}; they are tried again, and lost ones are counted{lost}",
            self.receiver
        ))
    }

    /// A profile was given up.
    pub(super) fn lost(&mut self, why: &str, now: Instant) -> Option<String> {
        self.lost += 1;
        // The line at its return has the number.
        if self.is_away || !self.may_tell(1, now) {
            return None;
        }
        let lost = std::mem::take(&mut self.lost);
        Some(format!("profiles for {} are lost ({lost} since this was told): {why}", self.receiver))
    }

    /// A profile found no room.
    pub(super) fn no_room(&mut self, now: Instant) -> Option<String> {
        self.lost += 1;
        self.may_tell(2, now).then(|| {
            format!(
                "profiles for {} are lost: there is no room for more that wait; they are counted",
                self.receiver
            )
        })
    }

    /// A profile was sent.
    pub(super) fn sent(&mut self) -> Option<String> {
        std::mem::take(&mut self.is_away).then(|| {
            let lost = std::mem::take(&mut self.lost);
            format!("profiles can be sent to {} again; {lost} were given up", self.receiver)
        })
    }

    /// A profile is lost because the daemon ends.
    pub(super) fn ended(&mut self) -> Option<String> {
        (!std::mem::replace(&mut self.is_away, true)).then(|| {
            format!("{} does not take the last profiles in time: they are lost", self.receiver)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: Option<String>, wanted: &str) {
        let line = line.expect(wanted);
        assert!(line.contains(wanted), "{line}");
    }

    #[test]
    fn the_line_at_a_return_has_all_lost_ones() {
        let (mut trouble, now) = (Trouble::new("Parca at a:1".to_owned()), Instant::now());
        told(trouble.failed("no connection", now), "to Parca at a:1: no connection");
        assert_eq!(trouble.failed("no connection", now + QUIET * 2), None);
        told(trouble.no_room(now), "no room");
        assert_eq!(trouble.no_room(now), None);
        assert_eq!(trouble.lost("too old", now), None);
        told(trouble.sent(), "again; 3 were given up");
        assert_eq!(trouble.sent(), None);
    }

    #[test]
    fn what_happens_at_each_interval_is_told_every_ten_minutes() {
        let (mut trouble, begin) = (Trouble::new("OTLP at a:1".to_owned()), Instant::now());
        let mut lines = Vec::new();
        // One target's profiles are refused, those of another are taken.
        for second in 0..1_800 {
            let now = begin + Duration::from_secs(second);
            lines.extend(trouble.lost("it answered 400", now));
            lines.extend(trouble.sent());
        }
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].contains("(1 since"), "{lines:?}");
        assert!(lines[1..].iter().all(|line| line.contains("(600 since")), "{lines:?}");
    }

    #[test]
    fn a_receiver_that_comes_and_goes_is_told_every_ten_minutes() {
        let (mut trouble, begin) = (Trouble::new("OTLP at a:1".to_owned()), Instant::now());
        let mut lines = Vec::new();
        for second in 0..1_200 {
            lines.extend(trouble.failed("busy", begin + Duration::from_secs(second)));
            lines.extend(trouble.sent());
        }
        assert_eq!(lines.len(), 4, "{lines:?}");
    }
}
