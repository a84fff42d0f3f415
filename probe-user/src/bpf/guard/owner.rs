//! The state of ctrace, as its guard sees it.
//!
//! The socket of a killed ctrace may close late: a process's files close with its last thread, and
//! one may wait for something that never comes, such as a FUSE file system. The kernel shows the
//! death earlier: the first thread has ended, or SIGKILL is pending.

use crate::process_status::ProcessStatus;
use rustix::{
    net::sockopt::socket_peercred,
    process::{Pid, getppid},
};
use std::os::unix::net::UnixStream;

/// The bit of SIGKILL in a set of signals.
const KILLED: u64 = 1 << (libc::SIGKILL - 1);

/// ctrace, the parent of its guard.
pub(crate) struct Owner(Pid);

/// The state of ctrace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    Running,
    /// Stopped by a signal or a debugger: it does nothing until somebody continues it.
    Stopped,
    /// Dying, or gone.
    Dying,
}

impl Owner {
    /// Returns the process that made the socket.
    pub(super) fn of(socket: &UnixStream) -> rustix::io::Result<Self> {
        Ok(Self(socket_peercred(socket)?.pid))
    }

    pub(crate) fn look(&self) -> Sight {
        // After ctrace's end the guard has another parent, and the id may be reused.
        if getppid() != Some(self.0) {
            return Sight::Dying;
        }
        // If nothing can be read, the end of the socket decides.
        let status = ProcessStatus::of(self.0.as_raw_pid() as u32);
        status.map_or(Sight::Running, |status| sight(&status))
    }
}

fn sight(status: &ProcessStatus) -> Sight {
    let is_killed = |name| status.bits(name).is_some_and(|signals| signals & KILLED != 0);
    match status.field("State").bytes().next() {
        Some(b'Z' | b'X') => Sight::Dying,
        _ if is_killed("SigPnd") || is_killed("ShdPnd") => Sight::Dying,
        Some(b'T' | b't') => Sight::Stopped,
        _ => Sight::Running,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_and_signals_tell_how_it_is() {
        const NONE: &str = "0000000000000000";
        const TERM: &str = "0000000000004000";
        const KILL: &str = "0000000000004100";
        let seen = |state: &str, own: &str, shared: &str| {
            let name = "Name:\tState: Z\n";
            let text = format!("{name}State:\t{state}\nSigPnd:\t{own}\nShdPnd:\t{shared}\n");
            sight(&ProcessStatus::from(text.as_bytes()))
        };
        for (state, alive) in [
            ("S (sleeping)", Sight::Running),
            ("D (disk sleep)", Sight::Running),
            ("T (stopped)", Sight::Stopped),
            ("t (tracing stop)", Sight::Stopped),
        ] {
            assert_eq!(seen(state, NONE, TERM), alive, "{state}");
            assert_eq!(seen(state, KILL, NONE), Sight::Dying, "{state}");
            assert_eq!(seen(state, NONE, KILL), Sight::Dying, "{state}");
        }
        assert_eq!(seen("Z (zombie)", NONE, NONE), Sight::Dying);
        assert_eq!(seen("X (dead)", NONE, NONE), Sight::Dying);
        assert_eq!(sight(&ProcessStatus::from(&b""[..])), Sight::Running);
    }

    #[test]
    fn whoever_is_no_parent_any_more_is_gone() {
        assert_ne!(Owner(getppid().unwrap()).look(), Sight::Dying);
        assert_eq!(Owner(rustix::process::getpid()).look(), Sight::Dying);
    }
}
