//! The threads that serve the requests of one session.

use super::{
    Client, Forgotten, GuardMaps,
    handlers::Handlers,
    pace::{self, RESTORERS},
    requests::Requests,
    settler::Settler,
    sweep,
};
use crate::bpf::machine::clock::now;
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll},
    io::Errno,
};
use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::{AsFd as _, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, Builder, JoinHandle, sleep},
    time::{Duration, Instant},
};

/// Bytes for a thread's stack.
const STACK_BYTES: usize = 128 << 10;
/// The time between two looks at threads that stop late.
const PAUSE: Duration = Duration::from_millis(1);
/// The time for threads that stop late at the end of a session.
const PATIENCE: Duration = Duration::from_secs(2);

/// A function whose frame was restored before it returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) struct Restored {
    pub(in super::super) pid: u32,
    /// The address of its probe in the process.
    pub(in super::super) probe: u64,
}

/// Serves the requests of one session until it is dropped.
pub(in super::super) struct Restorer {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    settler: Settler,
    requests: Mutex<Requests>,
    handlers: Handlers,
    /// Readable when the session is over.
    end: OwnedFd,
}

impl Restorer {
    pub(in super::super) fn start(maps: GuardMaps, client: Client) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            requests: Mutex::new(Requests::of(maps.requests.as_fd())?),
            settler: Settler::new(maps, client)?,
            handlers: Handlers::default(),
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

    /// Tells that a sweep is about to come. What is loaded until then has no guards, and no call gets a
    /// return probe any more.
    pub(in super::super) fn begin_to_end(&self) {
        self.shared.settler.loads().begin_to_end();
    }

    /// Restores all frames that are open in guarded processes, when no new ones are hijacked any
    /// more. Returns the number of frames that could not be restored.
    pub(in super::super) fn sweep(&self) -> usize {
        self.begin_to_end();
        self.shared.handlers.wait_for_those_before(now().0);
        let left = self.sweep_apart(None);
        self.shared.settler.loads().end();
        left
    }

    /// Does the work of another restorer that has died, and with it all probes: restores all frames that
    /// are open, and continues the processes that threads have stopped for theirs. Returns the number of
    /// frames that could not be restored.
    pub(in super::super) fn take_over(&self) -> usize {
        let left = self.sweep();
        let maps = self.shared.settler.maps();
        maps.stopped().into_iter().for_each(|pid| maps.go_on(pid));
        left
    }

    /// Restores the open frames of a process that was forgotten. Returns the number of frames that could
    /// not be restored.
    pub(in super::super) fn sweep_process(&self, Forgotten { pid, time }: Forgotten) -> usize {
        self.shared.handlers.wait_for_those_before(time);
        // Of many that were forgotten at one time, only the first is waited for.
        let since = Duration::from_nanos(now().0.saturating_sub(time));
        self.sweep_apart(Some((pid, Instant::now() + sweep::PATIENCE.saturating_sub(since))))
    }

    /// Sweeps in a thread of its own, for the priority: nobody else serves the threads that wait.
    fn sweep_apart(&self, whose: Option<(u32, Instant)>) -> usize {
        thread::scope(|scope| scope.spawn(|| self.shared.sweep(whose)).join().unwrap_or(1))
    }

    /// Lets the threads of a process go on that had loaded something by this time.
    pub(in super::super) fn looked(&self, pid: u32, time: u64) {
        self.shared.settler.loads().looked(pid, time);
    }
}

impl Drop for Restorer {
    fn drop(&mut self) {
        self.shared.settler.loads().end_guards();
        self.shared.settler.loads().end();
        // Nothing has written to it before, so there is room.
        let _ = rustix::io::write(&self.shared.end, &1_u64.to_ne_bytes());
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
        // No process stays stopped. The sweep has restored what could be.
        let mut requests = locked(&self.shared.requests);
        self.shared.serve_late(&mut requests);
        requests.stopped.keys().for_each(|pid| self.shared.settler.maps().go_on(*pid));
    }
}

impl Shared {
    fn serve(&self, which: usize) {
        pace::take_place(which);
        let Ok(ring) = self.settler.maps().requests.try_clone() else { return };
        let mut has_late = false;
        loop {
            let looks_again = has_late || self.settler.loads().may_have_some();
            let patience = Timespec::try_from(PAUSE).ok().filter(|_| looks_again);
            let mut news =
                [PollFd::new(&ring, PollFlags::IN), PollFd::new(&self.end, PollFlags::IN)];
            match poll(&mut news, patience.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return,
            }
            let is_over = !news[1].revents().is_empty();
            let mut requests = locked(&self.requests);
            let served = self.serve_all(&mut requests);
            has_late = !requests.stopped.is_empty();
            drop(requests);
            if is_over {
                return;
            }
            // The other thread was faster, or a record is not complete yet. Its writer may need
            // this CPU.
            if served == 0 {
                sleep(pace::PAUSE);
            }
        }
    }

    /// Returns the number of requests that were there.
    fn serve_all(&self, requests: &mut Requests) -> usize {
        let (mut served, mut looked) = (0, Instant::now());
        loop {
            while let Some(request) = requests.next() {
                self.settler.serve(request, requests);
                served += 1;
                // Others may ask without end.
                if looked.elapsed() >= PAUSE {
                    self.settler.continue_stopped(requests);
                    looked = Instant::now();
                }
            }
            self.settler.continue_stopped(requests);
            // To continue a process, requests of others may have been read.
            if !requests.has_seen_some() {
                return served;
            }
        }
    }

    fn sweep(&self, whose: Option<(u32, Instant)>) -> usize {
        pace::precede();
        // The threads must not take the listed frames for requests.
        let mut requests = locked(&self.requests);
        let (maps, loads) = (self.settler.maps(), self.settler.loads());
        let serve = |requests: &mut Requests| {
            self.serve_all(requests);
        };
        if let Some((pid, until)) = whose {
            return sweep::one(pid, until, maps, loads, &mut requests, serve);
        }
        let left = sweep::all(maps, loads, &mut requests, serve);
        self.serve_late(&mut requests);
        left
    }

    /// Serves threads that stop late, for a limited time.
    fn serve_late(&self, requests: &mut Requests) {
        let until = Instant::now() + PATIENCE;
        self.serve_all(requests);
        let has_more = |requests: &Requests| {
            !requests.stopped.is_empty() || self.settler.loads().may_have_some()
        };
        while has_more(requests) && Instant::now() < until {
            sleep(PAUSE);
            self.serve_all(requests);
        }
    }
}

/// Opens the memory of a thread's process, whose return addresses are written.
pub(in super::super) fn open_memory(tid: u32) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open(format!("/proc/{tid}/mem"))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
