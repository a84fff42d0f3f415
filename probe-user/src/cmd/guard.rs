//! The companion of every ctrace that attaches probes: see `guard` in `crate::bpf`.
//!
//! Besides links it looks after a held command: at the start of a new program the command must go
//! on even if ctrace is killed or stopped just then.

use super::Failure;
use crate::{
    bpf::{self, Hold, Owner, Sight},
    heal,
    target::process::Process,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Signal, pidfd_send_signal},
};
use std::{
    os::fd::OwnedFd,
    thread::sleep,
    time::{Duration, Instant},
};

/// The time between two looks at a process that may be held.
const PAUSE: Duration = Duration::from_millis(5);
/// The watch after ctrace's end: by then its programs have ended, and any stop that the kernel
/// began is complete.
const AFTERWARDS: Duration = Duration::from_secs(3);

pub(super) fn main() -> Result<u8, Failure> {
    let mut stopped = 0;
    let tend = |hold: &Hold, ctrace| {
        stopped = if ctrace == Sight::Stopped { stopped + 1 } else { 0 };
        // Stopped for over two seconds: its heartbeat is old, and the programs hold nobody.
        if stopped > 2 {
            go_on(hold);
        }
    };
    bpf::serve(tend, outlive, heal::aftermath::of_ctrace)?;
    Ok(0)
}

/// Continues the process if it is held.
fn go_on(hold: &Hold) {
    if Process::is_held_at_start(hold.pid) {
        // It may have ended.
        let _ = pidfd_send_signal(&hold.command, Signal::CONT);
    }
}

/// Continues the process whenever it is held, until nothing stops it any more: the programs that do
/// end with ctrace's last thread.
fn outlive(hold: &Hold, ctrace: &Owner) {
    let mut until = None;
    while !has_ended(&hold.command) && until.is_none_or(|until| Instant::now() < until) {
        go_on(hold);
        if until.is_none() && ctrace.look() == Sight::Dying {
            until = Some(Instant::now() + AFTERWARDS);
        }
        sleep(PAUSE);
    }
}

/// Returns whether it has ended, even if nobody has waited for it.
fn has_ended(process: &OwnedFd) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}
