//! The line on stderr that shows a running trace. There is one for the whole program, so that every
//! message can erase it first.
//!
//! It is drawn only where stderr is a terminal that takes it at once: a stopped terminal (Ctrl-S)
//! must not hold up who draws. Where a command writes to the same terminal, it is not drawn any more
//! after the first time that the command does.

use super::{others::Others, terminal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    io::Write,
    sync::{Mutex, MutexGuard, PoisonError},
};

static LINE: Mutex<Line> = Mutex::new(Line { is_shown: false, sharing: Sharing::No });

struct Line {
    /// True while it is on the screen.
    is_shown: bool,
    sharing: Sharing,
}

/// The relation to a command that may write to the same terminal.
enum Sharing {
    /// There is none.
    No,
    /// It has not written yet.
    With(Others),
    /// It has written, or nothing would tell: the line is not drawn or erased any more.
    Over,
}

/// Returns to the first column and clears the line.
const ERASE: &str = "\r\x1b[K";

/// Begins to share the terminal with a command.
pub(crate) fn share() {
    lock().sharing = Others::of(std::io::stderr()).map_or(Sharing::Over, Sharing::With);
}

/// Draws the line in place of the last one. `text` must be harmless.
pub(crate) fn show(text: &str) {
    let stderr = std::io::stderr();
    let Some(width) = terminal::of_messages(&stderr).width else { return };
    let mut line = lock();
    if !line.is_ours() {
        return;
    }
    let mut ready = [PollFd::new(&stderr, PollFlags::OUT)];
    let takes = poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    if takes != Ok(1) || !ready[0].revents().contains(PollFlags::OUT) {
        return;
    }
    // Nobody needs to read it.
    let _ = stderr.lock().write_all(drawn(text, width).as_bytes());
    line.is_shown = true;
    if let Sharing::With(others) = &line.sharing
        && !others.wrote()
    {
        // This write was not told of: others will not be, either.
        line.sharing = Sharing::Over;
    }
}

/// Erases the line, and keeps it away during a write to the terminal.
pub(crate) fn without<T>(write: impl FnOnce() -> T) -> T {
    let mut line = lock();
    if std::mem::take(&mut line.is_shown) && line.is_ours() {
        let _ = std::io::stderr().write_all(ERASE.as_bytes());
    }
    drop(line);
    let written = write();
    // What was written here is ctrace's own.
    if let Sharing::With(others) = &lock().sharing {
        others.wrote();
    }
    written
}

impl Line {
    /// Returns whether nobody else has written behind it.
    fn is_ours(&mut self) -> bool {
        if let Sharing::With(others) = &self.sharing
            && others.wrote()
        {
            self.sharing = Sharing::Over;
        }
        !matches!(self.sharing, Sharing::Over)
    }
}

fn lock() -> MutexGuard<'static, Line> {
    LINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Cuts the text so that it does not wrap: only one line can be erased.
fn drawn(text: &str, width: usize) -> String {
    let cut: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{ERASE}{cut}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_wraps() {
        assert_eq!(drawn("3.2 s, 7 calls", 80), "\r\x1b[K3.2 s, 7 calls");
        assert_eq!(drawn("3.2 s, 7 calls", 6), "\r\x1b[K3.2 s");
    }
}
