//! The guard's side: threads make and close links, several at a time.
//!
//! Closing a link may take as long as a running call in the target. While one closes, the kernel
//! waits until no return probe is being taken, which may never happen while another link still has
//! some. So no request waits for another, and at the end all links are closed at once.

use super::{
    aftermath::{Left, Places},
    header::Id,
    owner::{Owner, Sight},
    room::{LinkRoom, Taken},
    wire::{GuardAnswer, NO_PLACE, NewLink, ReceivedRequest},
};
use crate::bpf::{
    link::kernel_link,
    restore::{Attention, Client, Forgotten, GuardMaps, Restorer},
};
use rustix::{
    fs::fstat,
    process::{Resource, getrlimit},
};
use std::{
    collections::HashMap,
    ffi::CString,
    io,
    net::Shutdown,
    os::{
        fd::{AsFd as _, AsRawFd as _, OwnedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread::{Builder, Scope},
    time::Duration,
};

/// Bytes for threads that mostly wait for the kernel.
const STACK_BYTES: usize = 128 << 10;

/// Time between two checks of ctrace.
const PAUSE: Duration = Duration::from_secs(1);

/// A process that may be held at the start of a program, with its pidfd.
pub(crate) struct Hold {
    pub pid: u32,
    pub command: OwnedFd,
}

/// Serves until the other end closes or sends nonsense, then closes all links. Calls `look` now and
/// then with the process that may be held. `Sight::Dying` from `look` also ends it, although
/// ctrace's end of the socket may still be open.
pub(super) fn serve(
    socket: &UnixStream,
    look: impl FnMut(Option<&Hold>) -> Sight + Send,
    outlive: impl Fn(&Hold) + Sync,
    died: fn(&Left),
) {
    let server = Server {
        socket,
        sending: Arc::default(),
        state: Mutex::default(),
        idle: Condvar::new(),
        room: LinkRoom::new(getrlimit(Resource::Nofile).current),
    };
    let outlive = &outlive;
    std::thread::scope(|scope| {
        let (watched, end) = channel();
        let thread = Builder::new().name("watch".into()).stack_size(STACK_BYTES);
        let watching = &server;
        let watch = move || watching.watch(&end, look);
        // Without the thread, only the end of the socket tells, later.
        let _ = thread.spawn_scoped(scope, watch);
        while let Ok(Some(asked)) = ReceivedRequest::receive(socket) {
            match asked {
                ReceivedRequest::Link(link) => {
                    let turn = Turn::new(&server, link.id);
                    start(scope, turn, || server.link(link));
                }
                ReceivedRequest::Close { link } => match server.take(link) {
                    Some(kept) => {
                        let turn = Turn::new(&server, link);
                        start(scope, turn, || Reply::to(kept.close()));
                    }
                    // All links are being closed, this one among them.
                    None if server.state().is_leaving => start_end(scope, &server, link),
                    None => server.answer(GuardAnswer::done(link, &Ok(()))),
                },
                ReceivedRequest::CloseAll { id } => {
                    server.state().is_leaving = true;
                    start_end(scope, &server, id);
                }
                ReceivedRequest::Hold { pid, command } => {
                    server.state().held = Some(Arc::new(Hold { pid, command }));
                }
                ReceivedRequest::LetGo => server.state().held = None,
                ReceivedRequest::GuardReturns { id, maps } => {
                    server.answer(GuardAnswer::done(id, &server.guard_returns(id, maps)));
                }
                ReceivedRequest::Sweep { id, guards, whose } => {
                    let (turn, server) = (Turn::new(&server, id), &server);
                    let sweep =
                        move || Reply { place: server.sweep(guards, whose), ..Reply::to(Ok(())) };
                    start(scope, turn, sweep);
                }
                ReceivedRequest::Looked { guards, pid, time } => {
                    let restorer = server.state().restorers.get(&guards).cloned();
                    restorer.into_iter().for_each(|restorer| restorer.looked(pid, time));
                }
                ReceivedRequest::EndGuards { guards } => {
                    let ended = server.state().restorers.remove(&guards);
                    drop(ended);
                }
                ReceivedRequest::Lost { id } => {
                    server.answer(GuardAnswer::done(id, &Err(no_room())))
                }
            }
        }
        drop::<Sender<()>>(watched);
        let held = server.state().held.take();
        let beside = held.clone().is_none_or(|held| {
            let thread = Builder::new().name("hold".into()).stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, move || outlive(&held)).is_ok()
        });
        server.state().is_leaving = true;
        let left = Left::of(server.close_all());
        if !left.is_nothing() {
            died(&left);
        }
        // There was no memory for a thread.
        if let Some(held) = held.filter(|_| !beside) {
            outlive(&held);
        }
    });
}

/// Starts a thread that closes all links and then answers this question.
fn start_end<'scope>(scope: &'scope Scope<'scope, '_>, server: &'scope Server<'scope>, id: Id) {
    start(scope, Turn::apart(server, id), || {
        server.close_all();
        Reply::to(Ok(()))
    });
}

fn no_room() -> io::Error {
    io::Error::from_raw_os_error(libc::EMFILE)
}

/// Starts a thread that does the work and answers. Without a thread, drops the work here.
fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    mut turn: Turn<'scope>,
    work: impl FnOnce() -> Reply + Send + 'scope,
) {
    let thread = Builder::new().name("link".into()).stack_size(STACK_BYTES);
    // The turn answers on drop, even if the work was not done.
    let _ = thread.spawn_scoped(scope, move || {
        turn.reply = work();
        drop(turn);
    });
}

struct Server<'a> {
    socket: &'a UnixStream,
    sending: Arc<Mutex<()>>,
    state: Mutex<State>,
    /// Notified when a thread has done its work.
    idle: Condvar,
    room: Arc<LinkRoom>,
}

#[derive(Default)]
struct State {
    links: HashMap<Id, HeldLink>,
    /// The guards of return probes, by the question that started them.
    restorers: HashMap<Id, Arc<Restorer>>,
    /// The number of working threads.
    busy: usize,
    /// True if no more links are made.
    is_leaving: bool,
    held: Option<Arc<Hold>>,
}

struct HeldLink {
    links: Vec<OwnedFd>,
    keeps_to_the_end: bool,
    places: Places,
    taken: Taken,
}

impl HeldLink {
    fn close(self) -> io::Result<()> {
        let closed = kernel_link::close(self.links);
        drop(self.taken);
        closed
    }
}

/// A thread's result.
struct Reply {
    result: io::Result<()>,
    place: u32,
}

impl Reply {
    fn to(result: io::Result<()>) -> Self {
        Self { result, place: NO_PLACE }
    }
}

impl Server<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches until the other end of `end` is dropped, or ctrace dies.
    fn watch(&self, end: &Receiver<()>, mut look: impl FnMut(Option<&Hold>) -> Sight) {
        while end.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
            let held = self.state().held.clone();
            if look(held.as_deref()) == Sight::Dying {
                // The reading thread sees the end.
                let _ = self.socket.shutdown(Shutdown::Both);
                return;
            }
        }
    }

    fn answer(&self, answer: GuardAnswer) {
        let _alone = self.sending.lock().unwrap_or_else(PoisonError::into_inner);
        // The receiver may be gone.
        let _ = answer.send(self.socket);
    }

    fn take(&self, link: Id) -> Option<HeldLink> {
        self.state().links.remove(&link)
    }

    fn link(&self, link: NewLink) -> Reply {
        if self.state().is_leaving {
            return Reply::to(Err(io::Error::from_raw_os_error(libc::ECANCELED)));
        }
        let Some(taken) = self.room.take(link.spec().links()) else {
            return Reply::to(Err(no_room()));
        };
        let path = CString::new(format!("/proc/self/fd/{}", link.file.as_raw_fd()));
        let made = kernel_link::make(link.program.as_fd(), &path.unwrap_or_default(), &link.spec());
        match made {
            Ok(links) => {
                let inode = fstat(&link.file).map_or(0, |file| file.st_ino);
                let places = Places { pid: link.pid, inode, count: link.spec().offsets.len() };
                let keeps_to_the_end = link.spec().keeps_to_the_end;
                let held = HeldLink { links, keeps_to_the_end, places, taken };
                self.state().links.insert(link.id, held);
                Reply::to(Ok(()))
            }
            Err(refusal) => {
                let place = refusal.index.map_or(NO_PLACE, |index| index as u32);
                Reply { result: Err(refusal.source), place }
            }
        }
    }

    /// Starts to restore return addresses.
    fn guard_returns(&self, id: Id, maps: GuardMaps) -> io::Result<()> {
        let sender = || {
            let (socket, sending) = (self.socket.try_clone()?, Arc::clone(&self.sending));
            // While ctrace is stopped, answers find no room. Held threads must not wait for that.
            let send = move |answer: GuardAnswer| {
                sending.try_lock().is_ok_and(|_alone| answer.send_now(&socket))
            };
            io::Result::Ok(send)
        };
        let (tell, tell_of_load, owner) = (sender()?, sender()?, Owner::of(self.socket)?);
        let client = Client {
            restored: Box::new(move |restored| tell(GuardAnswer::restored(id, restored))),
            loaded: Box::new(move |pid| tell_of_load(GuardAnswer::loaded(id, pid))),
            attention: Box::new(move || match owner.look() {
                Sight::Running => Attention::Looks,
                Sight::Stopped => Attention::Sleeps,
                Sight::Dying => Attention::Gone,
            }),
        };
        let restorer = Restorer::start(maps, client)?;
        self.state().restorers.insert(id, Arc::new(restorer));
        Ok(())
    }

    /// Restores the open frames of some guards, or of one process of theirs. Returns the number of
    /// those that are left.
    fn sweep(&self, guards: Id, whose: Option<Forgotten>) -> u32 {
        let Some(restorer) = self.state().restorers.get(&guards).cloned() else { return 0 };
        let left = match whose {
            Some(whose) => restorer.sweep_process(whose),
            None => restorer.sweep(),
        };
        left as u32
    }

    /// Closes all links, and waits for all work. Returns their places. Nobody guards the return
    /// probes at the very end, so no address of theirs is left on a stack by then.
    fn close_all(&self) -> Vec<Places> {
        let restorers: Vec<_> = self.state().restorers.values().cloned().collect();
        restorers.iter().for_each(|restorer| restorer.begin_to_end());
        let mut places = self.close_those(|link| !link.keeps_to_the_end);
        for restorer in restorers {
            restorer.sweep();
        }
        places.extend(self.close_those(|_| true));
        places
    }

    /// Closes some links at once, including those in the making, and waits for all work. Returns
    /// their places.
    fn close_those(&self, chosen: impl Fn(&HeldLink) -> bool) -> Vec<Places> {
        let mut places = Vec::new();
        loop {
            let some: Vec<_> = {
                let mut state = self.state();
                // Other threads that wait for the end of all links must wait for these.
                state.busy += 1;
                let ids: Vec<_> = state.chosen(&chosen).collect();
                ids.iter().filter_map(|id| state.links.remove(id)).collect()
            };
            let more = !some.is_empty();
            std::thread::scope(|scope| {
                for kept in some {
                    places.push(kept.places);
                    let thread = Builder::new().name("link".into()).stack_size(STACK_BYTES);
                    // Without a thread, the link is closed here.
                    let _ = thread.spawn_scoped(scope, || kept.close());
                }
            });
            self.state().busy -= 1;
            self.idle.notify_all();
            let is_waiting =
                |state: &mut State| state.busy > 0 && state.chosen(&chosen).next().is_none();
            let state = self.idle.wait_while(self.state(), is_waiting);
            let state = state.unwrap_or_else(PoisonError::into_inner);
            if !more && state.chosen(&chosen).next().is_none() {
                return places;
            }
        }
    }
}

impl State {
    fn chosen(&self, chosen: impl Fn(&HeldLink) -> bool) -> impl Iterator<Item = Id> {
        self.links.iter().filter(move |(_, link)| chosen(link)).map(|(id, _)| *id)
    }
}

/// Work in progress. Its end is always reported.
struct Turn<'a> {
    server: &'a Server<'a>,
    id: Id,
    reply: Reply,
    /// True if the end of all links waits for it.
    is_counted: bool,
}

impl<'a> Turn<'a> {
    fn new(server: &'a Server<'a>, id: Id) -> Self {
        server.state().busy += 1;
        let mut turn = Self::apart(server, id);
        turn.is_counted = true;
        turn
    }

    /// Makes a turn for work that itself waits for the others.
    fn apart(server: &'a Server<'a>, id: Id) -> Self {
        let undone = io::Error::from_raw_os_error(libc::EAGAIN);
        Self { server, id, reply: Reply::to(Err(undone)), is_counted: false }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let Reply { result, place } = &self.reply;
        self.server.answer(GuardAnswer { place: *place, ..GuardAnswer::done(self.id, result) });
        if self.is_counted {
            self.server.state().busy -= 1;
            self.server.idle.notify_all();
        }
    }
}

#[cfg(test)]
#[path = "server_tests.rs"]
mod tests;
