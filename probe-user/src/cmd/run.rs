//! `ctrace run`: launch a command and trace it from the first instruction of main.

use super::{Failure, tracing_setup};
use crate::{
    bpf::clock,
    cli::RunArgs,
    session::{
        launch::{Launched, exit_code},
        sink::{self, Sink},
        trace::{self, Ending},
    },
    target::launch,
};
use anyhow::anyhow;
use ctrace_core::{
    report::{TargetExit, TargetReport},
    units::Pid,
};
use rustix::process::Signal;
use std::{os::unix::process::ExitStatusExt, process::ExitStatus};

/// Any failure of ctrace itself, as `env` and `timeout` have it.
const OWN_FAILURE: u8 = 125;

pub(super) fn main(args: &RunArgs, verbose: u8) -> Result<u8, Failure> {
    let resolved = launch::resolve(&args.command[0])
        .map_err(|error| Failure::new(error.exit_code(), error))?;
    trace_command(args, &resolved, verbose).map_err(|error| Failure::new(OWN_FAILURE, error))
}

fn trace_command(args: &RunArgs, resolved: &launch::Launch, verbose: u8) -> anyhow::Result<u8> {
    let sink = Sink::open(&args.trace.output, sink::Default::Stderr)?;
    let (planner, plan) = tracing_setup::plan(&args.trace, &resolved.objects(), verbose)?;
    let mut launched = Launched::stopped(&resolved.exe, &args.command)?;
    let pid = Pid(launched.pid().as_raw_nonzero().get() as u32);
    let target = TargetReport {
        pid: Some(pid),
        exe: Some(resolved.exe.display().to_string()),
        command: args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        ..TargetReport::default()
    };
    let mut tracer = tracing_setup::tracer(&args.trace, planner, pid, target, sink)?;
    tracer.arm(&plan)?;
    tracer.begin_intervals(clock::now());
    let ending = Ending {
        after: None,
        on_signal: Box::new(|signal| {
            if signal.to_us_alone {
                launched.signal(Signal::from_named_raw(signal.number).unwrap_or(Signal::TERM));
            }
            false
        }),
    };
    trace::run(&mut tracer, pid, ending, || launched.start())?;
    let status = launched.wait()?;
    Ok(exit_code(status))
}
