//! Runs work that a target can block forever on a thread that may be abandoned.
//!
//! A read of a target's memory faults its pages in. The target itself may serve the faults
//! (userfaultfd, FUSE) and need never answer. Reads of /proc/PID/cmdline and its like do the same.
//! The blocked thread dies with ctrace, and no other thread waits for it.
//!
//! Such threads are counted by process and by user. So neither one process nor one user's many can
//! use up what all others need.

use super::facts::Identity;
use ctrace_core::units::Pid;
use std::{
    cell::RefCell,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::Duration,
};

/// The longest wait. An honest target answers within milliseconds, even from a slow disk.
pub(crate) const LIMIT: Duration = Duration::from_secs(1);
/// Limit of threads that hang on one process. Beyond that, no such work starts.
const MOST_OF_PROCESS: usize = 2;
/// Limit for all processes of a user.
const MOST_OF_USER: usize = 64;
/// Limit for all processes.
const MOST: usize = 256;

static STUCK: Mutex<Stuck> = Mutex::new(Stuck(Vec::new()));

/// The work was not done in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it did not answer within {} s", LIMIT.as_secs())]
pub(crate) struct GivenUp;

/// The processes that threads hang on, one entry a thread.
struct Stuck(Vec<Identity>);

impl Stuck {
    fn has_room_for(&self, whose: Identity) -> bool {
        let count =
            |is_one: &dyn Fn(&Identity) -> bool| self.0.iter().filter(|w| is_one(w)).count();
        count(&|other| other.is_process(whose)) < MOST_OF_PROCESS
            && count(&|other| other.user == whose.user) < MOST_OF_USER
            && self.0.len() < MOST
    }

    fn remove(&mut self, whose: Identity) {
        if let Some(at) = self.0.iter().position(|other| *other == whose) {
            self.0.swap_remove(at);
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;

thread_local! {
    /// The thread that does the work that this thread must not wait for.
    static HELPER: RefCell<Option<Sender<Job>>> = const { RefCell::new(None) };
}

/// Runs work that needs this process's answer, and gives up after [`LIMIT`].
pub(crate) fn within<T: Send + 'static>(
    pid: Pid,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, GivenUp> {
    within_limit(LIMIT, pid, work)
}

/// Like [`within`], with another limit.
pub(crate) fn within_limit<T: Send + 'static>(
    limit: Duration,
    pid: Pid,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, GivenUp> {
    if !has_room_for(pid) {
        return Err(GivenUp);
    }
    let given_up = Arc::new(OnceLock::new());
    let (seen, (done, result)) = (Arc::clone(&given_up), channel());
    let job = Box::new(move || {
        let result = work();
        let mut stuck = stuck();
        seen.get().into_iter().for_each(|whose| stuck.remove(*whose));
        // Fails if nobody waits any more.
        let _ = done.send(result);
    });
    let helper = HELPER.take().map_or_else(start, Ok)?;
    helper.send(job).map_err(|_| GivenUp)?;
    let answer = match result.recv_timeout(limit) {
        Err(RecvTimeoutError::Timeout) => {
            let whose = Identity::of(pid).unwrap_or(Identity::gone(pid));
            let mut stuck = stuck();
            // The work may have ended just now.
            let late = result.try_recv();
            if late.is_err() && given_up.set(whose).is_ok() {
                stuck.0.push(whose);
            }
            late.ok()
        }
        answer => answer.ok(),
    };
    let answer = answer.ok_or(GivenUp)?;
    HELPER.set(Some(helper));
    Ok(answer)
}

/// Returns whether a thread hangs on the process.
pub(crate) fn is_stuck(pid: Pid) -> bool {
    if stuck().0.iter().all(|whose| whose.pid != pid) {
        return false;
    }
    let now = Identity::of(pid);
    now.is_some_and(|now| stuck().0.iter().any(|whose| whose.is_process(now)))
}

fn has_room_for(pid: Pid) -> bool {
    if stuck().0.is_empty() {
        return true;
    }
    // Without the process, the work fails by itself.
    Identity::of(pid).is_none_or(|whose| stuck().has_room_for(whose))
}

fn stuck() -> MutexGuard<'static, Stuck> {
    STUCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread that ends when nobody has work for it.
fn start() -> Result<Sender<Job>, GivenUp> {
    let (sender, jobs): (Sender<Job>, Receiver<Job>) = channel();
    let run = move || jobs.into_iter().for_each(|job| job());
    thread::Builder::new().name("patience".into()).spawn(run).map_err(|error| {
        tracing::warn!("cannot start a thread: {error}");
        GivenUp
    })?;
    Ok(sender)
}

#[cfg(test)]
#[path = "patience_tests.rs"]
mod tests;
