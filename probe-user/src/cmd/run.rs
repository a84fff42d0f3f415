//! `ctrace run`: launches a command and traces it from the first instruction of main.

use super::{Failure, spec};
use crate::{
    bpf,
    cli::RunArgs,
    session::{
        self,
        keep::{
            output::{Output, Reports},
            sink,
        },
        run::{
            event_loop::Ending,
            launch::{Program, Streams, exit_code},
            signals::{self, Signals},
        },
        spec::TraceSpec,
    },
    target::launch::{self, Launch},
    ui,
    user::Identity,
};
use anyhow::{anyhow, ensure};
use std::{ffi::OsString, time::Duration};

pub(super) fn main(args: &RunArgs, verbose: u8) -> Result<u8, Failure> {
    signals::await_trace()?;
    let (resolved, user) = resolve("run", &args.command, args.user.user.as_deref())?;
    Ok(trace_command(args, &resolved, &user, verbose)?)
}

/// Finds the program and user of the words behind a subcommand's options.
pub(super) fn resolve(
    subcommand: &str,
    command: &[OsString],
    user: Option<&str>,
) -> Result<(Launch, Identity), Failure> {
    let first = &command[0];
    if first.as_encoded_bytes().starts_with(b"-") {
        let option = first.display();
        let why = format!(
            "`{option}` is no option of `ctrace {subcommand}`; see `ctrace help {subcommand}`"
        );
        return Err(anyhow!(why).into());
    }
    let (user, line) = Identity::choose(user, first)?;
    if let Some(line) = line {
        ui::say(&line);
    }
    let resolved = launch::resolve_for(first, &user);
    let resolved = resolved.map_err(|error| Failure::new(error.exit_code(), error))?;
    Ok((resolved, user))
}

/// Refuses `--user` where no command is started and no process chosen.
pub(super) fn check_no_user(user: Option<&str>) -> anyhow::Result<()> {
    ensure!(
        user.is_none(),
        "--user chooses processes, or is for a command that ctrace starts: leave it out"
    );
    Ok(())
}

fn trace_command(
    args: &RunArgs,
    resolved: &Launch,
    user: &Identity,
    verbose: u8,
) -> anyhow::Result<u8> {
    let report = spec::live_report(&args.trace)?;
    bpf::require()?;
    let output = Output::Reports(Box::new(Reports::open(
        &report,
        args.trace.probes.spool,
        sink::Default::Stderr,
    )?));
    let program = program(&args.command, resolved, user);
    launch(&spec::traced(&args.trace), &program, output, args.duration, verbose)
}

/// Returns a command that shares ctrace's input and output.
pub(super) fn program<'a>(
    words: &'a [OsString],
    resolved: &'a Launch,
    user: &'a Identity,
) -> Program<'a> {
    Program { words, resolved, user, streams: Streams::Ours }
}

/// Launches a command and traces it, up to the time limit. Returns its exit status.
pub(super) fn launch(
    spec: &TraceSpec,
    program: &Program<'_>,
    output: Output,
    after: Option<Duration>,
    verbose: u8,
) -> anyhow::Result<u8> {
    let prepared = |plan: &_, pid| {
        super::announce(verbose, plan, pid);
        Ending::new(Signals::Forward(pid), after)
    };
    let (mut launched, traced) =
        session::run::launch::trace(spec, program, output, prepared, || Ok(()))?;
    let failed = match traced {
        Err(error) if launched.has_started() => {
            let why = Failure::from(error).message();
            let goes_on = match launched.goes_on() {
                true => "; the command goes on without being traced",
                false => "",
            };
            ui::say(&format!("{why}{goes_on}"));
            true
        }
        traced => {
            traced?;
            if after.is_some() && launched.goes_on() {
                ui::say(&format!(
                    "the time is up; the command (pid {}) goes on without being traced, and ctrace ends \
                     when it does; Ctrl-C goes to it",
                    launched.pid().0
                ));
            }
            false
        }
    };
    launched.let_go()?;
    // A wait for ctrace includes the command.
    let status = launched.wait()?;
    Ok(if failed { Failure::OWN } else { exit_code(status) })
}
