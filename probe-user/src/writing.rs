//! Measures how long a session's loop has been inside a write: a reader or a disk may never answer.
//! Meanwhile the loop continues no command, so nothing may promise that it does.

use std::{
    cell::Cell,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// The limit of a write that somebody reads.
pub(crate) const LONG: Duration = Duration::from_secs(1);

/// The start of the loop's current write.
static SINCE: Mutex<Option<Instant>> = Mutex::new(None);

thread_local! {
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
}

/// Marks this thread as the one whose loop continues a command.
pub(crate) fn watch_this_thread() {
    IS_WATCHED.set(true);
}

/// Runs a write that may wait for a reader or a disk.
pub(crate) fn during<T>(write: impl FnOnce() -> T) -> T {
    let _end = Write::begin();
    write()
}

/// Returns the duration of the current write, zero if there is none.
pub(crate) fn time() -> Duration {
    let since = *since();
    since.map_or(Duration::ZERO, |since| since.elapsed())
}

fn since() -> MutexGuard<'static, Option<Instant>> {
    SINCE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The outermost write of the watched thread.
struct Write;

impl Write {
    fn begin() -> Option<Self> {
        if !IS_WATCHED.get() {
            return None;
        }
        let mut since = since();
        let is_outermost = since.is_none();
        is_outermost.then(|| {
            *since = Some(Instant::now());
            Self
        })
    }
}

impl Drop for Write {
    fn drop(&mut self) {
        *since() = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::{sleep, spawn};

    #[test]
    fn the_time_of_the_outermost_write_of_the_loop_counts() {
        during(|| assert_eq!(time(), Duration::ZERO, "this is no loop"));
        watch_this_thread();
        during(|| {
            sleep(Duration::from_millis(2));
            during(|| assert!(time() >= Duration::from_millis(2)));
            spawn(|| during(|| ())).join().unwrap();
            assert!(time() >= Duration::from_millis(2), "others do not end it");
        });
        assert_eq!(time(), Duration::ZERO);
    }
}
