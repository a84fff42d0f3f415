//! Says on the live line what ctrace does while that takes long: otherwise a pause looks like a fault.

use crate::ui::output::{live, terminal};
use std::{
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread::{self, JoinHandle},
    time::Duration,
};

/// Work that is done sooner is not told.
const LONG: Duration = Duration::from_millis(500);

/// Work that goes on until this is dropped.
pub(crate) struct Slow(Option<(Sender<()>, JoinHandle<()>)>);

impl Slow {
    /// Shows `text` if the work takes long. It must be harmless.
    pub(crate) fn work(text: String) -> Self {
        match terminal::of_messages(std::io::stderr()).terminal {
            true => Self::after(LONG, move || live::show(&text)),
            false => Self::untold(),
        }
    }

    /// Work that nobody is told of.
    pub(crate) fn untold() -> Self {
        Self(None)
    }

    fn after(time: Duration, tell: impl FnOnce() + Send + 'static) -> Self {
        let (sender, done) = channel();
        let wait = move || {
            if done.recv_timeout(time) == Err(RecvTimeoutError::Timeout) {
                tell();
            }
        };
        let thread = thread::Builder::new().name("slow".into()).spawn(wait);
        // Without the thread, only the line is missing.
        Self(thread.ok().map(|thread| (sender, thread)))
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.0.take() {
            drop(sender);
            let _ = thread.join();
            live::without(|| ());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_work_that_takes_long_is_told() {
        let (sender, told) = channel();
        let tell = |sender: &Sender<()>| {
            let sender = sender.clone();
            move || sender.send(()).expect("somebody listens")
        };
        drop(Slow::after(Duration::from_secs(3600), tell(&sender)));
        assert!(told.try_recv().is_err());
        let slow = Slow::after(Duration::ZERO, tell(&sender));
        told.recv().expect("it is told while the work goes on");
        drop(slow);
    }
}
