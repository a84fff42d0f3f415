//! Continues a held command while the loop is stuck in a write and cannot do it.

use crate::{target::process::Process, writing};
use anyhow::Context;
use ctrace_common::HEARTBEAT_NANOS;
use ctrace_core::units::Pid;
use rustix::process::{self, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::{
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    time::Duration,
};

/// The time between two looks.
const PAUSE: Duration = Duration::from_millis(100);
/// Within this time, a process that the kernel has told to stop has stopped.
const STOP_IS_COMPLETE: Duration = Duration::from_secs(1);

/// The thread that continues the command. It ends when this is dropped.
pub(super) struct Releaser {
    _end: Sender<()>,
}

impl Releaser {
    /// Continues the command whenever it is held although the heartbeat is old. With an old
    /// heartbeat the eBPF programs do not hold it any more.
    pub(super) fn start(pid: Pid) -> anyhow::Result<Self> {
        let raw = process::Pid::from_raw(pid.0 as i32).context("0 is no process")?;
        let command = pidfd_open(raw, PidfdFlags::empty()).context("the command is gone")?;
        let (sender, end) = channel::<()>();
        let long = writing::LONG + Duration::from_nanos(HEARTBEAT_NANOS) + STOP_IS_COMPLETE;
        let tend = move || {
            while end.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                if writing::time() > long && Process::is_held_at_start(pid.0) {
                    // It may have ended.
                    let _ = pidfd_send_signal(&command, Signal::CONT);
                }
            }
        };
        let thread = std::thread::Builder::new().name("release".into()).stack_size(128 << 10);
        thread.spawn(tend).context("cannot start a thread")?;
        Ok(Self { _end: sender })
    }
}
