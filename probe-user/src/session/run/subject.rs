//! What a screen or a page shows while it is traced: chosen processes, or a command.

use super::{
    chosen::{Chosen, First},
    event_loop::{self, Ending},
    launch::{self, Program, Streams},
};
use crate::{
    session::{
        keep::{live::Commands, output::Output},
        spec::TraceSpec,
    },
    target::{launch::Launch, process::Process},
    ui,
    user::Identity,
};
use ctrace_core::units::Nanos;
use std::ffi::OsString;

/// The subject of a session.
pub(crate) enum Subject {
    Processes(Box<Chosen>),
    Command {
        /// The words of the command line, unchanged.
        words: Vec<OsString>,
        resolved: Launch,
        user: Identity,
        streams: Streams,
    },
}

impl Subject {
    /// Traces until a command, or the end of the subject. `begun` is called when calls count, with the
    /// CPU time of the target until then. A command keeps running when the trace ends.
    pub(crate) fn trace(
        self,
        spec: &TraceSpec,
        output: Output,
        commands: Commands,
        begun: impl FnOnce(Option<Nanos>) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let ending = Ending::commanded(commands, None).awaiting_followed();
        match self {
            Self::Processes(chosen) => attach(spec, *chosen, output, ending, begun),
            Self::Command { words, resolved, user, streams } => {
                let (words, resolved, user) = (&words[..], &resolved, &user);
                let program = Program { words, resolved, user, streams };
                launch(spec, &program, output, ending, begun)
            }
        }
    }
}

fn attach(
    spec: &TraceSpec,
    mut chosen: Chosen,
    output: Output,
    ending: Ending,
    begun: impl FnOnce(Option<Nanos>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let setup = chosen.plan(spec, &output)?;
    let Chosen { first: First { process, objects, watched, files: _files }, others, later } =
        chosen;
    let (mut session, plan) = setup.running(&process, output)?;
    if spec.probes.follow {
        session.trace_family(&objects, &others)?.iter().for_each(|line| ui::say(line));
    }
    if let Some(later) = later {
        session.await_later(later)?;
    }
    session.arm(&plan, &objects)?;
    drop(plan);
    // With children, CPU time counts from here on.
    let used = || match spec.probes.follow {
        true => Some(Nanos::ZERO),
        false => Process::cpu_time(process.pid()),
    };
    event_loop::run(&mut session, watched, ending, || begun(used()))
}

fn launch(
    spec: &TraceSpec,
    program: &Program<'_>,
    output: Output,
    ending: Ending,
    begun: impl FnOnce(Option<Nanos>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let begun = || begun(Some(Nanos::ZERO));
    let (mut launched, traced) = launch::trace(spec, program, output, |_, _| Ok(ending), begun)?;
    launched.let_go()?;
    if launched.goes_on() {
        let pid = launched.pid().0;
        ui::say(&format!("the command goes on without being traced; `kill {pid}` ends it"));
    }
    traced
}
