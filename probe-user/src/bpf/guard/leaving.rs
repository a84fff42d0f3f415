//! Ends ctrace, but not before the last link is closed.

use super::client::{self, Guard};
use std::{
    sync::{Mutex, PoisonError, mpsc::RecvTimeoutError},
    time::Duration,
};

/// Held by the thread that ends the process, until it has ended.
static LEAVING: Mutex<()> = Mutex::new(());

/// Shorter waits are not worth a line.
const SOON: Duration = Duration::from_secs(1);

/// Waits at the end of `main` until no probe of ours is left.
pub(crate) fn finish(say: fn(&str)) {
    let _alone = LEAVING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(guard) = client::last() {
        close_all(&guard, SOON, say);
        // A guard with a process to continue waits for our own end. A dead one leaves healing.
        if !guard.holds() || guard.is_dead() {
            guard.end();
        }
    }
}

/// Waits for the healing after the guard's death, if it is dead. Two processes that heal at the same
/// time take the links of each other for those of a living tracer.
pub(crate) fn wait_for_healing() {
    if let Some(guard) = client::last().filter(|guard| guard.is_dead()) {
        guard.wait_for_healing();
    }
}

/// Ends the process whatever its other threads do, but not before the last link is closed.
pub(crate) fn leave(status: i32, say: fn(&str)) -> ! {
    let _alone = LEAVING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(guard) = client::last() {
        close_all(&guard, Duration::ZERO, say);
    }
    std::process::exit(status)
}

/// Closes all links, and tells what it waits for if that takes long.
fn close_all(guard: &Guard, patience: Duration, say: fn(&str)) {
    let sites = guard.sites();
    let Ok(answer) = guard.close_all() else { return };
    if answer.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
        if sites > 0 {
            say(&format!(
                "waiting for the kernel to remove {sites} probes; the target runs on meanwhile, and \
                 process {} would remove them should ctrace be killed",
                guard.pid()
            ));
        }
        // An error means that the guard and all links are gone.
        let _ = answer.recv();
    }
}
