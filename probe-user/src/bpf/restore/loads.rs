//! Threads that have just loaded code, held until the session has put guards into it.
//!
//! A library may switch stacks as soon as it is loaded. The dynamic linker announces it before
//! anything of it runs. The thread then waits in the program until it is stopped by ptrace, and
//! stays so until the session has looked. Its parent does not see that.

use super::{Client, requests::FramesRequest, states::States, stopped};
use crate::process_status::ProcessStatus;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{Builder, sleep},
    time::{Duration, Instant},
};

/// Bytes for a thread's stack.
const STACK_BYTES: usize = 64 << 10;
/// A session that does not look within this time reads a huge library, or hangs. The target is not
/// to wait for that, and not again until the session has looked.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two looks whether a held thread still lives.
const PAUSE: Duration = Duration::from_millis(20);
/// Threads that are held at once. Each needs one of ours.
const MOST_HELD: usize = 256;
/// Processes whose code is known. Beyond that they are looked at once more.
const MOST_KNOWN: usize = 1 << 12;

pub(super) struct Loads {
    states: Arc<States>,
    known: Mutex<Known>,
    client: Arc<Client>,
}

#[derive(Default)]
struct Known {
    held: Vec<Held>,
    /// By process.
    looked: HashMap<u32, Looked>,
    /// The session has let a thread wait in vain, and has not looked since.
    is_unanswered: bool,
    /// The session ends: no more threads are held.
    is_over: bool,
}

/// A thread that is held, or about to be.
struct Held {
    pid: u32,
    tid: u32,
    /// The time of its request.
    time: u64,
    code: Option<u64>,
    _until_dropped: Sender<()>,
}

/// The last look of the session at a process.
#[derive(Clone, Copy, Default)]
struct Looked {
    time: u64,
    /// The size of its code then.
    code: Option<u64>,
}

impl Loads {
    pub(super) fn new(states: Arc<States>, client: Arc<Client>) -> Arc<Self> {
        Arc::new(Self { states, known: Mutex::default(), client })
    }

    /// Holds the thread of a request until the session has looked, if there is something new.
    pub(super) fn hold(self: &Arc<Self>, request: FramesRequest) {
        let Some(end) = self.begin(&request) else {
            self.states.finish(&request);
            return;
        };
        let (loads, held) = (Arc::clone(self), request.clone());
        let hold = move || {
            let still_waits = || loads.states.is_waiting(&held);
            let arranged = || loads.states.finish(&held);
            stopped::hold(held.tid, still_waits, arranged, |is_alive| {
                loads.wait_for_look(held.pid, &end, is_alive);
            });
            // Also where it could not be stopped.
            loads.states.finish(&held);
            loads.known().held.retain(|it| (it.tid, it.time) != (held.tid, held.number));
        };
        let builder = Builder::new().name("load".into()).stack_size(STACK_BYTES);
        if builder.spawn(hold).is_err() {
            self.states.finish(&request);
        }
    }

    /// Returns a channel that ends when the thread may go on. `None` means at once.
    fn begin(&self, request: &FramesRequest) -> Option<Receiver<()>> {
        let FramesRequest { pid, tid, number, .. } = *request;
        if !(self.client.is_awake)() {
            return None;
        }
        let code = code_size(pid);
        let mut known = self.known();
        let looked = known.looked.get(&pid).copied().unwrap_or_default();
        let is_known = code.is_some() && code == looked.code;
        if known.is_over || known.is_unanswered || is_known || known.held.len() >= MOST_HELD {
            return None;
        }
        let (until_dropped, end) = channel();
        known.held.push(Held { pid, tid, time: number, code, _until_dropped: until_dropped });
        Some(end)
    }

    /// Tells the session of a stopped thread, and waits until it has looked.
    fn wait_for_look(&self, pid: u32, end: &Receiver<()>, is_alive: &mut dyn FnMut() -> bool) {
        let until = Instant::now() + PATIENCE;
        let mut goes_on = || is_alive() && (self.client.is_awake)();
        while !(self.client.loaded)(pid) {
            if Instant::now() >= until || !goes_on() {
                return;
            }
            sleep(PAUSE);
        }
        while end.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) && goes_on() {
            if Instant::now() >= until {
                self.known().is_unanswered = true;
                return;
            }
        }
    }

    /// Lets the threads of a process go on that were held up to this time: the session has seen
    /// what was loaded by then.
    pub(super) fn looked(&self, pid: u32, time: u64) {
        let mut known = self.known();
        known.is_unanswered = false;
        if known.looked.len() >= MOST_KNOWN {
            known.looked.clear();
        }
        let looked = known.looked.entry(pid).or_default().time.max(time);
        let seen: Vec<Held> =
            known.held.extract_if(.., |held| held.pid == pid && held.time <= looked).collect();
        if let Some(last) = seen.iter().max_by_key(|held| held.time) {
            known.looked.insert(pid, Looked { time: looked, code: last.code });
        }
    }

    /// Holds no more threads. Those that are held stay so.
    pub(super) fn hold_no_more(&self) {
        self.known().is_over = true;
    }

    /// Lets all threads go on.
    pub(super) fn end(&self) {
        self.hold_no_more();
        self.known().held.clear();
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the size of the code that a process has mapped, in KiB. It grows with each library.
fn code_size(pid: u32) -> Option<u64> {
    ProcessStatus::of(pid).ok()?.words("VmLib").next()?.parse().ok()
}
