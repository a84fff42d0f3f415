//! Puts true return addresses back before something unwinds or leaves the stack.
//!
//! The eBPF programs at guard sites list the hijacked frames of a thread and hold it. A
//! [`Restorer`] writes the addresses and lets the thread go on. At the end of a session, [`sweep`]
//! does the same for the frames that are still open. All of this runs in the guard process, so
//! that it outlives ctrace.
//!
//! | file | what |
//! |---|---|
//! | `requests` | the ring of requests, and lists of frames |
//! | `states` | the states in which threads wait |
//! | `restorer` | the threads that serve the requests |
//! | `loads` | threads that have loaded a library, held until its guards are in place |
//! | `settler` | restores the frames of a request, and continues a process that has stopped for one |
//! | `pace` | CPUs and priority of these threads |
//! | `handlers` | waits for entry handlers that still run |
//! | `sweep` | the end: lists what is open, and restores it in stopped threads |
//! | `stopped` | a thread that is stopped by ptrace, unseen by its parent |

mod handlers;
mod loads;
mod pace;
mod requests;
mod restorer;
mod settler;
mod states;
mod stopped;
mod sweep;

pub(super) use restorer::{Restored, Restorer, open_memory};
pub(super) use stopped::may_stop_threads;

use super::sys;
use ctrace_common::{GUARDED, GUARDED_STOPPED};
use rustix::process::{Pid, Signal, kill_process};
use states::States;
use std::{
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
    thread::sleep,
    time::Duration,
};

/// A thread that has marked its process as stopped gets its signal within this time.
const STOPS_WITHIN: Duration = Duration::from_millis(10);

/// The maps, the program and the links that a restorer works with.
#[derive(Clone, Debug)]
pub(super) struct GuardMaps {
    pub(super) requests: Arc<OwnedFd>,
    pub(super) states: Arc<OwnedFd>,
    pub(super) guarded: Arc<OwnedFd>,
    /// The program `list_hijacked`.
    pub(super) lister: Arc<OwnedFd>,
    /// The links of the programs that guard at signals and forks. They stay if ctrace dies.
    pub(super) signals: Arc<OwnedFd>,
    pub(super) forks: Arc<OwnedFd>,
}

/// A process that is traced no more: calls of it that began after this time get no return probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Forgotten {
    pub(super) pid: u32,
    pub(super) time: u64,
}

/// The session that a restorer works for. None of these may block.
pub(super) struct Client {
    /// Learns of a function whose frames are restored. Returns `false` if it cannot be told now.
    pub(super) restored: Box<dyn Fn(Restored) -> bool + Send + Sync>,
    /// Learns of a process in which a thread is held that has loaded something, until
    /// [`Restorer::looked`]. Returns `false` if it cannot be told now.
    pub(super) loaded: Box<dyn Fn(u32) -> bool + Send + Sync>,
    pub(super) attention: Box<dyn Fn() -> Attention + Send + Sync>,
}

/// The attention of a session to a thread that has loaded something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attention {
    /// It looks at what was loaded.
    Looks,
    /// It does nothing until somebody continues it, as it is stopped.
    Sleeps,
    /// It has died. The guard ends it.
    Gone,
}

impl GuardMaps {
    /// The number of descriptors.
    pub(super) const FDS: usize = 6;

    /// Returns the guarded processes.
    fn guarded(&self) -> Vec<u32> {
        let mut pids = Vec::new();
        while let Ok(Some(pid)) =
            sys::map_next_key::<u32>(self.guarded.as_fd(), pids.last().copied())
        {
            pids.push(pid);
        }
        pids
    }

    /// Returns the guarded processes that a thread has stopped for its frames, or is about to.
    fn stopped(&self) -> Vec<u32> {
        let is_stopped = |pid: &u32| {
            let mut state = [0];
            sys::map_lookup(self.guarded.as_fd(), *pid, &mut state).is_ok()
                && state[0] as u8 == GUARDED_STOPPED
        };
        self.guarded().into_iter().filter(is_stopped).collect()
    }

    /// Has no guard ask for anything any more, as nobody answers, and continues the processes that
    /// threads have stopped for an answer.
    pub(super) fn give_up(&self) {
        // Without the memory of the states, threads that ask go on stopping their processes.
        let ended = States::of(&self.states).map(|states| states.end_guards());
        ended.unwrap_or_else(|error| tracing::warn!("guards cannot be ended: {error}"));
        let mut stopped = self.stopped();
        // The signal follows the mark.
        sleep(STOPS_WITHIN);
        stopped.extend(self.stopped());
        stopped.into_iter().for_each(|pid| self.go_on(pid));
    }

    /// Continues a process.
    fn go_on(&self, pid: u32) {
        // It may have ended.
        let _ = sys::map_replace(self.guarded.as_fd(), pid, &[GUARDED]);
        if let Some(pid) = Pid::from_raw(pid as i32) {
            let _ = kill_process(pid, Signal::CONT);
        }
    }
}
