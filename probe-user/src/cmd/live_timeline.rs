//! `ctrace ui --live`: traces on a thread of its own, and serves the newest calls meanwhile.

use super::{
    Failure, process, run, spec,
    timeline::{options, serve, take_rights_of_caller},
    trace,
};
use crate::{
    bpf,
    cli::UiArgs,
    session::{
        keep::{
            live::Command,
            live_calls::{LiveCalls, LiveLook},
            output::Output,
        },
        run::{launch::Streams, subject::Subject},
        spec::TraceSpec,
    },
    timeline_server::{Server, stopped_by_signals},
    ui,
};
use anyhow::{Context as _, anyhow, ensure};
use ctrace_core::units::Nanos;
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{Receiver, channel},
    thread::JoinHandle,
};
use tokio::sync::{
    mpsc::{UnboundedSender, unbounded_channel},
    oneshot,
};

/// The most bytes of the calls that are kept.
const MEMORY: usize = 32 << 20;

pub(super) fn main(args: UiArgs) -> Result<u8, Failure> {
    check(&args)?;
    let mut spec = spec::trace(&args.what);
    let subject = subject(&args, &mut spec)?;
    let keep = Nanos(u64::try_from(args.keep.as_nanos()).unwrap_or(u64::MAX));
    let (calls, look) = LiveCalls::new(keep, MEMORY);
    let stop = stopped_by_signals()?;
    let tracing = Tracing::start(spec, subject, Output::Calls(Box::new(calls)))?;
    // A session that does not begin says why at its end.
    let served = if tracing.begins() { show(&args, look, stop) } else { Ok(()) };
    let code = tracing.end()?;
    served?;
    Ok(code)
}

fn subject(args: &UiArgs, spec: &mut TraceSpec) -> Result<Subject, Failure> {
    let user = args.user.user.as_deref();
    if args.command.is_empty() {
        let words = trace::process_names(&args.files)?;
        let names = args.by.all_of_user(&words, user)?;
        ensure_chosen(!names.is_empty())?;
        bpf::require()?;
        let chosen = process::choose(names, args.user.later, None, &mut spec.probes)?;
        return Ok(Subject::Processes(Box::new(chosen)));
    }
    let words = args.command.clone();
    let (resolved, user) = run::resolve("ui --live", &words, user)?;
    bpf::require()?;
    Ok(Subject::Command { words, resolved, user, streams: Streams::Ours })
}

fn ensure_chosen(is_chosen: bool) -> anyhow::Result<()> {
    ensure!(
        is_chosen,
        "--live needs a process or a command: `ctrace ui --live PID`, or `ctrace ui --live -- CMD`"
    );
    Ok(())
}

/// Refuses what is not for a live page.
fn check(args: &UiArgs) -> anyhow::Result<()> {
    ensure!(args.max_calls.is_none(), "--max-calls is for a recording: leave it out, or --live");
    ensure!(
        args.what.probes.budget.is_none(),
        "--budget is for reports: a timeline could not tell calls that were not seen from calls that \
         were not made; trace fewer functions, or use --max-slowdown"
    );
    Ok(())
}

/// Serves the page with the rights of the caller: only the session needs root.
fn show(args: &UiArgs, look: LiveLook, stop: oneshot::Receiver<()>) -> Result<(), Failure> {
    take_rights_of_caller()?;
    serve(Server::live(look, options(args, Vec::new()))?, stop)
}

/// A session on its own thread.
struct Tracing {
    commands: UnboundedSender<Command>,
    begun: Receiver<()>,
    thread: JoinHandle<anyhow::Result<u8>>,
}

impl Tracing {
    fn start(spec: TraceSpec, subject: Subject, output: Output) -> anyhow::Result<Self> {
        let (commands, received) = unbounded_channel();
        let (begin, begun) = channel();
        let session = move || {
            let has_begun = Cell::new(false);
            let begun = |_| {
                has_begun.set(true);
                begin.send(()).context("nobody shows it")
            };
            let trace = || subject.trace(&spec, output, received, begun);
            let traced = catch_unwind(AssertUnwindSafe(trace));
            match traced.unwrap_or_else(|_| Err(anyhow!("the session ended by a fault"))) {
                Ok(()) => Ok(0),
                // The page goes on. Nobody may end it for hours.
                Err(error) if has_begun.get() => {
                    ui::say(&format!("{}; Ctrl-C ends the page", Failure::from(error).message()));
                    Ok(Failure::OWN)
                }
                Err(error) => Err(error),
            }
        };
        let thread = std::thread::Builder::new().name("session".into());
        let thread = thread.spawn(session).context("cannot start a thread")?;
        Ok(Self { commands, begun, thread })
    }

    /// Waits until calls count. Returns `false` if the session ended before.
    fn begins(&self) -> bool {
        self.begun.recv().is_ok()
    }

    /// Ends the session if it goes on. Returns the exit status if it has told an error.
    fn end(self) -> anyhow::Result<u8> {
        // It may have ended by itself.
        let _ = self.commands.send(Command::Stop);
        self.thread.join().unwrap_or_else(|_| Err(anyhow!("the session ended by a fault")))
    }
}
