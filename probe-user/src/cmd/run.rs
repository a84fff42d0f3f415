//! `ctrace run`: launch a command and trace it from the first instruction of main.

use super::Failure;
use crate::{
    bpf,
    cli::{RunArgs, WhatArgs},
    session::{
        self,
        launch::{Streams, exit_code},
        output::{Output, Reports},
        signals::Signals,
        sink,
        trace::Ending,
    },
    target::launch::{self, Launch},
    ui,
};
use anyhow::anyhow;
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
    let prepared = |plan: &_, pid| {
        super::announce(verbose, plan, pid);
        Ending::new(Signals::Forward(pid), None)
    };
    let command = (command, resolved, Streams::Ours);
    let (mut launched, traced) =
        session::launch::trace(what, command, output, prepared, || Ok(()))?;
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
