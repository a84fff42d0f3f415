//! Waits: the times in which a thread has no processor, and why. A wait is a call of a function of the
//! kernel, inside the traced calls of its thread.

use crate::function::{FunctionInfo, ValueInfo, ValueKind};
use ctrace_common::WaitState;
use serde::{Deserialize, Serialize};

/// The object of waits in reports.
pub const KERNEL: &str = "kernel";

/// The name of the value of a wait that says who has ended it.
pub const WAKER: &str = "waker";

/// The two kinds of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitClass {
    /// The thread could run at once, but others have the processors.
    Runnable,
    /// It waits for something else.
    Blocked,
}

/// A thread's reason to have no processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Runnable,
    Futex,
    Sleep,
    Poll,
    Read,
    Write,
    Disk,
    Socket,
    Child,
    Signal,
    File,
    Memory,
    PageFault,
    Stopped,
    Other,
}

impl Wait {
    /// The number of reasons.
    pub(crate) const COUNT: usize = Self::Other as usize + 1;

    /// Returns the reason for a wait.
    pub(crate) fn of(state: WaitState, syscall: u16) -> Self {
        match state {
            WaitState::Preempted | WaitState::Woken => Self::Runnable,
            WaitState::Stopped => Self::Stopped,
            // Outside of system calls, a thread that is blocked like this waits for no page.
            WaitState::Interruptible => match Self::in_call(syscall) {
                Self::PageFault => Self::Other,
                other => other,
            },
            WaitState::Uninterruptible => match Self::in_call(syscall) {
                Self::Read | Self::Write | Self::File => Self::Disk,
                other => other,
            },
        }
    }

    /// Returns the reason of a thread that is blocked in a system call of x86-64.
    fn in_call(syscall: u16) -> Self {
        match syscall {
            // futex, futex_waitv, futex_wait
            202 | 449 | 455 => Self::Futex,
            // nanosleep, clock_nanosleep
            35 | 230 => Self::Sleep,
            // poll, select, epoll_wait, pselect6, ppoll, epoll_pwait, io_uring_enter, epoll_pwait2
            7 | 23 | 232 | 270 | 271 | 281 | 426 | 441 => Self::Poll,
            // read, pread64, readv, preadv, preadv2
            0 | 17 | 19 | 295 | 327 => Self::Read,
            // write, pwrite64, writev, sendfile, splice, pwritev, copy_file_range, pwritev2
            1 | 18 | 20 | 40 | 275 | 296 | 326 | 328 => Self::Write,
            // msync, fsync, fdatasync, sync, sync_file_range, syncfs
            26 | 74 | 75 | 162 | 277 | 306 => Self::Disk,
            // connect, accept, sendto, recvfrom, sendmsg, recvmsg, accept4, recvmmsg, sendmmsg
            42..=47 | 288 | 299 | 307 => Self::Socket,
            // wait4, waitid
            61 | 247 => Self::Child,
            // pause, rt_sigtimedwait, rt_sigsuspend
            34 | 128 | 130 => Self::Signal,
            // open, stat, lstat, flock, fcntl, ftruncate, getdents, rename, mkdir, rmdir, unlink,
            // getdents64, openat, newfstatat, unlinkat, renameat2, statx
            2..=6 | 72 | 73 | 77 | 78 | 82 | 83 | 84 | 87 | 217 | 257 | 262 | 263 | 316 | 332 => {
                Self::File
            }
            // mmap, mprotect, munmap, brk, mremap, madvise
            9..=12 | 25 | 28 => Self::Memory,
            ctrace_common::NO_SYSCALL => Self::PageFault,
            _ => Self::Other,
        }
    }

    pub(crate) fn class(self) -> WaitClass {
        match self {
            Self::Runnable => WaitClass::Runnable,
            _ => WaitClass::Blocked,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Runnable => "[runnable]",
            Self::Futex => "[blocked: futex]",
            Self::Sleep => "[blocked: sleep]",
            Self::Poll => "[blocked: poll]",
            Self::Read => "[blocked: read]",
            Self::Write => "[blocked: write]",
            Self::Disk => "[blocked: disk]",
            Self::Socket => "[blocked: socket]",
            Self::Child => "[blocked: child]",
            Self::Signal => "[blocked: signal]",
            Self::File => "[blocked: file]",
            Self::Memory => "[blocked: memory]",
            Self::PageFault => "[blocked: page fault]",
            Self::Stopped => "[blocked: stopped]",
            Self::Other => "[blocked: other]",
        }
    }

    /// Returns the function that stands for these waits. `wakers`: they have one that has ended them.
    pub(crate) fn info(self, wakers: bool) -> FunctionInfo {
        let is_woken = wakers && self.class() == WaitClass::Blocked;
        let waker = is_woken.then(|| ValueInfo::new(WAKER, ValueKind::LongText));
        let (wait, values) = (Some(self.class()), waker.into_iter().collect());
        FunctionInfo { wait, values, ..FunctionInfo::new(self.name(), KERNEL) }
    }
}

/// The time of waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    pub(crate) runnable: u64,
    pub(crate) blocked: u64,
}

impl Waits {
    /// Returns a wait of this length.
    pub(crate) fn one(class: WaitClass, ns: u64) -> Self {
        match class {
            WaitClass::Runnable => Self { runnable: ns, blocked: 0 },
            WaitClass::Blocked => Self { runnable: 0, blocked: ns },
        }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.runnable = self.runnable.saturating_add(other.runnable);
        self.blocked = self.blocked.saturating_add(other.blocked);
    }

    /// Returns those that came after `earlier`.
    #[inline]
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            runnable: self.runnable.saturating_sub(earlier.runnable),
            blocked: self.blocked.saturating_sub(earlier.blocked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctrace_common::NO_SYSCALL;

    #[test]
    fn the_state_and_the_system_call_are_the_reason() {
        use WaitState::{Interruptible, Preempted, Stopped, Uninterruptible, Woken};
        for (state, syscall, expected) in [
            (Preempted, NO_SYSCALL, "[runnable]"),
            (Woken, NO_SYSCALL, "[runnable]"),
            (Interruptible, 202, "[blocked: futex]"),
            (Interruptible, 230, "[blocked: sleep]"),
            (Interruptible, 0, "[blocked: read]"),
            (Uninterruptible, 0, "[blocked: disk]"),
            (Uninterruptible, 74, "[blocked: disk]"),
            (Uninterruptible, NO_SYSCALL, "[blocked: page fault]"),
            (Interruptible, NO_SYSCALL, "[blocked: other]"),
            (Interruptible, 999, "[blocked: other]"),
            (Uninterruptible, NO_SYSCALL - 1, "[blocked: other]"),
            (Stopped, 0, "[blocked: stopped]"),
        ] {
            assert_eq!(Wait::of(state, syscall).name(), expected, "{state:?} {syscall}");
        }
    }
}
