//! `ctrace attach`: trace a running process until the time is up, Ctrl-C, or its end.

use super::{Failure, process, spec};
use crate::{
    bpf,
    cli::AttachArgs,
    session::{
        keep::{
            output::{Output, Reports},
            sink,
        },
        run::{
            chosen::{Chosen, First},
            event_loop::{self, Ending},
            signals::Signals,
        },
        spec::TraceSpec,
    },
    ui,
};
use ctrace_core::units::Pid;
use std::time::Duration;

pub(super) fn main(args: &AttachArgs, verbose: u8) -> Result<u8, Failure> {
    let report = spec::live_report(&args.trace)?;
    bpf::require()?;
    let names = args.by.all_of_user(&args.processes, args.user.as_deref())?;
    let mut spec = spec::traced(&args.trace);
    let chosen = process::choose(names, args.later, args.duration, &mut spec.probes)?;
    let output = Output::Reports(Box::new(Reports::open(
        &report,
        args.trace.probes.spool,
        sink::Default::Stdout,
    )?));
    Ok(attach(&spec, chosen, output, args.duration, verbose)?)
}

/// Traces processes together, up to the time limit. The first one is the target.
pub(super) fn attach(
    spec: &TraceSpec,
    mut chosen: Chosen,
    output: Output,
    after: Option<Duration>,
    verbose: u8,
) -> anyhow::Result<u8> {
    let setup = chosen.plan(spec, &output)?;
    let Chosen { first: First { process, objects, watched, files: _files }, others, later } =
        chosen;
    let (mut session, mut plan) = setup.running(&process, output)?;
    if spec.probes.follow {
        plan.remarks.extend(session.trace_family(&objects, &others)?);
    }
    for line in &plan.remarks {
        ui::say(line);
    }
    if let Some(later) = later {
        session.await_later(later)?;
    }
    super::announce(verbose, &plan, Pid(process.pid()));
    let ending = Ending::new(Signals::End, after)?;
    session.arm(&plan, &objects)?;
    drop(plan);
    event_loop::run(&mut session, watched, ending, || Ok(()))?;
    Ok(0)
}
