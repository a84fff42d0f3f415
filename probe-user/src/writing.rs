//! How long the loop of a session has been inside a write: nobody need read what ctrace writes, and a disk need
//! not answer. Meanwhile the loop continues no command, so nothing may promise that it does.

use std::{
    cell::Cell,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Longer than a write that somebody reads takes.
pub(crate) const LONG: Duration = Duration::from_secs(1);

/// When the write began, while the loop is in one.
static SINCE: Mutex<Option<Instant>> = Mutex::new(None);

thread_local! {
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
}

/// This thread has the loop that continues a command.
pub(crate) fn watch_this_thread() {
    IS_WATCHED.set(true);
}

/// Does what may have to wait for a reader or a disk.
pub(crate) fn during<T>(write: impl FnOnce() -> T) -> T {
    let _end = Write::begin();
    write()
}

/// How long the write under way has taken; nothing if there is none.
pub(crate) fn time() -> Duration {
    let since = *since();
    since.map_or(Duration::ZERO, |since| since.elapsed())
}

fn since() -> MutexGuard<'static, Option<Instant>> {
    SINCE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The outermost write of the thread that is watched.
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
