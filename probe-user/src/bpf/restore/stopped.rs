//! A thread that is stopped by ptrace.
//!
//! Its parent does not see that, and the kernel lets it go on if the tracer dies. Another tracer
//! makes this impossible. Only the thread that stopped it can let it go, and only once it has
//! stopped, however long that takes. So a thread of our own looks after it.

use std::{
    io,
    path::Path,
    ptr,
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread::{Builder, sleep},
    time::{Duration, Instant},
};

/// Bytes for a thread's stack.
const STACK_BYTES: usize = 64 << 10;
/// A thread that does not stop within this time is in the kernel for long, or the machine is very
/// busy.
const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_micros(100);

/// A stopped thread. It goes on when this is dropped.
pub(super) struct Stopped {
    _until_dropped: Sender<()>,
}

impl Stopped {
    /// Stops the thread, and calls `meanwhile` every now and then until it has stopped. Returns
    /// `None` if another tracer has it, or if it does not stop soon.
    pub(super) fn new(tid: u32, mut meanwhile: impl FnMut()) -> Option<Self> {
        let (until_dropped, end) = channel::<()>();
        let (has_stopped, stopped) = channel();
        let tid = tid as libc::pid_t;
        let thread = Builder::new().name("stop".into()).stack_size(STACK_BYTES);
        let look_after = move || {
            if seize(tid).is_ok() {
                // The receiver may have lost its patience.
                let _ = has_stopped.send(());
                let _ = end.recv();
                let _ = ask(libc::PTRACE_DETACH, tid, 0);
            }
        };
        thread.spawn(look_after).ok()?;
        let until = Instant::now() + PATIENCE;
        loop {
            match stopped.recv_timeout(PAUSE) {
                Ok(()) => return Some(Self { _until_dropped: until_dropped }),
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => meanwhile(),
                // The sender is gone if it could not stop the thread.
                Err(_) => return None,
            }
        }
    }
}

/// Returns whether ptrace is allowed at all: nobody traces this thread, and only that is wrong.
pub(in super::super) fn may_stop_threads() -> bool {
    let tid = rustix::thread::gettid().as_raw_nonzero().get();
    let answer = ask(libc::PTRACE_CONT, tid, 0);
    answer.is_err_and(|error| error.raw_os_error() == Some(libc::ESRCH))
}

/// Stops a thread that waits in a program, as soon as it returns to its code, and lets it go when
/// `meanwhile` returns, which may ask whether the thread still lives. `arranged` is called when the
/// stop is arranged for, and returns `false` if the thread stops its process by itself. Then `late`
/// has the others go on.
pub(super) fn hold(
    (pid, tid): (u32, u32),
    arranged: impl FnOnce() -> bool,
    late: impl FnOnce(),
    meanwhile: impl FnOnce(&mut dyn FnMut() -> bool),
) {
    let tid = tid as libc::pid_t;
    // The id may belong to another process by now. Once the thread is ours, it keeps its id.
    let is_the_same = || Path::new(&format!("/proc/{pid}/task/{tid}")).exists();
    // Where it is not stopped, it is let go with the end of our thread.
    if ask(libc::PTRACE_SEIZE, tid, 0).is_err()
        || !is_the_same()
        || ask(libc::PTRACE_INTERRUPT, tid, 0).is_err()
    {
        return;
    }
    let is_in_time = arranged();
    let is_held = wait_for_stop(tid).is_ok();
    if !is_in_time {
        late();
    }
    if is_held {
        meanwhile(&mut || matches!(wait(tid), Ok(None)));
        let _ = ask(libc::PTRACE_DETACH, tid, 0);
    }
}

/// Stops a thread, and waits until it has stopped.
fn seize(tid: libc::pid_t) -> io::Result<()> {
    ask(libc::PTRACE_SEIZE, tid, 0)?;
    ask(libc::PTRACE_INTERRUPT, tid, 0)?;
    wait_for_stop(tid)
}

fn wait_for_stop(tid: libc::pid_t) -> io::Result<()> {
    loop {
        match wait(tid)? {
            None => sleep(PAUSE),
            Some(status) if !libc::WIFSTOPPED(status) => return Err(io::ErrorKind::NotFound.into()),
            Some(status) if status >> 16 == libc::PTRACE_EVENT_STOP => return Ok(()),
            // A signal arrived first: the thread gets it.
            Some(status) => ask(libc::PTRACE_CONT, tid, libc::WSTOPSIG(status))?,
        }
    }
}

/// Returns what a thread of ours has told last, if there is something new.
fn wait(tid: libc::pid_t) -> io::Result<Option<i32>> {
    let mut status = 0;
    // SAFETY: it writes the status, which lives.
    match unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL | libc::WNOHANG) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(None),
        _ => Ok(Some(status)),
    }
}

/// A request as this C library declares it.
#[cfg(target_env = "musl")]
type Request = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Request = libc::c_uint;

fn ask(request: Request, tid: libc::pid_t, data: i32) -> io::Result<()> {
    let data = ptr::without_provenance_mut::<libc::c_void>(data as usize);
    // SAFETY: none of our requests reads or writes our memory.
    match unsafe { libc::ptrace(request, tid, ptr::null_mut::<libc::c_void>(), data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
