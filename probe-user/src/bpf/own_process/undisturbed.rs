//! Protects a process that makes or closes links: its end would leave breakpoints.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The highest signal number.
const LAST: i32 = 64;
/// The first two cannot be ignored; the others end no process. A parent may wait for SIGCHLD.
const LEFT_ALONE: [i32; 4] = [libc::SIGKILL, libc::SIGSTOP, libc::SIGCONT, libc::SIGCHLD];

/// The kernel's `struct sigaction`: handler, flags, restorer, mask.
type Action = [usize; 4];
static IGNORED: Action = [libc::SIG_IGN, 0, 0, 0];

/// Ignores every signal that would end or stop this process, but SIGKILL and SIGSTOP, and lifts its
/// limits of CPU time. Its own faults and abort() still end it. It may be called between fork and
/// exec.
pub(crate) fn stay_undisturbed() {
    for signal in (1..=LAST).filter(|signal| !LEFT_ALONE.contains(signal)) {
        let none = std::ptr::null_mut::<Action>();
        // The C library would refuse its internal signals. It takes them back when it needs them.
        // SAFETY: the kernel reads one action, whose mask has 8 bytes; no handler is set.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, &raw const IGNORED, none, 8_usize) };
    }
    [Resource::Cpu, Resource::Rttime].into_iter().for_each(lift);
}

/// Lifts a limit as far as the rights allow.
pub(crate) fn lift(limit: Resource) {
    let most = getrlimit(limit).maximum;
    let _ = setrlimit(limit, Rlimit { current: None, maximum: None })
        .or_else(|_| setrlimit(limit, Rlimit { current: most, maximum: most }));
}
