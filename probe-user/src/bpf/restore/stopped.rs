//! A thread that is stopped by ptrace.
//!
//! Its parent does not see that, and the kernel lets it go on if the tracer dies. Another tracer
//! makes this impossible. Only the thread that stopped it can let it go, and only once it has
//! stopped, however long that takes. So a thread of our own looks after it.

use std::{
    io, ptr,
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
            if seize(tid, || ()).is_ok() {
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

/// Stops a thread as soon as it returns to its code, and lets it go when `until` returns. Calls
/// `arranged` when the stop is arranged for, or impossible because another tracer has the thread.
pub(super) fn hold(tid: u32, arranged: impl FnOnce(), until: impl FnOnce()) {
    let tid = tid as libc::pid_t;
    let mut arranged = Some(arranged);
    let mut arrange = || arranged.take().into_iter().for_each(|arranged| arranged());
    let is_stopped = seize(tid, &mut arrange).is_ok();
    arrange();
    if is_stopped {
        until();
        let _ = ask(libc::PTRACE_DETACH, tid, 0);
    }
}

/// Stops a thread, and waits until it has stopped. Calls `arranged` before it waits.
fn seize(tid: libc::pid_t, arranged: impl FnOnce()) -> io::Result<()> {
    ask(libc::PTRACE_SEIZE, tid, 0)?;
    ask(libc::PTRACE_INTERRUPT, tid, 0)?;
    arranged();
    loop {
        let mut status = 0;
        // SAFETY: it writes the status, which lives.
        match unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL | libc::WNOHANG) } {
            -1 => return Err(io::Error::last_os_error()),
            0 => sleep(PAUSE),
            _ if !libc::WIFSTOPPED(status) => return Err(io::ErrorKind::NotFound.into()),
            _ if status >> 16 == libc::PTRACE_EVENT_STOP => return Ok(()),
            // A signal arrived first: the thread gets it.
            _ => ask(libc::PTRACE_CONT, tid, libc::WSTOPSIG(status))?,
        }
    }
}

fn ask(request: libc::c_uint, tid: libc::pid_t, data: i32) -> io::Result<()> {
    let data = ptr::without_provenance_mut::<libc::c_void>(data as usize);
    // SAFETY: none of our requests reads or writes our memory.
    match unsafe { libc::ptrace(request, tid, ptr::null_mut::<libc::c_void>(), data) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
