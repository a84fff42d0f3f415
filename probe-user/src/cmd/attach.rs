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
            event_loop::{self, Ending, Watched},
            setup::Setup,
            signals::Signals,
        },
        spec::TraceSpec,
    },
    target::process::Process,
    ui::{self, units},
};
use anyhow::Context as _;
use ctrace_core::units::Pid;
use std::time::Duration;

pub(super) fn main(args: &AttachArgs, verbose: u8) -> Result<u8, Failure> {
    bpf::require()?;
    let name = args.by.chosen(args.process.as_ref()).context("the command line asks for one")?;
    let process = process::open(&name)?;
    let watched = event_loop::watch(Pid(process.pid()))?;
    let output = Output::Reports(Box::new(Reports::open(
        &spec::live_report(&args.trace),
        args.trace.probes.spool,
        sink::Default::Stdout,
    )?));
    Ok(attach(&spec::trace(&args.trace.what()), &process, watched, output, args.duration, verbose)?)
}

/// Warns of processes forked earlier: a server's workers often exist before anybody looks.
fn forked_before(children: &[u32]) -> Option<String> {
    const NAMED: usize = 5;
    let mut named: Vec<String> = children.iter().take(NAMED).map(ToString::to_string).collect();
    if children.len() > NAMED {
        named.push("…".to_owned());
    }
    let count = units::counted(children.len() as u64, "process", "processes");
    (!children.is_empty()).then(|| {
        format!(
            "{count} that it forked before ({}) are not traced, as --follow takes those that are \
             forked from now on: attach to them by their ids",
            named.join(", ")
        )
    })
}

/// Traces a process, up to the time limit.
pub(super) fn attach(
    spec: &TraceSpec,
    process: &Process,
    watched: Watched,
    output: Output,
    after: Option<Duration>,
    verbose: u8,
) -> anyhow::Result<u8> {
    let objects = process.objects()?;
    let setup = Setup::plan(spec, &objects, &output)?;
    let (mut session, mut plan) = setup.running(process, output)?;
    for line in &plan.remarks {
        ui::say(line);
    }
    if spec.probes.follow {
        plan.notes.extend(forked_before(&process.children()));
    }
    super::announce(verbose, &plan, Pid(process.pid()));
    let ending = Ending::new(Signals::End, after)?;
    session.arm(&plan, &objects)?;
    drop(plan);
    event_loop::run(&mut session, watched, ending, || Ok(()))?;
    Ok(0)
}
