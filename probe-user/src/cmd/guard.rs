//! The companion of `run`: a command that is held at the start of a new program must go on even
//! if ctrace is killed in that moment.

use super::Failure;
use crate::{cli::GuardArgs, session::launch, target::process::Process};
use ctrace_core::units::Pid;
use std::{io::Read, path::PathBuf, thread::sleep, time::Duration};

/// A stop that the kernel has begun is complete after this much.
const LOOKS: u32 = 20;

pub(super) fn main(args: &GuardArgs) -> Result<u8, Failure> {
    // The pipe ends when ctrace does, however it does.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    let process = PathBuf::from(format!("/proc/{}", args.pid));
    for _ in 0..LOOKS {
        if !process.exists() {
            break;
        }
        if Process::is_held_at_start(args.pid) {
            launch::go_on(Pid(args.pid))?;
            break;
        }
        sleep(Duration::from_millis(50));
    }
    Ok(0)
}
