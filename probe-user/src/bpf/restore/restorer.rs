//! The threads that serve the requests of one session.

use super::{
    GuardMaps,
    pace::{self, RESTORERS},
    requests::{Request, Requests, States},
    sweep,
};
use crate::process_status::ProcessStatus;
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, eventfd, poll},
    io::Errno,
    process::{Pid, Signal, kill_process},
};
use std::{
    collections::HashSet,
    fs::{File, OpenOptions},
    io,
    os::fd::{AsFd as _, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{Builder, JoinHandle, sleep},
    time::{Duration, Instant},
};

/// Bytes for a thread's stack.
const STACK_BYTES: usize = 128 << 10;
/// The time that a process takes to stop, mostly and at most.
const STOPS_WITHIN: Duration = Duration::from_millis(500);
const LATE_STOPS_WITHIN: Duration = Duration::from_secs(30);
/// The time between two looks.
const PAUSE: Duration = Duration::from_micros(50);
/// Functions that are told once each; beyond that they are told again.
const MOST_TOLD: usize = 1 << 16;

/// A function whose frame was restored before it returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Restored {
    pub(in super::super) pid: u32,
    /// The address of its probe in the process.
    pub(in super::super) probe: u64,
}

impl Restored {
    /// Takes the functions of one process out of a list.
    pub(in super::super) fn take(all: &mut Vec<Self>, pid: u32) -> Vec<u64> {
        all.extract_if(.., |restored| restored.pid == pid).map(|restored| restored.probe).collect()
    }
}

/// Serves the requests of one session until it is dropped.
pub(in super::super) struct Restorer {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    maps: GuardMaps,
    requests: Mutex<Requests>,
    states: States,
    told: Mutex<HashSet<Restored>>,
    tell: Box<dyn Fn(Restored) -> bool + Send + Sync>,
    /// Readable when the session is over.
    end: OwnedFd,
}

impl Restorer {
    /// Starts the threads. `tell` learns of each function whose frames are restored, until it
    /// returns `true`. It must not block.
    pub(in super::super) fn start(
        maps: GuardMaps,
        tell: impl Fn(Restored) -> bool + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            requests: Mutex::new(Requests::of(maps.requests.as_fd())?),
            states: States::of(&maps.states)?,
            maps,
            told: Mutex::default(),
            tell: Box::new(tell),
            end: eventfd(0, EventfdFlags::CLOEXEC)?,
        });
        let mut restorer = Self { shared, threads: Vec::new() };
        for which in 0..RESTORERS {
            let shared = Arc::clone(&restorer.shared);
            let thread = Builder::new().name("restore".into()).stack_size(STACK_BYTES);
            restorer.threads.push(thread.spawn(move || shared.serve(which))?);
        }
        Ok(restorer)
    }

    /// Restores all frames that are open in guarded processes, when no new ones are hijacked any
    /// more. Returns the number of frames that could not be restored.
    pub(in super::super) fn sweep(&self) -> usize {
        let Shared { maps, requests, .. } = &*self.shared;
        // The threads must not take the listed frames for requests.
        let mut requests = locked(requests);
        sweep::all(maps, &mut requests, |request, more| self.shared.serve_one(request, more))
    }
}

impl Drop for Restorer {
    fn drop(&mut self) {
        // Nothing has written to it before, so there is room.
        let _ = rustix::io::write(&self.shared.end, &1_u64.to_ne_bytes());
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

impl Shared {
    fn serve(self: &Arc<Self>, which: usize) {
        pace::take_place(which);
        let Ok(ring) = self.maps.requests.try_clone() else { return };
        loop {
            let mut news =
                [PollFd::new(&ring, PollFlags::IN), PollFd::new(&self.end, PollFlags::IN)];
            match poll(&mut news, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            if !news[1].revents().is_empty() {
                return;
            }
            let mut requests = locked(&self.requests);
            let mut served = 0;
            while let Some(request) = requests.next() {
                self.serve_one(&request, &mut requests);
                served += 1;
            }
            // The other thread was faster, or a record is not complete yet. Its writer may need
            // this CPU.
            if served == 0 {
                drop(requests);
                sleep(PAUSE);
            }
        }
    }

    /// Restores the frames of a thread that waits or has stopped, and lets it go on.
    fn serve_one(self: &Arc<Self>, request: &Request, more: &mut Requests) {
        if !request.is_listed && self.settle(request) {
            self.go_on(request.pid, more);
        }
    }

    /// Restores the frames of a thread. Returns whether it has stopped, and has to be continued.
    ///
    /// Nothing is written while the thread runs: its slots could have got other trampolines since.
    fn settle(self: &Arc<Self>, request: &Request) -> bool {
        let is_written = self.restore_waiting(request);
        let goes_on = self.states.finish(request);
        self.tell_of(request);
        if goes_on {
            return false;
        }
        let has_stopped = wait_for_stop(request, STOPS_WITHIN);
        if !has_stopped {
            self.settle_later(request.clone(), is_written);
        } else if !is_written {
            restore_stopped(request);
        }
        has_stopped
    }

    /// Waits for a thread that stops late: its CPU may have been taken away before it sent the
    /// signal.
    fn settle_later(self: &Arc<Self>, request: Request, is_written: bool) {
        let shared = Arc::clone(self);
        let thread = Builder::new().name("go-on".into()).stack_size(STACK_BYTES);
        let _ = thread.spawn(move || {
            if wait_for_stop(&request, LATE_STOPS_WITHIN) {
                let mut requests = locked(&shared.requests);
                if !is_written {
                    restore_stopped(&request);
                }
                shared.go_on(request.pid, &mut requests);
            }
        });
    }

    /// Continues a process. This takes the stops of all its threads back, also those that no thread
    /// has taken yet. So all requests of the process are settled before.
    fn go_on(self: &Arc<Self>, pid: u32, more: &mut Requests) {
        let until = Instant::now() + STOPS_WITHIN;
        loop {
            for request in more.take_of(pid) {
                self.settle(&request);
            }
            let _continues = self.states.continues();
            if more.are_all_read() || Instant::now() >= until {
                if let Some(pid) = Pid::from_raw(pid as i32) {
                    let _ = kill_process(pid, Signal::CONT);
                }
                return;
            }
        }
    }

    fn tell_of(&self, request: &Request) {
        for frame in &request.frames {
            let restored = Restored { pid: request.pid, probe: frame.probe };
            let mut told = locked(&self.told);
            if told.len() >= MOST_TOLD {
                told.clear();
            }
            if !told.contains(&restored) && (self.tell)(restored) {
                told.insert(restored);
            }
        }
    }

    /// Writes the true addresses if the thread waits. The memory is that of the request even if the
    /// process executes another program meanwhile: it was opened while the thread waited.
    fn restore_waiting(&self, request: &Request) -> bool {
        let Ok(memory) = open_memory(request.tid) else { return false };
        let waits = self.states.is_waiting(request);
        if waits {
            request.restore(&memory);
        }
        waits
    }
}

/// Writes the true addresses of a thread that has stopped. The memory could be that of another
/// program meanwhile; of one with more rights it is left alone.
fn restore_stopped(request: &Request) {
    let Ok(memory) = open_memory(request.tid) else { return };
    if is_plain(request.tid) {
        request.restore(&memory);
    }
}

/// Opens the memory of a thread's process, whose return addresses are written.
pub(in super::super) fn open_memory(tid: u32) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(format!("/proc/{tid}/mem"))
}

/// Returns whether a thread has no more rights than its user.
fn is_plain(tid: u32) -> bool {
    let Ok(status) = ProcessStatus::of(tid) else { return false };
    let is_one = |name| {
        let mut ids = status.words(name);
        let first = ids.next();
        first.is_some() && ids.all(|id| Some(id) == first)
    };
    let is_root = status.words("Uid").next() == Some("0");
    is_one("Uid") && is_one("Gid") && (is_root || status.bits("CapPrm") == Some(0))
}

/// Waits until the thread of a request has stopped, or is gone. Returns `false` if that takes too
/// long.
fn wait_for_stop(request: &Request, limit: Duration) -> bool {
    let until = Instant::now() + limit;
    while !has_stopped(request.pid, request.tid) {
        if Instant::now() >= until {
            return false;
        }
        sleep(PAUSE);
    }
    true
}

fn has_stopped(pid: u32, tid: u32) -> bool {
    let status = ProcessStatus::read(format!("/proc/{pid}/task/{tid}/status"));
    // A debugger sees the signal first, and stops the thread in its own way.
    status.map_or(true, |status| status.field("State").starts_with(['T', 't']))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
