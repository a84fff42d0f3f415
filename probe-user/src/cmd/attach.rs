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
        plan::{Plan, Planned},
        run::{
            chosen::{Chosen, First},
            event_loop::{self, Ending},
            signals::{self, Signals},
        },
        spec::TraceSpec,
    },
    target::process::{Process, maps::MappedObject},
    ui::{
        self,
        text::units::{Digits, counted, time},
    },
};
use ctrace_core::{
    function::FunctionKind,
    units::{Nanos, Pid},
};
use std::{
    io::{self, IsTerminal as _},
    time::Duration,
};

pub(super) fn main(args: &AttachArgs, verbose: u8) -> Result<u8, Failure> {
    signals::await_trace()?;
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
    // On a terminal a line shows the state, and lines of single calls speak for themselves.
    let is_shown = matches!(output, Output::Stream(_)) || io::stderr().is_terminal();
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
    let begun = (!is_shown).then(|| begun(&process, &objects, others.len(), &plan, after));
    let ending = ending.telling(begun);
    session.arm(&plan, &objects)?;
    drop(plan);
    event_loop::run(&mut session, watched, ending, || Ok(()))?;
    Ok(0)
}

/// Returns the line that tells that the trace has begun.
fn begun(
    process: &Process,
    objects: &[MappedObject],
    others: usize,
    plan: &Plan,
    after: Option<Duration>,
) -> String {
    let program = objects.first().map_or("a program", |program| &*program.name);
    let others = match others as u64 {
        0 => String::new(),
        n => format!(" and {}", counted(n, "other process", "other processes")),
    };
    let is_function = |planned: &Planned| planned.info.kind == FunctionKind::Function;
    let of_kinds = match plan.planned().all(is_function) {
        true => ("function", "functions"),
        false => ("function, probe or scope", "functions, probes and scopes"),
    };
    let functions = counted(plan.functions() as u64, of_kinds.0, of_kinds.1);
    let time =
        after.map(|after| format!(" for {}", time(Nanos(after.as_nanos() as u64), Digits::Short)));
    format!(
        "tracing {program} (pid {}){others}, {functions}{}; Ctrl-C ends",
        process.pid(),
        time.unwrap_or_default()
    )
}
