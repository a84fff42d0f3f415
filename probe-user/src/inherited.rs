//! Keeps the signal state that ctrace was started with, for the command that it launches: the
//! blocked signals, and whether SIGPIPE, SIGCHLD, SIGXFSZ, SIGINT, SIGTERM and SIGHUP are ignored.
//!
//! Rust ignores SIGPIPE before main, and its launcher resets it and unblocks all signals. ctrace
//! never ignores SIGCHLD, because the status of a child is lost otherwise. It ignores SIGXFSZ, so
//! that a file over its limit (`ulimit -f`) is an error of the write. It handles the last three before the
//! command begins. All other dispositions are inherited unchanged.
#![allow(unsafe_code, reason = "what a process inherits has no safe interface")]

pub(crate) mod descriptors;
pub(crate) mod keyring;

use std::{
    io, mem::MaybeUninit, os::unix::process::CommandExt as _, process::Command, ptr, sync::OnceLock,
};

const KEPT: [libc::c_int; 6] =
    [libc::SIGPIPE, libc::SIGCHLD, libc::SIGXFSZ, libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

#[derive(Clone, Copy)]
struct Signals {
    dispositions: [libc::sighandler_t; KEPT.len()],
    blocked: libc::sigset_t,
}

static AT_START: OnceLock<Signals> = OnceLock::new();

/// The loader calls it before Rust's own start.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    let mut blocked = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: it only writes the set, for which all zeros is a value.
    let blocked = unsafe {
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), blocked.as_mut_ptr());
        blocked.assume_init()
    };
    let _ = AT_START.set(Signals { dispositions: KEPT.map(disposition), blocked });
    // SAFETY: no handler is set.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

fn disposition(signal: libc::c_int) -> libc::sighandler_t {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: it only writes `action`, for which all zeros is a value.
    unsafe {
        libc::sigaction(signal, ptr::null(), action.as_mut_ptr());
        action.assume_init().sa_sigaction
    }
}

/// Returns whether a signal is ignored that nobody has a handler for yet.
pub(crate) fn ignores(signal: libc::c_int) -> bool {
    disposition(signal) == libc::SIG_IGN
}

/// Starts the command with the signal state that this process started with.
pub(crate) fn pass_on_signals(command: &mut Command) {
    let Some(&signals) = AT_START.get() else { return };
    // SAFETY: between fork and exec it calls only functions that signal handlers may call.
    unsafe { command.pre_exec(move || restore(&signals)) };
}

fn restore(signals: &Signals) -> io::Result<()> {
    // SAFETY: the dispositions are SIG_DFL or SIG_IGN, as no handler survives an exec; the set was
    // filled by the kernel.
    let done = unsafe {
        KEPT.iter()
            .zip(signals.dispositions)
            .all(|(signal, disposition)| libc::signal(*signal, disposition) != libc::SIG_ERR)
            && libc::pthread_sigmask(libc::SIG_SETMASK, &signals.blocked, ptr::null_mut()) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}
