//! Threads that have just loaded code, held until the session has put guards into it.
//!
//! A library may switch stacks as soon as it is loaded. The dynamic linker announces it before
//! anything of it runs. The thread then waits in the program until it is stopped by ptrace, and
//! stays so until the session has looked. Its parent does not see that.
//!
//! A session that ends, or has died, looks no more, and return addresses are replaced until its
//! sweep is over. So threads that load something then are held until all addresses are put back.

use super::{Attention, Client, requests::FramesRequest, states::States, stopped};
use crate::process_status::ProcessStatus;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::Builder,
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
    phase: Phase,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Phase {
    /// The session looks at what was loaded.
    #[default]
    Looks,
    /// The session ends. The guard puts all return addresses back, whatever the session does.
    Ends,
    /// No return address is replaced any more, so nobody is held.
    Over,
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

    /// Holds the thread of a request until the session has looked, or all return addresses are put
    /// back, if there is something new.
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
        let attention = (self.client.attention)();
        let code = code_size(pid);
        let mut known = self.known();
        let looked = known.looked.get(&pid).copied().unwrap_or_default();
        let is_known = code.is_some() && code == looked.code;
        let is_vain = match (known.phase, attention) {
            (Phase::Looks, Attention::Looks) => known.is_unanswered,
            (Phase::Looks, Attention::Sleeps) | (Phase::Over, _) => true,
            (Phase::Looks, Attention::Gone) | (Phase::Ends, _) => false,
        };
        if is_vain || is_known || known.held.len() >= MOST_HELD {
            return None;
        }
        let (until_dropped, end) = channel();
        known.held.push(Held { pid, tid, time: number, code, _until_dropped: until_dropped });
        Some(end)
    }

    /// Tells the session of a stopped thread, and waits until it has looked.
    fn wait_for_look(&self, pid: u32, end: &Receiver<()>, is_alive: &mut dyn FnMut() -> bool) {
        let until = Instant::now() + PATIENCE;
        let mut is_told = false;
        loop {
            is_told = is_told || (self.client.loaded)(pid);
            if end.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout) || !is_alive() {
                return;
            }
            let attention = (self.client.attention)();
            let mut known = self.known();
            if known.phase == Phase::Looks && attention == Attention::Sleeps {
                return;
            }
            if Instant::now() >= until {
                known.is_unanswered |= is_told;
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

    /// Returns whether a thread is held, or about to be.
    pub(super) fn holds(&self, tid: u32) -> bool {
        self.known().held.iter().any(|held| held.tid == tid)
    }

    /// Holds threads until [`Self::end`] from now on, whatever the session does.
    pub(super) fn begin_to_end(&self) {
        let mut known = self.known();
        if known.phase == Phase::Looks {
            known.phase = Phase::Ends;
        }
    }

    /// Lets all threads go on, and holds no more.
    pub(super) fn end(&self) {
        let mut known = self.known();
        known.phase = Phase::Over;
        known.held.clear();
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the size of the code that a process has mapped, in KiB. It grows with each library.
fn code_size(pid: u32) -> Option<u64> {
    ProcessStatus::of(pid).ok()?.words("VmLib").next()?.parse().ok()
}
