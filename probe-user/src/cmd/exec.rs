//! The child of `run`: stops itself, so that probes are armed before it becomes the command.

use super::Failure;
use crate::{cli::ExecArgs, inherited::pass_on_signals};
use anyhow::anyhow;
use rustix::process::{Pid, Signal, getpid, kill_process, set_parent_process_death_signal};
use std::{io::ErrorKind, os::unix::process::CommandExt, process::Command};

/// Returns only when the command could not be executed.
pub(super) fn main(args: &ExecArgs) -> Failure {
    match stop_until_armed() {
        Err(error) => {
            Failure::new(Failure::OWN, anyhow!("cannot stop before the command starts: {error}"))
        }
        Ok(()) => {
            let name = &args.command[0];
            let mut command = Command::new(&args.file);
            command.arg0(name).args(&args.command[1..]);
            pass_on_signals(&mut command);
            let error = command.exec();
            let code = if error.kind() == ErrorKind::NotFound { 127 } else { 126 };
            Failure::new(code, anyhow!("cannot execute {}: {error}", args.file.display()))
        }
    }
}

/// While it waits, it must not outlive a killed ctrace as a stopped process; the command itself
/// must, so the death signal is taken back.
fn stop_until_armed() -> rustix::io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let own: Pid = getpid();
    kill_process(own, Signal::STOP)?;
    set_parent_process_death_signal(None)
}
