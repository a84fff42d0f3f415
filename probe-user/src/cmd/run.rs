//! `ctrace run`: launch a command and trace it from the first instruction of main.

use super::Failure;
use crate::{
    bpf,
    cli::{RunArgs, WhatArgs},
    session::{
        Origin, Setup,
        launch::{Launched, exit_code},
        output::{Output, Reports},
        signals::Signals,
        sink,
        trace::{self, Ending},
    },
    target::launch::{self, Launch},
    ui,
};
use anyhow::anyhow;
use ctrace_core::report::TargetReport;
use std::ffi::OsString;

pub(super) fn main(args: &RunArgs, verbose: u8) -> Result<u8, Failure> {
    let resolved = resolve("run", &args.command)?;
    Ok(trace_command(args, &resolved, verbose)?)
}

/// What the words behind the options of a subcommand would execute.
pub(super) fn resolve(subcommand: &str, command: &[OsString]) -> Result<Launch, Failure> {
    let first = &command[0];
    if first.as_encoded_bytes().starts_with(b"-") {
        let option = first.display();
        let why = format!(
            "`{option}` is no option of `ctrace {subcommand}`; see `ctrace help {subcommand}`"
        );
        return Err(anyhow!(why).into());
    }
    launch::resolve(first).map_err(|error| Failure::new(error.exit_code(), error))
}

fn trace_command(args: &RunArgs, resolved: &Launch, verbose: u8) -> anyhow::Result<u8> {
    bpf::require()?;
    let output = Output::Reports(Box::new(Reports::open(
        &args.trace.output,
        args.trace.what.probes.spool,
        sink::Default::Stderr,
    )?));
    launch(&args.trace.what, &args.command, resolved, output, verbose)
}

/// Launches a command under trace; gives its exit status.
pub(super) fn launch(
    what: &WhatArgs,
    command: &[OsString],
    resolved: &Launch,
    output: Output,
    verbose: u8,
) -> anyhow::Result<u8> {
    let mut setup = Setup::plan(what, &resolved.objects)?;
    let plan = std::mem::take(&mut setup.plan);
    for remark in resolved.remarks() {
        ui::say(&remark);
    }
    let mut launched = Launched::stopped(&resolved.command, command)?;
    let pid = launched.pid();
    let words = command.iter().map(|word| word.to_string_lossy().into_owned());
    let target = TargetReport {
        pid: Some(pid),
        exe: Some(resolved.exe.display().to_string()),
        command: words.collect(),
        ..TargetReport::default()
    };
    let mut tracer = setup.tracer(pid, Origin::Launched, target, output)?;
    super::announce(verbose, &plan, pid);
    tracer.arm(&plan, &resolved.objects)?;
    drop(plan);
    let ending = Ending::new(Signals::Forward(pid), None);
    let traced = trace::run(&mut tracer, trace::watch(pid)?, ending, || launched.start());
    drop(tracer);
    let failed = match traced {
        Err(error) if launched.has_started() => {
            let why = Failure::from(error).message();
            ui::say(&format!("{why}; the command goes on without being traced"));
            true
        }
        traced => traced.map(|()| false)?,
    };
    launched.let_go()?;
    // Whoever waits for ctrace waits for the command.
    let status = launched.wait()?;
    Ok(if failed { Failure::OWN } else { exit_code(status) })
}
