//! Limits a number per minute. A minute begins with its first item.

use std::time::Duration;
use tokio::time::Instant;

const MINUTE: Duration = Duration::from_secs(60);

pub(super) struct Limit {
    most: usize,
    taken: usize,
    began: Option<Instant>,
}

impl Limit {
    pub(super) fn new(most: u32) -> Self {
        Self { most: most as usize, taken: 0, began: None }
    }

    /// Returns how many may be taken now.
    pub(super) fn room(&mut self, now: Instant) -> usize {
        if self.began.is_none_or(|began| now.duration_since(began) >= MINUTE) {
            (self.began, self.taken) = (Some(now), 0);
        }
        self.most - self.taken
    }

    /// Takes some, at most as many as there is room for.
    pub(super) fn take(&mut self, count: usize) {
        self.taken += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_minute_brings_room_again() {
        let mut limit = Limit::new(3);
        let begin = Instant::now();
        assert_eq!(limit.room(begin), 3);
        limit.take(2);
        assert_eq!(limit.room(begin + Duration::from_secs(30)), 1);
        limit.take(1);
        assert_eq!(limit.room(begin + Duration::from_secs(59)), 0);
        assert_eq!(limit.room(begin + Duration::from_secs(60)), 3);
    }
}
