//! Lets the reader of the rings sleep until its time or until it is called. The session calls when
//! it wants the records so far or the end; the eBPF programs call when a ring fills.

use crate::bpf::News;
use ctrace_common::NEW_PROGRAM;
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io,
};
use std::{
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
    time::Duration,
};

/// The session's end of the bell.
#[derive(Clone)]
pub(crate) struct Caller(Arc<OwnedFd>);

impl Caller {
    pub(crate) fn call(&self) {
        // This can fail only after 2^64 calls.
        let _ = io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

/// The reason why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    Time,
    /// A ring fills.
    Ring,
    /// The target runs another program.
    Program,
    Session {
        /// A program called, too.
        and_by_program: bool,
    },
}

/// The reader's end of the bell.
pub(crate) struct Bell {
    called: Caller,
    /// None if only the session calls.
    news: Option<News>,
}

impl Bell {
    pub(crate) fn new(news: Option<News>) -> std::io::Result<Self> {
        let called = Caller(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?));
        Ok(Self { called, news })
    }

    pub(crate) fn caller(&self) -> Caller {
        self.called.clone()
    }

    /// Sleeps for at most this time.
    pub(crate) fn sleep(&mut self, pause: Duration) -> Woken {
        let timeout = Timespec::try_from(pause).ok();
        let mut fds = vec![PollFd::new(&*self.called.0, PollFlags::IN)];
        fds.extend(
            self.news.as_ref().map(|news| PollFd::from_borrowed_fd(news.as_fd(), PollFlags::IN)),
        );
        // A signal cuts the pause short, which does no harm.
        let _ = poll(&mut fds, timeout.as_ref());
        let mut woken = Woken::Time;
        if let Some(news) = &mut self.news {
            news.drain(|number| match number {
                NEW_PROGRAM => woken = Woken::Program,
                _ if woken == Woken::Time => woken = Woken::Ring,
                _ => {}
            });
        }
        match io::read(&*self.called.0, &mut [0; 8]) {
            Ok(_) => Woken::Session { and_by_program: woken == Woken::Program },
            Err(_) => woken,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_call_ends_one_sleep() {
        let mut bell = Bell::new(None).expect("made");
        assert_eq!(bell.sleep(Duration::from_millis(1)), Woken::Time);
        bell.caller().call();
        let begun = Instant::now();
        let called = Woken::Session { and_by_program: false };
        assert_eq!(bell.sleep(Duration::from_secs(600)), called);
        assert!(begun.elapsed() < Duration::from_secs(300));
        assert_eq!(bell.sleep(Duration::from_millis(1)), Woken::Time);
    }
}
