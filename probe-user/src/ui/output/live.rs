//! The line on stderr that shows a running trace. There is one for the whole program, so that every
//! message can erase it first.
//!
//! It is drawn only where stderr is a terminal that takes it at once: a stopped terminal (Ctrl-S)
//! must not hold up who draws.

use crate::ui::output::{style::Style, terminal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    io::{Stderr, Write},
    sync::{Mutex, MutexGuard, PoisonError},
};

/// True while the line is on the screen.
static IS_SHOWN: Mutex<bool> = Mutex::new(false);

/// Returns to the first column and clears the line.
const ERASE: &str = "\r\x1b[K";

/// Draws the line in place of the last one. `text` must be harmless.
pub(crate) fn show(text: &str) {
    let stderr = std::io::stderr();
    let Style { width: Some(width), terminal: true, .. } = terminal::of_messages(&stderr) else {
        return;
    };
    let mut is_shown = lock();
    *is_shown |= write_if_taken(&stderr, &line(text, width));
}

/// Writes to the terminal if it takes it at once, and returns whether it does.
pub(super) fn write_if_taken(stderr: &Stderr, text: &str) -> bool {
    let mut ready = [PollFd::new(stderr, PollFlags::OUT)];
    let takes = poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    let takes = takes == Ok(1) && ready[0].revents().contains(PollFlags::OUT);
    if takes {
        // Nobody needs to read it.
        let _ = stderr.lock().write_all(text.as_bytes());
    }
    takes
}

/// Erases the line, and keeps it away during a write to the terminal.
pub(crate) fn without<T>(write: impl FnOnce() -> T) -> T {
    let mut is_shown = lock();
    if std::mem::take(&mut *is_shown) {
        let _ = std::io::stderr().write_all(ERASE.as_bytes());
    }
    drop(is_shown);
    write()
}

fn lock() -> MutexGuard<'static, bool> {
    IS_SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Cuts the text so that it does not wrap: only one line can be erased.
fn line(text: &str, width: usize) -> String {
    let cut: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{ERASE}{cut}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_wraps() {
        assert_eq!(line("3.2 s, 7 calls", 80), "\r\x1b[K3.2 s, 7 calls");
        assert_eq!(line("3.2 s, 7 calls", 6), "\r\x1b[K3.2 s");
    }
}
