//! Restores the frames of threads that asked, and continues those that have stopped.
//!
//! SIGCONT takes back the stops of all threads of a process, also those that no thread has taken
//! yet. A thread that goes on with a trampoline's address on its stack unwinds through it. So a
//! process is continued only when the frames of all its threads that have asked are restored.

use super::{
    Client, GuardMaps, Restored,
    loads::Loads,
    open_memory,
    pace::PAUSE,
    requests::{FramesRequest, Requests},
    states::States,
};
use crate::{
    auxv::has_gained_rights,
    process_status::{ProcessStatus, is_end},
};
use ctrace_common::RestoreReason;
use std::{
    collections::HashSet,
    io,
    os::fd::AsFd as _,
    sync::{Arc, Mutex, PoisonError},
    thread::sleep,
    time::{Duration, Instant},
};

/// The time that a thread takes to stop, mostly. Later ones are looked at again and again.
const STOPS_WITHIN: Duration = Duration::from_millis(50);
/// A thread that has not stopped within this time, although nothing keeps its signal from it, will
/// not stop, if it has run.
const PATIENCE: Duration = Duration::from_secs(1);
/// The CPU time that shows that it has run since it gave up waiting. On a busy machine it may have had
/// none for seconds; it needs some for the rest of its wait, and for the signal.
const RUNS_FIRST: Duration = Duration::from_millis(20);
/// Tries to list the frames of a thread. Others wait meanwhile.
const TRIES: u32 = 3;
/// Functions that are told once each; beyond that they are told again.
const MOST_TOLD: usize = 1 << 16;

pub(super) struct Settler {
    maps: GuardMaps,
    states: Arc<States>,
    loads: Arc<Loads>,
    told: Mutex<HashSet<Restored>>,
    client: Arc<Client>,
}

/// A process that one of its threads has stopped for its frames, or is about to.
#[derive(Default)]
pub(super) struct Stopping {
    /// True if it has to be continued.
    has_stopped: bool,
    /// The threads that have given up waiting, and have not stopped yet.
    late: Vec<Late>,
}

struct Late {
    request: FramesRequest,
    since: Instant,
    /// The CPU time that it had then, in nanoseconds.
    ran: Option<u64>,
    /// The time at which it had stopped, but its frames could not be listed.
    unlisted: Option<Instant>,
}

/// The state of a thread after its frames were restored.
enum Then {
    GoesOn,
    /// It has stopped, and has to be continued.
    Stopped,
    /// It has not stopped yet.
    StopsLate,
    /// It has stopped, but its frames could not be listed. Another try may list them.
    Unlisted,
}

impl Settler {
    pub(super) fn new(maps: GuardMaps, client: Client) -> io::Result<Self> {
        let (states, client) = (Arc::new(States::of(&maps.states)?), Arc::new(client));
        let loads = Loads::new(Arc::clone(&states), Arc::clone(&client));
        Ok(Self { maps, states, loads, told: Mutex::default(), client })
    }

    pub(super) fn loads(&self) -> &Loads {
        &self.loads
    }

    pub(super) fn maps(&self) -> &GuardMaps {
        &self.maps
    }

    /// Restores the frames of a thread that waits or stops, and lets it go on if it waits.
    pub(super) fn serve(&self, request: FramesRequest, requests: &mut Requests) {
        match request.reason {
            // Whoever has asked for it waits no more.
            RestoreReason::Listed => return,
            RestoreReason::Load => return self.loads.hold(request),
            RestoreReason::Unwind | RestoreReason::Switch | RestoreReason::Signal => {}
        }
        let goes_on = self.restore_waiting(&request) && self.states.finish(&request);
        self.tell_of(&request);
        let then = match goes_on {
            true => Then::GoesOn,
            false => self.await_stop(&request, requests, STOPS_WITHIN, TRIES),
        };
        let stopped = &mut requests.stopped;
        match then {
            Then::GoesOn => {}
            Then::Stopped => stopped.entry(request.pid).or_default().has_stopped = true,
            Then::StopsLate | Then::Unlisted => {
                stopped.entry(request.pid).or_default().late.push(Late::of(request));
            }
        }
    }

    /// Continues the stopped processes of whose threads none has to be settled any more. The others
    /// wait for the next call.
    pub(super) fn continue_stopped(&self, requests: &mut Requests) {
        for request in self.loads.take_stopping() {
            requests.stopped.entry(request.pid).or_default().late.push(Late::of(request));
        }
        let pids: Vec<u32> = requests.stopped.keys().copied().collect();
        for pid in pids {
            let mut stopping = requests.stopped.remove(&pid).unwrap_or_default();
            stopping.late.retain_mut(|late| {
                // Others wait meanwhile.
                match self.await_stop(&late.request, requests, Duration::ZERO, 1) {
                    Then::GoesOn => false,
                    Then::Stopped => {
                        stopping.has_stopped = true;
                        false
                    }
                    Then::StopsLate => !late.will_not_stop(),
                    Then::Unlisted => {
                        let since = *late.unlisted.get_or_insert_with(Instant::now);
                        let is_over = since.elapsed() >= PATIENCE;
                        stopping.has_stopped |= is_over;
                        !is_over
                    }
                }
            });
            let is_done = stopping.late.is_empty()
                && !self.loads.may_stop(pid)
                && (!stopping.has_stopped || self.continue_quietly(pid, requests));
            if !is_done {
                requests.stopped.insert(pid, stopping);
            }
        }
    }

    /// Continues a process if no request of it is left unserved. Meanwhile no thread stops.
    fn continue_quietly(&self, pid: u32, requests: &mut Requests) -> bool {
        let _continues = self.states.continues();
        let is_quiet = requests.are_none_of(pid);
        if is_quiet {
            self.maps.go_on(pid);
        }
        is_quiet
    }

    /// Waits for the stop of a thread that waits no more, and restores its frames.
    fn await_stop(
        &self,
        request: &FramesRequest,
        requests: &mut Requests,
        limit: Duration,
        tries: u32,
    ) -> Then {
        let until = Instant::now() + limit;
        loop {
            match Stop::of(request.pid, request.tid) {
                Stop::Complete => break,
                Stop::Gone => return Then::GoesOn,
                Stop::ToCome if Instant::now() >= until => return Then::StopsLate,
                Stop::ToCome => sleep(PAUSE),
            }
        }
        // A thread that has loaded something has asked for no frames.
        let is_load = request.reason == RestoreReason::Load;
        match is_load || self.restore_stopped(request.tid, requests, tries) {
            true => Then::Stopped,
            false => Then::Unlisted,
        }
    }

    /// Writes the true addresses if the thread waits. The memory is that of the request even if the
    /// process executes another program meanwhile: it was opened while the thread waited.
    fn restore_waiting(&self, request: &FramesRequest) -> bool {
        let Ok(memory) = open_memory(request.tid) else { return false };
        let waits = self.states.is_waiting(request);
        if waits {
            request.restore(&memory);
        }
        waits
    }

    /// Writes the true addresses of a thread that has stopped. Its request may be old: somebody may
    /// have continued it, and its slots may hold trampolines of later calls. So its frames are
    /// listed anew. The memory is opened before: if the process executes another program, the list
    /// is of that one, and nothing can be written. Returns `false` if they are unknown.
    fn restore_stopped(&self, tid: u32, requests: &mut Requests, tries: u32) -> bool {
        let Ok(memory) = open_memory(tid) else { return false };
        let Some(listed) = requests.list(self.maps.lister.as_fd(), tid, tries) else {
            return false;
        };
        if is_plain(tid) {
            listed.restore(&memory);
        }
        true
    }

    fn tell_of(&self, request: &FramesRequest) {
        for frame in &request.frames {
            let restored = Restored { pid: request.pid, probe: frame.probe };
            let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if told.len() >= MOST_TOLD {
                told.clear();
            }
            if !told.contains(&restored) && (self.client.restored)(restored) {
                told.insert(restored);
            }
        }
    }
}

impl Late {
    fn of(request: FramesRequest) -> Self {
        let ran = cpu_time(request.tid);
        Self { request, since: Instant::now(), ran, unlisted: None }
    }

    /// Returns whether somebody else has continued the process, which took the thread's stop back.
    fn will_not_stop(&self) -> bool {
        const SIGSTOP: u64 = 1 << (libc::SIGSTOP - 1);
        let may_be_pending = || match ProcessStatus::of(self.request.tid) {
            Ok(status) => status.bits("SigPnd").unwrap_or(0) & SIGSTOP != 0,
            Err(error) => !is_end(&error),
        };
        // The kernel takes the signal and stops the thread in one step, so a look at the stop after
        // one at the signal is sure.
        let has_run = || match (self.ran, cpu_time(self.request.tid)) {
            (Some(then), Some(now)) => {
                u128::from(now.saturating_sub(then)) >= RUNS_FIRST.as_nanos()
            }
            _ => true,
        };
        self.since.elapsed() >= PATIENCE
            && has_run()
            && !may_be_pending()
            && matches!(Stop::of(self.request.pid, self.request.tid), Stop::ToCome)
    }
}

/// Returns the CPU time of a thread in nanoseconds, where the kernel tells it.
fn cpu_time(tid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{tid}/schedstat")).ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Returns whether the program of a thread has no rights that its caller lacked. Somebody who may
/// not write to it could continue it in the wrong moment.
fn is_plain(tid: u32) -> bool {
    let vector = std::fs::read(format!("/proc/{tid}/auxv"));
    vector.is_ok_and(|vector| has_gained_rights(&vector) == Some(false))
}

/// The state of a thread that was told to stop.
pub(super) enum Stop {
    Complete,
    ToCome,
    /// The thread has ended.
    Gone,
}

impl Stop {
    pub(super) fn of(pid: u32, tid: u32) -> Self {
        match ProcessStatus::read(format!("/proc/{pid}/task/{tid}/status")) {
            Err(error) if is_end(&error) => Self::Gone,
            Err(_) => Self::ToCome,
            Ok(status) => match status.field("State").chars().next() {
                // A debugger sees the signal first, and stops the thread in its own way.
                Some('T' | 't') => Self::Complete,
                Some('Z' | 'X') | None => Self::Gone,
                _ => Self::ToCome,
            },
        }
    }
}
