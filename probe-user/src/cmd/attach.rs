//! `ctrace attach`: trace a running process until the time is up, Ctrl-C, or its end.

use super::Failure;
use crate::{
    bpf,
    cli::AttachArgs,
    session::{
        Origin, Setup,
        signals::Signals,
        sink::{self, Sink},
        trace::{self, Ending},
    },
    target::process::Process,
};
use ctrace_core::{report::TargetReport, units::Pid};

pub(super) fn main(args: &AttachArgs, verbose: u8) -> Result<u8, Failure> {
    bpf::require()?;
    let process = Process::open(args.pid)?;
    let watched = trace::watch(Pid(args.pid))?;
    let sink = Sink::open(&args.trace.output, sink::Default::Stdout)?;
    let objects = process.objects()?;
    let mut setup = Setup::plan(&args.trace, &objects)?;
    let plan = std::mem::take(&mut setup.plan);
    let pid = Pid(args.pid);
    let target = TargetReport {
        pid: Some(pid),
        exe: Some(process.exe().display().to_string()),
        command: process.command().to_vec(),
        ..TargetReport::default()
    };
    let mut tracer = setup.tracer(pid, Origin::Running, target, sink)?;
    tracer.introduce(&process);
    super::announce(verbose, &plan, pid);
    tracer.arm(&plan, &objects)?;
    drop(plan);
    let ending = Ending { after: args.duration, signals: Signals::End };
    trace::run(&mut tracer, watched, &ending, || Ok(()))?;
    Ok(0)
}
