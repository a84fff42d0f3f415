//! Decides which failures are told: the first one, and another one when it has another reason.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// A reason is told again after this time only.
const BETWEEN: Duration = Duration::from_secs(3600);
/// Limit of reasons within this time: a child can make up any.
const MOST: usize = 32;

#[derive(Default)]
pub(super) struct Reasons {
    last: String,
    /// When reasons were told last.
    told: HashMap<String, Instant>,
}

impl Reasons {
    /// `is_first`: none was told since it last worked.
    pub(super) fn is_to_tell(&mut self, why: &str, is_first: bool, now: Instant) -> bool {
        self.told.retain(|_, told| now.duration_since(*told) < BETWEEN);
        let is_other = self.last != why;
        let has_room = self.told.len() < MOST && !self.told.contains_key(why);
        let is_to_tell = is_first || is_other && has_room;
        if is_to_tell {
            self.last = why.to_owned();
            if has_room {
                self.told.insert(why.to_owned(), now);
            }
        }
        is_to_tell
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_reasons_are_told_each_once_an_hour() {
        let (mut reasons, start) = (Reasons::default(), Instant::now());
        let mut tell = |why: &str, is_first, seconds| {
            reasons.is_to_tell(why, is_first, start + Duration::from_secs(seconds))
        };
        assert!(tell("away", true, 0) && !tell("away", false, 1));
        assert!(tell("denied", false, 2) && !tell("away", false, 3) && !tell("denied", false, 4));
        assert!(tell("away", false, 3_700) && !tell("away", false, 9_000));
        assert!(tell("away", true, 9_001), "it worked meanwhile");
        let made_up = (0..100).filter(|number| tell(&number.to_string(), false, 9_002)).count();
        assert_eq!(made_up, MOST - 1);
    }
}
