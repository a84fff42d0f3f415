//! Lets the reader of the rings sleep until its time, or until somebody calls it: the session, which
//! wants it to end, or the programs, because a ring fills.

use crate::bpf::News;
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io,
};
use std::{
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
    time::Duration,
};

/// The session's end.
#[derive(Clone)]
pub struct Caller(Arc<OwnedFd>);

impl Caller {
    pub fn call(&self) {
        // It can fail only when it was called 2^64 times.
        let _ = io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

/// The reader's end.
pub struct Bell {
    called: Caller,
    news: Option<News>,
}

impl Bell {
    pub fn new(news: Option<News>) -> std::io::Result<Self> {
        let called = Caller(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?));
        Ok(Self { called, news })
    }

    pub fn caller(&self) -> Caller {
        self.called.clone()
    }

    /// Sleeps for so long at most; whether a ring called.
    pub fn sleep(&mut self, pause: Duration) -> bool {
        let timeout = Timespec::try_from(pause).ok();
        let mut fds = vec![PollFd::new(&*self.called.0, PollFlags::IN)];
        fds.extend(
            self.news.as_ref().map(|news| PollFd::from_borrowed_fd(news.as_fd(), PollFlags::IN)),
        );
        // A signal cuts the pause short, which does no harm.
        let _ = poll(&mut fds, timeout.as_ref());
        let mut called = false;
        if let Some(news) = &mut self.news {
            news.drain(|_| called = true);
        }
        called
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_call_ends_the_sleep() {
        let mut bell = Bell::new(None).expect("made");
        assert!(!bell.sleep(Duration::from_millis(1)));
        bell.caller().call();
        let begun = Instant::now();
        bell.sleep(Duration::from_secs(600));
        assert!(begun.elapsed() < Duration::from_secs(300));
    }
}
