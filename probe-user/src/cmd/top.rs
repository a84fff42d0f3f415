//! `ctrace top`: a running process on a screen, or those that the daemon traces.

use super::Failure;
use crate::{
    bpf,
    cli::{SelectArgs, TopArgs},
    session::trace,
    target::process::Process,
    top,
};
use anyhow::bail;
use ctrace_core::units::Pid;

pub(super) fn main(args: TopArgs) -> Result<u8, Failure> {
    top::check()?;
    let Some(pid) = args.pid else {
        check_nothing_chosen(&args.what.select)?;
        top::run_with_daemon(&args.socket, args.interval)?;
        return Ok(0);
    };
    bpf::require()?;
    let process = Process::open(pid)?;
    let watched = trace::watch(Pid(pid))?;
    top::run(args, process, watched)?;
    Ok(0)
}

/// The daemon's targets have their own selections.
fn check_nothing_chosen(select: &SelectArgs) -> anyhow::Result<()> {
    let SelectArgs { functions, usdt, markers, exclude, .. } = select;
    if [functions, usdt, markers, exclude].iter().any(|list| !list.is_empty()) {
        bail!(
            "--daemon shows what the daemon has chosen: leave out -f, -u, -m and -x, or give a PID \
             instead of --daemon"
        );
    }
    Ok(())
}
