//! `ctrace attach`: trace a running process until the time is up, Ctrl-C, or its end.

use super::{Failure, tracing_setup};
use crate::{
    bpf::clock,
    cli::AttachArgs,
    session::{
        sink::{self, Sink},
        trace::{self, Ending},
    },
    target::process::Process,
};
use ctrace_core::{report::TargetReport, units::Pid};

pub(super) fn main(args: &AttachArgs, verbose: u8) -> Result<u8, Failure> {
    let process = Process::open(args.pid)?;
    let sink = Sink::open(&args.trace.output, sink::Default::Stdout)?;
    let objects = process.objects()?;
    let (planner, plan) = tracing_setup::plan(&args.trace, &objects, verbose)?;
    let pid = Pid(args.pid);
    let target = TargetReport {
        pid: Some(pid),
        exe: Some(process.exe().display().to_string()),
        command: process.command(),
        ..TargetReport::default()
    };
    let mut tracer = tracing_setup::tracer(&args.trace, planner, pid, target, sink)?;
    tracer.introduce(&process);
    tracer.arm(&plan)?;
    tracer.begin_intervals(clock::now());
    let ending = Ending { after: args.duration, on_signal: Box::new(|_| true) };
    trace::run(&mut tracer, pid, ending, || Ok(()))?;
    Ok(0)
}
