//! `ctrace top`: a running process on a screen.

use super::Failure;
use crate::{bpf, cli::TopArgs, session::trace, target::process::Process, top};
use ctrace_core::units::Pid;

pub(super) fn main(args: TopArgs) -> Result<u8, Failure> {
    top::check()?;
    bpf::require()?;
    let process = Process::open(args.pid)?;
    let watched = trace::watch(Pid(args.pid))?;
    top::run(args, process, watched)?;
    Ok(0)
}
