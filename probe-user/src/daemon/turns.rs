//! Lets one session at a time read a program, because that takes memory. A file system may never
//! answer, so a slow session loses its turn, and others read beside it.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The longest turn. Most programs take a tenth of a second.
const LONGEST: Duration = Duration::from_secs(10);

static TURNS: Turns = Turns::new(LONGEST);

/// Waits for the turn of this session.
pub(super) fn take() -> Turn<'static> {
    TURNS.take()
}

struct Turns {
    longest: Duration,
    state: Mutex<State>,
    freed: Condvar,
}

struct State {
    /// The current holder, and the beginning of its turn.
    holder: Option<(u64, Instant)>,
    turns: u64,
}

/// A turn, which ends on drop.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    number: u64,
}

impl Turns {
    const fn new(longest: Duration) -> Self {
        let state = Mutex::new(State { holder: None, turns: 0 });
        Self { longest, state, freed: Condvar::new() }
    }

    fn take(&self) -> Turn<'_> {
        let mut state = self.state();
        while let Some((_, since)) = state.holder {
            let left = self.longest.saturating_sub(since.elapsed());
            if left.is_zero() {
                break;
            }
            let waited = self.freed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.turns += 1;
        state.holder = Some((state.turns, Instant::now()));
        Turn { turns: self, number: state.turns }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.turns.state();
        if state.holder.is_some_and(|(number, _)| number == self.number) {
            state.holder = None;
            self.turns.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_until_one_is_slow() {
        let turns = Turns::new(Duration::from_millis(50));
        let begun = Instant::now();
        let slow = turns.take();
        let second = turns.take();
        assert!(begun.elapsed() >= turns.longest, "it waited as long as it should");
        drop(slow);
        assert!(turns.state().holder.is_some(), "the turn is the second one's by now");
        drop(second);
        assert!(turns.state().holder.is_none());
    }

    #[test]
    fn the_next_begins_when_one_is_done() {
        let turns = Turns::new(Duration::from_secs(3600));
        let first = turns.take();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| drop(turns.take()));
            drop(first);
            second.join().expect("it had its turn");
        });
    }
}
