//! Puts the return addresses of processes back that are traced no more, beside the session.
//!
//! A call that does not return costs up to seconds, and a process may have started a thousand others. The
//! session goes on meanwhile. A thread of such a process that has loaded something waits for its turn:
//! nothing guards what it has loaded.

use super::{link::keeper::ReturnGuard, machine::clock::now, restore::Forgotten, sys};
use ctrace_common::GUARDED;
use ctrace_core::units::{Nanos, Pid};
use std::{
    collections::VecDeque,
    io,
    os::fd::{AsFd as _, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{Builder, JoinHandle},
};

/// Bytes for the thread's stack, which mostly waits.
const STACK_BYTES: usize = 256 << 10;

/// The guards of a session, and the processes that they let go of.
pub(super) struct LettingGo {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    guard: ReturnGuard,
    sets: Sets,
    queue: Mutex<Queue>,
}

/// The kernel's sets of processes.
struct Sets {
    guarded: Arc<OwnedFd>,
    traced: Arc<OwnedFd>,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// The process that is let go of.
    under_way: Option<u32>,
    /// True while a thread works.
    is_served: bool,
    /// The processes with frames that could not be restored, and their number.
    left: Vec<(Pid, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    LetGo(Forgotten),
    /// The threads of a process go on that had loaded something by this time.
    Looked {
        pid: u32,
        time: u64,
    },
}

impl LettingGo {
    pub(super) fn new(guard: ReturnGuard, guarded: Arc<OwnedFd>, traced: Arc<OwnedFd>) -> Self {
        let shared =
            Arc::new(Shared { guard, sets: Sets { guarded, traced }, queue: Mutex::default() });
        Self { shared, thread: Mutex::default() }
    }

    pub(super) fn guard(&self) -> &ReturnGuard {
        &self.shared.guard
    }

    /// Begins to restore the open frames of processes that are traced no more. Those without frames left
    /// are guarded no more.
    pub(super) fn begin(&self, pids: &[Pid]) {
        let time = now().0;
        let guarded = pids.iter().filter(|pid| is_in(&self.shared.sets.guarded, pid.0));
        let jobs = guarded.map(|pid| Job::LetGo(Forgotten { pid: pid.0, time }));
        let mut queue = self.shared.queue();
        queue.jobs.extend(jobs);
        if queue.jobs.is_empty() || queue.is_served {
            return;
        }
        queue.is_served = true;
        drop(queue);
        let shared = Arc::clone(&self.shared);
        let thread = Builder::new().name("let-go".into()).stack_size(STACK_BYTES);
        match thread.spawn(move || shared.serve()) {
            Ok(thread) => {
                let before = locked(&self.thread).replace(thread);
                before.into_iter().for_each(|ended| drop(ended.join()));
            }
            Err(_) => self.shared.serve(),
        }
    }

    /// Lets the threads of a process go on that had loaded something by this time, once nothing of it
    /// is left to be restored.
    pub(super) fn looked(&self, pid: Pid, time: Nanos) {
        let mut queue = self.shared.queue();
        if queue.awaits(pid.0) {
            queue.jobs.push_back(Job::Looked { pid: pid.0, time: time.0 });
        } else {
            drop(queue);
            self.shared.guard.looked(pid.0, time.0);
        }
    }

    /// Takes the processes some of whose frames could not be restored, with their number.
    pub(super) fn take_left(&self) -> Vec<(Pid, usize)> {
        std::mem::take(&mut self.shared.queue().left)
    }

    /// Leaves the rest to a sweep of all.
    pub(super) fn end(&self) {
        self.shared.queue().jobs.clear();
    }
}

impl Drop for LettingGo {
    fn drop(&mut self) {
        self.end();
        locked(&self.thread).take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

impl Queue {
    fn awaits(&self, pid: u32) -> bool {
        let is_its = |job: &Job| matches!(job, Job::LetGo(whose) if whose.pid == pid);
        self.under_way == Some(pid) || self.jobs.iter().any(is_its)
    }

    fn next(&mut self) -> Option<Job> {
        let job = self.jobs.pop_front();
        self.is_served = job.is_some();
        self.under_way = match job {
            Some(Job::LetGo(whose)) => Some(whose.pid),
            _ => None,
        };
        job
    }
}

impl Shared {
    fn serve(&self) {
        loop {
            // Others may not wait for the lock meanwhile.
            let next = self.queue().next();
            match next {
                Some(Job::LetGo(whose)) => self.let_go(whose),
                Some(Job::Looked { pid, time }) => self.guard.looked(pid, time),
                None => return,
            }
        }
    }

    fn let_go(&self, whose: Forgotten) {
        // It may have been admitted again.
        if !is_in(&self.sets.traced, whose.pid) {
            let left = self.sets.leave(whose.pid, self.guard.sweep_process(whose));
            self.queue().left.extend(left.map(|left| (Pid(whose.pid), left)));
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        locked(&self.queue)
    }
}

impl Sets {
    /// Guards a process no more if nothing of it was left to restore. Returns the number of the frames
    /// that are left, if some are.
    fn leave(&self, pid: u32, swept: io::Result<usize>) -> Option<usize> {
        match swept {
            Ok(0) if !is_in(&self.traced, pid) => {
                // One that has ended is no error.
                let _ = sys::map_delete(self.guarded.as_fd(), pid);
                // The kernel may have admitted it in between, with guards.
                if is_in(&self.traced, pid) {
                    let _ = sys::map_update(self.guarded.as_fd(), pid, &[GUARDED]);
                }
                None
            }
            Ok(left) => Some(left).filter(|left| *left > 0),
            // The end of the session restores them.
            Err(error) => {
                tracing::debug!("process {pid} is guarded on: {error}");
                None
            }
        }
    }
}

/// Returns whether a process is in a map, which has it where the kernel does not tell.
fn is_in(map: &OwnedFd, pid: u32) -> bool {
    let found = sys::map_lookup(map.as_fd(), pid, &mut [0]);
    !found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::sys::{Syscall, fake};
    use std::{cell::RefCell, fs::File, rc::Rc};

    const LOOKUP: u32 = 1;
    const UPDATE: u32 = 2;
    const DELETE: u32 = 3;

    /// Returns what is told as left of a process that was swept, and what becomes of its guards. It is
    /// traced from the look with this number on.
    fn left(swept: io::Result<usize>, traced_from: usize) -> (Option<usize>, Vec<u32>) {
        let null = || Arc::new(File::open("/dev/null").unwrap().into());
        let sets = Sets { guarded: null(), traced: null() };
        let changes = Rc::new(RefCell::new(Vec::new()));
        let (seen, mut looks) = (Rc::clone(&changes), 0);
        let _fake = fake::Fake::new(move |call| match call {
            Syscall::Bpf { command: LOOKUP, .. } => {
                looks += 1;
                if looks >= traced_from { Ok(0) } else { fake::error(libc::ENOENT) }
            }
            Syscall::Bpf { command, .. } => {
                seen.borrow_mut().push(*command);
                Ok(0)
            }
            _ => fake::error(libc::ENOSYS),
        });
        let told = sets.leave(7, swept);
        (told, changes.take())
    }

    #[test]
    fn a_process_is_guarded_until_nothing_is_left() {
        assert_eq!(left(Ok(0), 9), (None, vec![DELETE]));
        assert_eq!(left(Ok(3), 9), (Some(3), Vec::new()));
        let dead = Err(io::Error::from_raw_os_error(libc::EOWNERDEAD));
        assert_eq!(left(dead, 9), (None, Vec::new()));
    }

    #[test]
    fn a_process_that_is_traced_again_is_guarded_again() {
        assert_eq!(left(Ok(0), 1), (None, Vec::new()));
        assert_eq!(left(Ok(0), 2), (None, vec![DELETE, UPDATE]));
    }

    fn let_go(pid: u32) -> Job {
        Job::LetGo(Forgotten { pid, time: 5 })
    }

    /// The thread that has loaded something goes on only when its frames are restored.
    #[test]
    fn a_process_is_awaited_until_it_was_let_go_of() {
        let mut queue = Queue { jobs: [let_go(7), let_go(8)].into(), ..Queue::default() };
        assert!(queue.awaits(7) && queue.awaits(8) && !queue.awaits(9));
        queue.jobs.push_back(Job::Looked { pid: 8, time: 40 });
        assert_eq!(queue.next(), Some(let_go(7)));
        assert!(queue.awaits(7) && queue.awaits(8));
        assert_eq!(queue.next(), Some(let_go(8)));
        assert!(!queue.awaits(7) && queue.awaits(8));
        assert_eq!(queue.next(), Some(Job::Looked { pid: 8, time: 40 }));
        assert!(!queue.awaits(8) && queue.is_served);
        assert_eq!((queue.next(), queue.is_served), (None, false));
    }
}
