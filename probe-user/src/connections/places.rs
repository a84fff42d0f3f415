//! Limits connections. None of them keeps its place by doing nothing.
//!
//! A connection waits for its peer to ask, is being answered, or waits for its peer to take the answer.
//! When all places are taken, a newcomer gets the place of the longest wait. An answer is not cut off
//! before a peer has had time to take it, unless most places are taken by such peers. If all are being
//! answered, a newcomer gets the place of the first to ask again. So neither silence nor slowness nor
//! haste keeps others out.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The time between two searches for a place.
const STEP: Duration = Duration::from_millis(5);
/// The time that a peer has to take an answer, before a newcomer may have its place.
const SENDING: Duration = Duration::from_secs(10);

pub(crate) struct ConnectionPlaces {
    most: usize,
    /// The least time that a connection keeps its place.
    grace: Duration,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    last: u64,
    /// True while somebody looks for a place.
    is_short: bool,
    /// Sorted by waiting time, the longest first.
    connections: Vec<Connection>,
}

struct Connection {
    id: u64,
    since: Instant,
    state: State,
    close: Box<dyn FnOnce() + Send>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    Answered,
    Sending,
    Again,
}

/// A place, until it is dropped or goes to a newcomer.
pub(crate) struct ConnectionPlace {
    id: u64,
    places: Arc<ConnectionPlaces>,
}

impl ConnectionPlaces {
    pub(crate) fn new(most: usize, grace: Duration) -> Arc<Self> {
        Arc::new(Self { most, grace, taken: Mutex::default() })
    }

    /// Takes a place for a connection that `close` can end. Returns `None` after the time limit.
    pub(crate) fn take(
        self: &Arc<Self>,
        patience: Duration,
        close: impl FnOnce() + Send + 'static,
    ) -> Option<ConnectionPlace> {
        let end = Instant::now() + patience;
        let mut taken = self.lock();
        while !self.make_room(&mut taken) {
            taken.is_short = Instant::now() < end;
            if !taken.is_short {
                return None;
            }
            drop(taken);
            std::thread::sleep(STEP);
            taken = self.lock();
        }
        taken.is_short = false;
        taken.last += 1;
        let (id, since, close) = (taken.last, Instant::now(), Box::new(close));
        taken.connections.push(Connection { id, since, state: State::New, close });
        Some(ConnectionPlace { id, places: Arc::clone(self) })
    }

    fn make_room(&self, taken: &mut Taken) -> bool {
        if taken.connections.len() < self.most {
            return true;
        }
        // Where many take their answers slowly, the longest of them makes room.
        let sending = taken.connections.iter().filter(|of| of.state == State::Sending).count();
        let is_crowded = sending > self.most.div_ceil(2);
        let waits = |of: &Connection| match of.state {
            State::Answered => false,
            State::Sending => is_crowded || of.since.elapsed() >= SENDING,
            State::New | State::Again => of.since.elapsed() >= self.grace,
        };
        let Some(longest) = taken.connections.iter().position(waits) else { return false };
        (taken.connections.remove(longest).close)();
        true
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionPlace {
    /// Keeps the place until the peer's request is answered. Returns false if a newcomer has it.
    pub(crate) fn keep(&self) -> bool {
        self.turn(State::Answered)
    }

    /// Waits for the peer to take the answer, which is the last. Returns false if a newcomer has the
    /// place.
    pub(crate) fn send(&self) -> bool {
        self.turn(State::Sending)
    }

    /// Waits for the peer again. Returns false if a newcomer has the place.
    pub(crate) fn wait(&self) -> bool {
        self.turn(State::Again)
    }

    fn turn(&self, state: State) -> bool {
        let mut taken = self.places.lock();
        let Some(at) = taken.connections.iter().position(|other| other.id == self.id) else {
            return false;
        };
        let connection = taken.connections.remove(at);
        if taken.is_short && (connection.state, state) == (State::Again, State::Answered) {
            return false;
        }
        taken.connections.push(Connection { state, since: Instant::now(), ..connection });
        true
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        self.places.lock().connections.retain(|other| other.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};

    const NO_PATIENCE: Duration = Duration::ZERO;

    /// Enters a connection that reports when it is closed.
    fn enter(places: &Arc<ConnectionPlaces>) -> Option<(ConnectionPlace, Receiver<()>)> {
        let (closed, tells) = channel();
        let place = places.take(NO_PATIENCE, move || closed.send(()).expect("somebody listens"))?;
        Some((place, tells))
    }

    #[test]
    fn a_newcomer_has_the_place_of_who_waits_longest() {
        let places = ConnectionPlaces::new(3, NO_PATIENCE);
        let [first, second, third] = [(); 3].map(|()| enter(&places).expect("there is room"));
        assert!(first.0.keep() && first.0.wait(), "it has asked and waits again");
        assert!(third.0.keep());
        let fourth = enter(&places).expect("the second waits longest");
        assert!(second.1.try_recv().is_ok() && !second.0.keep());
        assert!(first.1.try_recv().is_err() && third.1.try_recv().is_err());
        assert!(first.0.keep() && fourth.0.keep());
        assert!(enter(&places).is_none(), "all are being answered");
        drop(third);
        assert!(enter(&places).is_some());
        drop(second);
        assert_eq!(places.lock().connections.len(), 2, "a place that was lost is not given back");
    }

    #[test]
    fn an_answer_is_not_cut_off() {
        let places = ConnectionPlaces::new(1, NO_PATIENCE);
        let (first, closed) = enter(&places).expect("there is room");
        assert!(first.keep() && first.send());
        assert!(enter(&places).is_none() && closed.try_recv().is_err());
        drop(first);
        assert!(enter(&places).is_some());
    }

    #[test]
    fn many_who_take_answers_slowly_give_way() {
        let places = ConnectionPlaces::new(2, NO_PATIENCE);
        let [first, second] = [(); 2].map(|()| enter(&places).expect("there is room"));
        assert!(first.0.keep() && first.0.send() && second.0.keep());
        assert!(enter(&places).is_none(), "one is slow, one is being answered");
        assert!(second.0.send());
        assert!(enter(&places).is_some());
        assert!(first.1.try_recv().is_ok() && second.1.try_recv().is_err());
    }

    #[test]
    fn who_asks_without_end_gives_way() {
        let places = ConnectionPlaces::new(1, Duration::from_secs(3600));
        let hasty = enter(&places).expect("there is room").0;
        assert!(enter(&places).is_none(), "it has just come");
        let asks = std::thread::spawn(move || while hasty.keep() && hasty.wait() {});
        assert!(places.take(Duration::from_secs(60), || ()).is_some());
        asks.join().expect("it has given way");
    }
}
