//! Notices a client that goes away while its request is worked on.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    os::unix::net::UnixStream,
    sync::mpsc::{Receiver, TryRecvError, channel},
    thread::Builder,
};

/// The time between two looks whether the work is done.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Works, and calls `tell` if the client goes away meanwhile. One that only says no more is there.
pub(super) fn meanwhile<T>(
    client: &UnixStream,
    tell: impl FnOnce() + Send,
    work: impl FnOnce() -> T,
) -> T {
    std::thread::scope(|scope| {
        let (done, is_done) = channel();
        let watch = move || {
            if goes_away(client, &is_done) {
                tell();
            }
        };
        // Without a thread, the work goes on to its end.
        let _ = Builder::new().name("client".into()).spawn_scoped(scope, watch);
        let result = work();
        drop::<std::sync::mpsc::Sender<()>>(done);
        result
    })
}

/// Waits for the client to go away, or for the work to be done.
fn goes_away(client: &UnixStream, is_done: &Receiver<()>) -> bool {
    let is_gone = || {
        // An end of the connection is told in any case.
        let mut fds = [PollFd::new(client, PollFlags::empty())];
        let ready = poll(&mut fds, Some(&PAUSE));
        ready.is_ok_and(|ready| ready > 0)
    };
    while matches!(is_done.try_recv(), Err(TryRecvError::Empty)) {
        if is_gone() {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{net::Shutdown, sync::mpsc::RecvTimeoutError, time::Duration};

    #[test]
    fn only_a_client_that_goes_away_is_told() {
        let (ours, theirs) = UnixStream::pair().expect("sockets");
        let (told, is_told) = channel();
        let works = |limit| {
            meanwhile(&ours, || told.send(()).unwrap_or(()), || is_told.recv_timeout(limit))
        };
        theirs.shutdown(Shutdown::Write).expect("it is connected");
        assert_eq!(works(Duration::from_millis(300)), Err(RecvTimeoutError::Timeout));
        drop(theirs);
        assert_eq!(works(Duration::from_secs(60)), Ok(()));
    }
}
