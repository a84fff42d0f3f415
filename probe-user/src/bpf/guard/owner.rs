//! How ctrace is, as its guard sees it.
//!
//! The end of a socket comes late where a thread of a killed ctrace waits for something that never
//! comes, such as an answer of a FUSE file system: the files of a process close with its last thread.
//! The kernel tells before that that it is doomed: its first thread has ended, or SIGKILL waits for it.

use rustix::{
    net::sockopt::socket_peercred,
    process::{Pid, getppid},
};
use std::{fs, os::unix::net::UnixStream};

/// The bit of SIGKILL in a set of signals.
const KILLED: u64 = 1 << (libc::SIGKILL - 1);

/// ctrace, the parent of its guard.
pub(crate) struct Owner(Pid);

/// How ctrace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    Running,
    /// By a signal or a debugger: it does nothing until somebody continues it.
    Stopped,
    /// Also of one that is gone.
    Dying,
}

impl Owner {
    /// Who made the socket.
    pub(super) fn of(socket: &UnixStream) -> rustix::io::Result<Self> {
        Ok(Self(socket_peercred(socket)?.pid))
    }

    pub(crate) fn look(&self) -> Sight {
        // The guard of one that is gone has another parent, and the id may be anybody's.
        if getppid() != Some(self.0) {
            return Sight::Dying;
        }
        // Where nothing can be read, the end of the socket must do.
        let status = fs::read(format!("/proc/{}/status", self.0));
        status.map_or(Sight::Running, |status| sight(&status))
    }
}

/// From the text of /proc/PID/status; the name of the process in it may hold any bytes but newlines.
fn sight(status: &[u8]) -> Sight {
    let value = |key: &[u8]| {
        let mut lines = status.split(|byte| *byte == b'\n');
        lines.find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim_ascii()
    };
    let is_killed = |key| {
        let signals = str::from_utf8(value(key)).ok();
        let signals = signals.and_then(|hex| u64::from_str_radix(hex, 16).ok());
        signals.is_some_and(|signals| signals & KILLED != 0)
    };
    match value(b"State:").first() {
        Some(b'Z' | b'X') => Sight::Dying,
        _ if is_killed(b"SigPnd:") || is_killed(b"ShdPnd:") => Sight::Dying,
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
            sight(format!("{name}State:\t{state}\nSigPnd:\t{own}\nShdPnd:\t{shared}\n").as_bytes())
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
        assert_eq!(sight(b""), Sight::Running);
    }

    #[test]
    fn whoever_is_no_parent_any_more_is_gone() {
        assert_ne!(Owner(getppid().unwrap()).look(), Sight::Dying);
        assert_eq!(Owner(rustix::process::getpid()).look(), Sight::Dying);
    }
}
