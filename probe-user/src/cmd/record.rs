//! `ctrace record`: does the work of `attach` and `run`, into a file.

use super::{Failure, attach, process, run, spec};
use crate::{
    bpf,
    cli::{RecordArgs, RecordingArgs},
    session::{
        keep::{
            output::Output,
            recording::{Limit, Recording, Replace},
        },
        run::signals,
    },
    target::process::lookup::ProcessName,
};
use anyhow::ensure;

pub(super) fn main(args: &RecordArgs, verbose: u8) -> Result<u8, Failure> {
    let user = args.user.user.as_deref();
    let processes = processes_of(args)?;
    if processes.is_empty() && args.command.is_empty() {
        let why =
            "nothing to record; name a process with `-p PROCESS` or a command with `-- COMMAND`";
        return Err(anyhow::anyhow!(why).into());
    }
    if args.what.probes.budget.is_some() {
        let why = "--budget is for reports: a recording could not tell calls that were not seen from \
                   calls that were not made; trace fewer functions, or use --max-slowdown";
        return Err(anyhow::anyhow!(why).into());
    }
    signals::await_trace()?;
    if processes.is_empty() {
        check_command(args)?;
        let (resolved, user) = run::resolve("record", &args.command, user)?;
        bpf::require()?;
        let output = output(&args.file)?;
        let program = run::program(&args.command, &resolved, &user);
        return Ok(run::launch(
            &spec::trace(&args.what),
            &program,
            output,
            args.duration,
            verbose,
        )?);
    }
    bpf::require()?;
    let mut spec = spec::trace(&args.what);
    let chosen = process::choose(processes, args.user.later, args.duration, &mut spec.probes)?;
    let output = output(&args.file)?;
    Ok(attach::attach(&spec, chosen, output, args.duration, verbose)?)
}

/// Refuses what is for a running process.
fn check_command(args: &RecordArgs) -> anyhow::Result<()> {
    let first = &args.command[0];
    ensure!(
        ProcessName::of_number(first).is_none(),
        "for a process, give its PID with -p {}",
        first.display()
    );
    Ok(())
}

/// Returns the processes to record. A number alone is one, as for `attach`: no command has such a name.
fn processes_of(args: &RecordArgs) -> anyhow::Result<Vec<ProcessName>> {
    let number = match &args.command[..] {
        [word] => ProcessName::of_number(word),
        _ => None,
    };
    let is_command = number.is_none() && !args.command.is_empty();
    let user = args.user.user.as_deref().filter(|_| !is_command);
    args.process.all_of_user(number.as_slice(), user)
}

fn output(args: &RecordingArgs) -> anyhow::Result<Output> {
    let limit = match (args.max_size, args.rotate) {
        (Some(bytes), _) => Limit::Newest(bytes),
        (None, Some(at)) => Limit::Rotate { at, keep: args.keep },
        (None, None) => Limit::None,
    };
    let replace = if args.force { Replace::Recordings } else { Replace::Nothing };
    Ok(Output::Recording(Box::new(Recording::create(&args.output, limit, replace)?)))
}
