//! ctrace's side: asks the guard from any thread, and tracks the links that it keeps.

use super::{
    aftermath::{Left, Places},
    header::Id,
    start,
    wire::{GuardAnswer, GuardRequest, NO_PLACE, Reply},
};
use crate::bpf::{
    BpfError,
    link::kernel_link::{LinkRefusal, LinkSpec},
    restore::{Forgotten, GuardMaps, Restored},
};
use ctrace_core::units::Pid;
use rustix::{
    fs::{Mode, OFlags, fstat, open},
    process::{PidfdFlags, pidfd_open},
};
use std::{
    collections::HashMap,
    io,
    net::Shutdown,
    os::{
        fd::{AsFd as _, BorrowedFd},
        unix::net::UnixStream,
    },
    path::Path,
    process::Child,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::JoinHandle,
};
use tokio::sync::{mpsc::UnboundedSender, watch};

/// The guard of this process, while it lives.
static CURRENT: Mutex<Option<Arc<Guard>>> = Mutex::new(None);

/// The error of a dead guard: its links are gone.
const GONE: i32 = libc::EOWNERDEAD;

/// Returns the guard. Starts it if there is none and this program can start one.
pub(in super::super) fn current() -> Result<Option<Arc<Guard>>, BpfError> {
    let Some(died) = start::possible() else { return Ok(None) };
    let mut current = locked(&CURRENT);
    if let Some(guard) = current.as_ref().filter(|guard| !guard.is_dead()) {
        return Ok(Some(Arc::clone(guard)));
    }
    let guard = start::start(died).map_err(|source| BpfError::NoGuard { source })?;
    *current = Some(Arc::clone(&guard));
    Ok(Some(guard))
}

/// Returns the guard that was started last.
pub(super) fn last() -> Option<Arc<Guard>> {
    locked(&CURRENT).clone()
}

/// Returns whether this process is the guard.
pub(crate) fn is_guard(pid: Pid) -> bool {
    last().is_some_and(|guard| guard.pid == pid.0)
}

/// Tells the guard to continue this process if ctrace dies while holding it at a program's start.
pub(crate) fn hold(pid: Pid) -> io::Result<()> {
    let Some(guard) = last() else { return Ok(()) };
    let raw = rustix::process::Pid::from_raw(pid.0 as i32).ok_or(io::ErrorKind::NotFound)?;
    let command = pidfd_open(raw, PidfdFlags::empty())?;
    let hold = GuardRequest::Hold { pid: pid.0, fds: [command.as_fd()] };
    guard.holds.store(true, Ordering::Relaxed);
    guard.tell(&hold)
}

/// Tells the guard that no process is held.
pub(crate) fn let_go() {
    if let Some(guard) = last() {
        guard.holds.store(false, Ordering::Relaxed);
        // A dead guard holds nothing either.
        let _ = guard.tell(&GuardRequest::LetGo);
    }
}

/// The guard process, as ctrace sees it.
pub(in super::super) struct Guard {
    pid: u32,
    socket: UnixStream,
    /// Lock around each message.
    sending: Mutex<()>,
    /// The receivers of answers. `None` once the guard is gone.
    waiting: Mutex<Option<HashMap<Id, SyncSender<GuardAnswer>>>>,
    /// By guards: functions whose frames were restored, until somebody asks.
    restored: Mutex<HashMap<Id, Vec<Restored>>>,
    /// By guards: the receiver of processes that have loaded something.
    loads: Mutex<HashMap<Id, UnboundedSender<Pid>>>,
    /// The places of each link, from its request until it is known to be closed.
    places: Mutex<HashMap<Id, Places>>,
    last_id: AtomicU64,
    holds: AtomicBool,
    is_dead: watch::Sender<bool>,
    died: fn(&Left),
    listener: Mutex<Option<JoinHandle<()>>>,
}

impl Guard {
    /// Takes the started process, our end of its socket, and the function to call if it dies while
    /// there are links.
    pub(super) fn new(child: Child, socket: UnixStream, died: fn(&Left)) -> io::Result<Arc<Self>> {
        let listens = socket.try_clone()?;
        let (is_dead, _) = watch::channel(false);
        let guard = Arc::new(Self {
            pid: child.id(),
            socket,
            sending: Mutex::default(),
            waiting: Mutex::new(Some(HashMap::new())),
            restored: Mutex::default(),
            loads: Mutex::default(),
            places: Mutex::default(),
            last_id: AtomicU64::new(0),
            holds: AtomicBool::new(false),
            is_dead,
            died,
            listener: Mutex::default(),
        });
        let own = Arc::clone(&guard);
        let listen = move || own.listen(&listens, child);
        let thread = std::thread::Builder::new().name("guard".into()).stack_size(256 << 10);
        *locked(&guard.listener) = Some(thread.spawn(listen)?);
        Ok(guard)
    }

    /// Distributes answers until the guard is gone.
    fn listen(&self, socket: &UnixStream, mut child: Child) {
        while let Some(reply) = Reply::receive(socket) {
            let answer = match reply {
                Reply::Answer(answer) => answer,
                Reply::Restored { guards, restored } => {
                    let mut all = locked(&self.restored);
                    all.get_mut(&guards).into_iter().for_each(|of| of.push(restored));
                    continue;
                }
                Reply::Loaded { guards, pid } => {
                    // Without a receiver the thread soon goes on by itself.
                    let _ = locked(&self.loads).get(&guards).map(|to| to.send(Pid(pid)));
                    continue;
                }
            };
            let waiting = locked(&self.waiting).as_mut().and_then(|all| all.remove(&answer.id));
            // The receiver may have stopped waiting.
            let _ = waiting.map(|waiting| waiting.send(answer));
        }
        // The kernel closes the links at the guard's end, which comes after its socket's.
        let _ = child.wait();
        let left = Left::of(locked(&self.places).drain().map(|(_, places)| places));
        *locked(&self.waiting) = None;
        self.is_dead.send_replace(true);
        // Healing takes a while. The receivers already know of the death.
        if !left.is_nothing() {
            (self.died)(&left);
        }
    }

    pub(super) fn is_dead(&self) -> bool {
        locked(&self.waiting).is_none()
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns whether the guard may have to continue a held process.
    pub(super) fn holds(&self) -> bool {
        self.holds.load(Ordering::Relaxed)
    }

    /// Returns the number of places with probes, including those being made or removed.
    pub(super) fn sites(&self) -> usize {
        locked(&self.places).values().map(|places| places.count).sum()
    }

    /// Links all places of the file or none.
    pub(in super::super) fn link(
        self: &Arc<Self>,
        program: BorrowedFd<'_>,
        path: &Path,
        spec: &LinkSpec<'_>,
    ) -> Result<GuardedLink, LinkRefusal> {
        // The guard has another folder, and the path may name another file by then.
        let file =
            open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(
                |error| match error {
                    rustix::io::Errno::INVAL => io::Error::from_raw_os_error(libc::ENOENT),
                    error => error.into(),
                },
            )?;
        let id = self.new_id();
        let inode = fstat(&file).map_err(io::Error::from)?.st_ino;
        let places = Places { pid: spec.pid, inode, count: spec.offsets.len() };
        locked(&self.places).insert(id, places);
        let fds = [program, file.as_fd()];
        let answer = self.ask(id, &GuardRequest::Link { id, spec: *spec, fds });
        let refused = match answer {
            Ok(GuardAnswer { errno: 0, .. }) => {
                let links = spec.links();
                return Ok(GuardedLink { guard: Arc::clone(self), id, links, state: State::Open });
            }
            Ok(GuardAnswer { errno, place, .. }) => LinkRefusal {
                source: io::Error::from_raw_os_error(errno),
                index: (place != NO_PLACE).then_some(place as usize),
            },
            Err(error) => error.into(),
        };
        locked(&self.places).remove(&id);
        Err(refused)
    }

    fn new_id(&self) -> Id {
        self.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn ask(&self, id: Id, request: &GuardRequest<'_>) -> io::Result<GuardAnswer> {
        let answer = self.question(id, request)?;
        answer.recv().map_err(|_| io::Error::from_raw_os_error(GONE))
    }

    /// Sends a question. The receiver gets the answer, or an error when the guard dies.
    fn question(&self, id: Id, request: &GuardRequest<'_>) -> io::Result<Receiver<GuardAnswer>> {
        let (sender, receiver) = sync_channel(1);
        match locked(&self.waiting).as_mut() {
            Some(waiting) => waiting.insert(id, sender),
            None => return Err(io::Error::from_raw_os_error(GONE)),
        };
        // The listener notices if the guard is gone.
        let _ = self.tell(request);
        Ok(receiver)
    }

    fn tell(&self, request: &GuardRequest<'_>) -> io::Result<()> {
        let _alone = locked(&self.sending);
        request.send(&self.socket).inspect_err(|_| {
            // Half a message is useless: the connection ends.
            let _ = self.socket.shutdown(Shutdown::Both);
        })
    }

    /// Makes the guard restore return addresses with these maps.
    pub(in super::super) fn guard_returns(
        self: &Arc<Self>,
        maps: &GuardMaps,
        loads: UnboundedSender<Pid>,
    ) -> io::Result<GuardedReturns> {
        let GuardMaps { requests, states, guarded, lister, signals, forks } = maps;
        let fds = [requests, states, guarded, lister, signals, forks].map(|fd| fd.as_fd());
        let id = self.new_id();
        locked(&self.loads).insert(id, loads);
        locked(&self.restored).insert(id, Vec::new());
        // It takes the receiver back if there is an error.
        let returns = GuardedReturns { guard: Arc::clone(self), id };
        match self.ask(id, &GuardRequest::GuardReturns { id, fds })?.errno {
            0 => Ok(returns),
            errno => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Asks the guard to close all links and make no more.
    pub(super) fn close_all(&self) -> io::Result<Receiver<GuardAnswer>> {
        let id = self.new_id();
        self.question(id, &GuardRequest::CloseAll { id })
    }

    /// Ends the guard by closing the socket, and waits for its end.
    pub(super) fn end(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
        self.wait_for_healing();
    }

    /// Waits until a dying guard is gone and what it left is removed.
    pub(super) fn wait_for_healing(&self) {
        // Others wait at the lock.
        let mut listener = locked(&self.listener);
        let _ = listener.take().map(JoinHandle::join);
    }

    /// Returns a watch on the guard's death.
    pub(in super::super) fn death(&self) -> GuardDeath {
        GuardDeath { told: Some(self.is_dead.subscribe()) }
    }
}

/// A link that the guard keeps. Dropping it closes it.
pub(in super::super) struct GuardedLink {
    guard: Arc<Guard>,
    id: Id,
    links: usize,
    state: State,
}

enum State {
    Open,
    /// The answer will arrive here.
    Closing(Receiver<GuardAnswer>),
    Closed,
}

impl GuardedLink {
    /// Asks for its end without waiting.
    pub(in super::super) fn begin_to_close(&mut self) {
        if let State::Open = self.state {
            let answer = self.guard.question(self.id, &GuardRequest::Close { link: self.id });
            // Without a guard there is no link.
            self.state = answer.map_or(State::Closed, State::Closing);
        }
    }

    /// Closes the link. The probes are gone when it returns.
    pub(in super::super) fn close(mut self) -> io::Result<()> {
        self.end()
    }

    pub(in super::super) fn links(&self) -> usize {
        self.links
    }

    fn end(&mut self) -> io::Result<()> {
        self.begin_to_close();
        let State::Closing(answer) = std::mem::replace(&mut self.state, State::Closed) else {
            return Ok(());
        };
        match answer.recv() {
            Ok(GuardAnswer { errno, .. }) => {
                locked(&self.guard.places).remove(&self.id);
                if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
            }
            // The links died with the guard.
            Err(_) => Ok(()),
        }
    }
}

impl Drop for GuardedLink {
    fn drop(&mut self) {
        // Errors have no receiver here, and the guard's end removes what is left.
        let _ = self.end();
    }
}

/// Guards of return probes in the guard process. Dropping it ends them.
pub(in super::super) struct GuardedReturns {
    guard: Arc<Guard>,
    id: Id,
}

impl GuardedReturns {
    /// Restores the open frames, or those of one process, when no new ones are hijacked any more.
    /// Returns the number of those that are left. An error tells that nobody knows it.
    pub(in super::super) fn sweep(&self, whose: Option<Forgotten>) -> io::Result<usize> {
        let id = self.guard.new_id();
        match self.guard.ask(id, &GuardRequest::Sweep { id, guards: self.id, whose })? {
            GuardAnswer { errno: 0, place, .. } => Ok(place as usize),
            GuardAnswer { errno, .. } => Err(io::Error::from_raw_os_error(errno)),
        }
    }

    /// Returns whether the guard has died.
    pub(in super::super) fn is_dead(&self) -> bool {
        self.guard.is_dead()
    }

    /// Takes the functions whose frames were restored since the last call.
    pub(in super::super) fn take_restored(&self) -> Vec<Restored> {
        locked(&self.guard.restored).get_mut(&self.id).map(std::mem::take).unwrap_or_default()
    }

    /// Lets the threads of a process go on that had loaded something by this time.
    pub(in super::super) fn looked(&self, pid: u32, time: u64) {
        // A dead guard holds none.
        let _ = self.guard.tell(&GuardRequest::Looked { guards: self.id, pid, time });
    }
}

impl Drop for GuardedReturns {
    fn drop(&mut self) {
        locked(&self.guard.loads).remove(&self.id);
        locked(&self.guard.restored).remove(&self.id);
        // Without a guard there is nothing to end.
        let _ = self.guard.tell(&GuardRequest::EndGuards { guards: self.id });
    }
}

/// A watch on the death of the guard, with which all probes go.
pub(crate) struct GuardDeath {
    told: Option<watch::Receiver<bool>>,
}

impl GuardDeath {
    /// Returns a watch for links that no guard keeps.
    pub(in super::super) const fn never() -> Self {
        Self { told: None }
    }

    /// Returns whether the guard has died, even if another event was noticed first.
    pub(crate) fn has_come(&self) -> bool {
        self.told.as_ref().is_some_and(|told| *told.borrow())
    }

    pub(crate) async fn wait(&mut self) {
        match &mut self.told {
            // An error means the same.
            Some(told) => drop(told.wait_for(|is_dead| *is_dead).await),
            None => std::future::pending().await,
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
