//! `ctrace attach`: trace a running process until the time is up, Ctrl-C, or its end.

use super::Failure;
use crate::{
    bpf,
    cli::{AttachArgs, WhatArgs},
    session::{
        Setup,
        output::{Output, Reports},
        signals::Signals,
        sink,
        trace::{self, Ending, Watched},
    },
    target::process::Process,
};
use ctrace_core::units::Pid;
use std::time::Duration;

pub(super) fn main(args: &AttachArgs, verbose: u8) -> Result<u8, Failure> {
    bpf::require()?;
    let process = Process::open(args.pid)?;
    let watched = trace::watch(Pid(args.pid))?;
    let output = Output::Reports(Box::new(Reports::open(
        &args.trace.output,
        args.trace.what.probes.spool,
        sink::Default::Stdout,
    )?));
    Ok(attach(&args.trace.what, &process, watched, output, args.duration, verbose)?)
}

/// Traces a process, for so long at most.
pub(super) fn attach(
    what: &WhatArgs,
    process: &Process,
    watched: Watched,
    output: Output,
    after: Option<Duration>,
    verbose: u8,
) -> anyhow::Result<u8> {
    let objects = process.objects()?;
    let (mut tracer, plan) = Setup::plan(what, &objects)?.running(process, output)?;
    super::announce(verbose, &plan, Pid(process.pid()));
    tracer.arm(&plan, &objects)?;
    drop(plan);
    trace::run(&mut tracer, watched, Ending::new(Signals::End, after), || Ok(()))?;
    Ok(0)
}
