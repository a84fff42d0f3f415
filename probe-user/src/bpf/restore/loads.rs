//! Threads that have just loaded code, held until the session has put guards into it.
//!
//! A library may switch stacks as soon as it is loaded. The dynamic linker announces it before
//! anything of it runs. The thread then waits in the program until it is stopped by ptrace, and
//! stays so until the session has looked. Its parent does not see that. Where no CPU is free for us
//! meanwhile, the thread stops its process instead. It is held in the same way then, and the process
//! is continued.
//!
//! A session that ends, or has died, looks no more, and return addresses are replaced until its
//! sweep is over. So threads that load something then are held until all addresses are put back.

use super::{Attention, Client, requests::FramesRequest, states::States, stopped};
use crate::process_status::ProcessStatus;
use std::{
    cell::Cell,
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
    /// The processes of threads of which it is not known yet whether they were answered in time.
    undecided: Vec<u32>,
    /// The requests of threads that stop their processes, which are to be continued.
    stopping: Vec<FramesRequest>,
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
            if !self.states.finish(&request) {
                self.known().stopping.push(request);
            }
            return;
        };
        let (loads, held) = (Arc::clone(self), request.clone());
        let hold = move || {
            let is_decided = Cell::new(false);
            let decide = |goes_on| {
                is_decided.set(true);
                loads.decide(&held, goes_on);
            };
            let arranged = || {
                let goes_on = loads.states.finish(&held);
                if goes_on {
                    decide(true);
                }
                goes_on
            };
            stopped::hold(
                (held.pid, held.tid),
                arranged,
                || decide(false),
                |is_alive| {
                    loads.wait_for_look(held.pid, &end, is_alive);
                },
            );
            // It could not be stopped.
            if !is_decided.get() {
                decide(loads.states.finish(&held));
            }
            loads.known().held.retain(|it| (it.tid, it.time) != (held.tid, held.number));
        };
        let builder = Builder::new().name("load".into()).stack_size(STACK_BYTES);
        let (tid, number) = (request.tid, request.number);
        if builder.spawn(hold).is_err() {
            self.decide(&request, self.states.finish(&request));
            self.known().held.retain(|it| (it.tid, it.time) != (tid, number));
        }
    }

    /// Notes whether the thread of a request was answered in time. Otherwise it stops its process, which
    /// has to be continued then.
    fn decide(&self, request: &FramesRequest, is_in_time: bool) {
        let mut known = self.known();
        if let Some(at) = known.undecided.iter().position(|pid| *pid == request.pid) {
            known.undecided.swap_remove(at);
        }
        if !is_in_time {
            known.stopping.push(request.clone());
        }
    }

    /// Returns whether a thread of a process may stop it, or has, and is not among those that
    /// [`Self::take_stopping`] has given out.
    pub(super) fn may_stop(&self, pid: u32) -> bool {
        let known = self.known();
        known.undecided.contains(&pid) || known.stopping.iter().any(|it| it.pid == pid)
    }

    /// Takes the requests of threads that stop their processes, which are to be continued.
    pub(super) fn take_stopping(&self) -> Vec<FramesRequest> {
        std::mem::take(&mut self.known().stopping)
    }

    /// Returns whether there may be such a request, now or soon.
    pub(super) fn may_have_some(&self) -> bool {
        let known = self.known();
        !known.undecided.is_empty() || !known.stopping.is_empty()
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
        known.undecided.push(pid);
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

    /// Has no guard ask for anything any more, also where another process keeps links to guards.
    pub(super) fn end_guards(&self) {
        self.states.end_guards();
    }

    /// Holds threads until [`Self::end`] from now on, whatever the session does. No call gets a return
    /// probe any more: another process that looks at the kernel's links may keep theirs open for a
    /// while, longer than anything is guarded.
    pub(super) fn begin_to_end(&self) {
        self.states.end_returns();
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

#[cfg(test)]
mod tests {
    use super::*;
    use ctrace_common::{RESTORE_ENDS, RESTORE_WORDS, RestoreReason};
    use std::{fs::File, os::unix::fs::FileExt as _, sync::mpsc::TryRecvError};

    struct Scene {
        loads: Arc<Loads>,
        attention: Arc<Mutex<Attention>>,
        words: File,
    }

    impl Scene {
        fn new(attention: Attention) -> Self {
            let words = tempfile::tempfile().unwrap();
            words.set_len(RESTORE_WORDS as u64 * 8).unwrap();
            let states = States::of(&words.try_clone().unwrap().into()).unwrap();
            let attention = Arc::new(Mutex::new(attention));
            let asked = Arc::clone(&attention);
            let client = Client {
                restored: Box::new(|_| true),
                loaded: Box::new(|_| true),
                attention: Box::new(move || *asked.lock().unwrap()),
            };
            Self { loads: Loads::new(Arc::new(states), Arc::new(client)), attention, words }
        }

        /// Returns the channel of a thread of this process that has loaded something.
        fn begin(&self, time: u64) -> Option<Receiver<()>> {
            self.loads.begin(&request(time))
        }

        fn gives_no_return_probes(&self) -> bool {
            let mut word = [0; 8];
            self.words.read_exact_at(&mut word, RESTORE_ENDS as u64 * 8).unwrap();
            word != [0; 8]
        }
    }

    fn request(time: u64) -> FramesRequest {
        FramesRequest {
            number: time,
            trampoline: 0,
            pid: std::process::id(),
            tid: 7,
            cpu: 0,
            reason: RestoreReason::Load,
            frames: Vec::new(),
        }
    }

    /// Nobody waits for a session that is stopped, but this thread waits no more: its word has no number.
    #[test]
    fn what_was_answered_too_late_is_given_out_once() {
        let scene = Scene::new(Attention::Sleeps);
        assert!(!scene.loads.may_have_some());
        scene.loads.hold(request(40));
        let pid = std::process::id();
        assert!(scene.loads.may_have_some() && scene.loads.may_stop(pid));
        let numbers: Vec<_> = scene.loads.take_stopping().iter().map(|it| it.number).collect();
        assert_eq!(numbers, [40]);
        assert!(!scene.loads.may_have_some() && !scene.loads.may_stop(pid));
    }

    /// A session may end before it is known whether a thread stops its process.
    #[test]
    fn what_may_stop_is_not_forgotten_at_the_end() {
        let scene = Scene::new(Attention::Looks);
        let pid = std::process::id();
        let [first, second] = [40, 50].map(|time| scene.begin(time).unwrap());
        scene.loads.end();
        assert!(!is_held(&first) && !is_held(&second));
        scene.loads.decide(&request(40), true);
        assert!(scene.loads.may_stop(pid) && scene.loads.take_stopping().is_empty());
        scene.loads.decide(&request(50), false);
        let numbers: Vec<_> = scene.loads.take_stopping().iter().map(|it| it.number).collect();
        assert_eq!((numbers, scene.loads.may_have_some()), (vec![50], false));
    }

    fn is_held(end: &Receiver<()>) -> bool {
        end.try_recv() == Err(TryRecvError::Empty)
    }

    #[test]
    fn a_thread_is_held_until_the_session_has_looked() {
        let scene = Scene::new(Attention::Looks);
        let end = scene.begin(40).unwrap();
        assert!(scene.loads.holds(7) && !scene.loads.holds(8));
        scene.loads.looked(std::process::id(), 39);
        assert!(is_held(&end));
        scene.loads.looked(std::process::id(), 40);
        assert!(!is_held(&end) && !scene.loads.holds(7));
        // Nothing has been loaded since.
        assert!(scene.begin(50).is_none());
    }

    #[test]
    fn nobody_waits_for_a_session_that_is_stopped() {
        let scene = Scene::new(Attention::Sleeps);
        assert!(scene.begin(40).is_none());
        // It has nothing to do with the end.
        scene.loads.begin_to_end();
        assert!(is_held(&scene.begin(40).unwrap()));
    }

    #[test]
    fn after_a_death_threads_are_held_until_the_end() {
        let scene = Scene::new(Attention::Looks);
        let before = scene.begin(40).unwrap();
        *scene.attention.lock().unwrap() = Attention::Gone;
        let after = scene.begin(50).unwrap();
        assert!(!scene.gives_no_return_probes());
        scene.loads.begin_to_end();
        assert!(scene.gives_no_return_probes());
        assert!(is_held(&before) && is_held(&after));
        scene.loads.end();
        assert!(!is_held(&before) && !is_held(&after));
        // A later sweep finds nothing to restore.
        scene.loads.begin_to_end();
        assert!(scene.begin(60).is_none());
    }

    #[test]
    fn a_session_that_does_not_answer_is_not_waited_for_again() {
        let scene = Scene::new(Attention::Looks);
        scene.loads.known().is_unanswered = true;
        assert!(scene.begin(40).is_none());
        scene.loads.begin_to_end();
        assert!(is_held(&scene.begin(40).unwrap()));
    }
}
