//! The signal state that ctrace was started with, for the command that it launches: what is blocked
//! and whether SIGPIPE is ignored.
//!
//! Rust ignores SIGPIPE before main, and its launcher sets it to its default and unblocks all
//! signals. All other dispositions are inherited as they should be.
#![allow(unsafe_code, reason = "dispositions and masks of signals have no safe interface")]

use std::{
    io, mem::MaybeUninit, os::unix::process::CommandExt as _, process::Command, ptr, sync::OnceLock,
};

#[derive(Clone, Copy)]
struct Signals {
    sigpipe: libc::sighandler_t,
    blocked: libc::sigset_t,
}

static AT_START: OnceLock<Signals> = OnceLock::new();

/// The loader calls it before Rust's own start.
#[used]
#[unsafe(link_section = ".init_array")]
static NOTE: extern "C" fn() = note;

extern "C" fn note() {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    let mut blocked = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both only write what their last argument points to, for which all zeros is a value.
    let signals = unsafe {
        libc::sigaction(libc::SIGPIPE, ptr::null(), action.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), blocked.as_mut_ptr());
        Signals { sigpipe: action.assume_init().sa_sigaction, blocked: blocked.assume_init() }
    };
    let _ = AT_START.set(signals);
}

/// The command will start with the signal state that this process started with.
pub fn pass_on_signals(command: &mut Command) {
    let Some(&signals) = AT_START.get() else { return };
    // SAFETY: between fork and exec it calls only functions that signal handlers may call.
    unsafe { command.pre_exec(move || restore(&signals)) };
}

fn restore(signals: &Signals) -> io::Result<()> {
    // SAFETY: the disposition is SIG_DFL or SIG_IGN, as no handler survives an exec; the set was
    // filled by the kernel.
    let failed = unsafe {
        libc::signal(libc::SIGPIPE, signals.sigpipe) == libc::SIG_ERR
            || libc::pthread_sigmask(libc::SIG_SETMASK, &signals.blocked, ptr::null_mut()) != 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}
