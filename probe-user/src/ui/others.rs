//! Tells whether anybody else has written to a terminal. A line that is redrawn there would otherwise
//! be drawn over what they wrote, such as a question that waits for its answer.

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use std::{
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd as _, OwnedFd},
};

/// A watch on a terminal.
pub(super) struct Others(OwnedFd);

impl Others {
    /// Watches the terminal; `None` if the system cannot.
    pub(super) fn of(terminal: impl AsFd) -> Option<Self> {
        let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        let path = format!("/proc/self/fd/{}", terminal.as_fd().as_raw_fd());
        inotify::add_watch(&watch, path, WatchFlags::MODIFY).ok()?;
        Some(Self(watch))
    }

    /// Returns whether anybody has written since the last call, ctrace included.
    pub(super) fn wrote(&self) -> bool {
        let mut room = [MaybeUninit::uninit(); 1024];
        let mut events = Reader::new(&self.0, &mut room);
        let mut wrote = false;
        while let Ok(event) = events.next() {
            wrote |= event.events().contains(ReadFlags::MODIFY);
        }
        wrote
    }
}
