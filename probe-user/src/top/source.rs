//! The source of snapshots: a session on its own thread, or repeated requests to the daemon.

use super::{daemon::Traced, observer, run::Event};
use crate::{
    session::{
        keep::{
            live::{Command, Commands, Live, Snapshot},
            output::Output,
        },
        run::{
            event_loop::{self, Ending, Watched},
            launch::{self, Program, Streams},
            setup::Setup,
        },
        spec::TraceSpec,
    },
    target::{launch::Launch, process::Process},
    ui,
    user::Identity,
};
use anyhow::{Context, anyhow};
use ctrace_core::{report::Extras, units::Nanos};
use std::{
    ffi::OsString,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::mpsc::{Sender, SyncSender, TrySendError, channel},
    time::Duration,
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// A message of the source.
pub(super) enum Update {
    /// Calls count from now on. `cpu` is the target's CPU time so far.
    Begun { cpu: Option<Nanos> },
    /// The consecutive parts of an interval; a session has one. `missed` intervals before it were
    /// lost.
    Interval { parts: Vec<Snapshot>, missed: u64 },
    /// The processes that the daemon traces.
    Processes(Vec<Traced>),
    /// Nothing more comes.
    Ended(anyhow::Result<()>),
}

/// The subject of a session.
pub(crate) enum Subject {
    Process(Process, Watched),
    Command {
        /// The words of the command line, unchanged.
        words: Vec<OsString>,
        resolved: Launch,
        user: Identity,
    },
}

pub(super) enum Source {
    /// Takes commands.
    Session(UnboundedSender<Command>),
    /// Takes the process to look at, or `None` for the list of all.
    Daemon(Sender<Option<u32>>),
}

impl Source {
    /// Starts tracing. The results go to `events`.
    pub(super) fn start(
        spec: TraceSpec,
        interval: Duration,
        subject: Subject,
        events: SyncSender<Event>,
    ) -> anyhow::Result<Self> {
        let (commands, received) = unbounded_channel();
        let session = move || {
            let traced = catch_unwind(AssertUnwindSafe(|| match subject {
                Subject::Process(process, watched) => {
                    let live = live(interval, events.clone());
                    trace(&spec, &process, watched, live, &events, received)
                }
                Subject::Command { words, resolved, user } => {
                    let program = Program {
                        words: &words,
                        resolved: &resolved,
                        user: &user,
                        streams: Streams::NoTerminal,
                    };
                    let live = live(interval, events.clone());
                    launch(&spec, &program, live, &events, received)
                }
            }));
            let result = traced.unwrap_or_else(|_| Err(anyhow!("the session ended by a fault")));
            // Nobody listens once the screen is gone.
            let _ = events.send(Event::Update(Update::Ended(result)));
        };
        let thread = std::thread::Builder::new().name("session".into());
        thread.spawn(session).context("cannot start a thread")?;
        Ok(Self::Session(commands))
    }

    /// Starts asking a daemon at each interval.
    pub(super) fn ask_daemon(
        socket: &Path,
        interval: Duration,
        events: SyncSender<Event>,
    ) -> anyhow::Result<Self> {
        let (chosen, choices) = channel();
        let socket = socket.to_owned();
        let ask = move || {
            // Nobody listens once the screen is gone.
            let _ = observer::look_again(&socket, interval, &choices, &events);
        };
        let thread = std::thread::Builder::new().name("daemon".into());
        thread.spawn(ask).context("cannot start a thread")?;
        Ok(Self::Daemon(chosen))
    }

    /// Looks at a process of the daemon, or at the list of all.
    pub(super) fn choose(&self, pid: Option<u32>) {
        if let Self::Daemon(chosen) = self {
            // The thread may have ended by itself.
            let _ = chosen.send(pid);
        }
    }

    /// Asks a session to end. Returns whether its end will be reported.
    pub(super) fn stop(&self) -> bool {
        match self {
            Self::Session(commands) => commands.send(Command::Stop).is_ok(),
            Self::Daemon(_) => false,
        }
    }
}

fn trace(
    spec: &TraceSpec,
    process: &Process,
    watched: Watched,
    live: Live,
    events: &SyncSender<Event>,
    commands: Commands,
) -> anyhow::Result<()> {
    let objects = process.objects()?;
    let output = Output::Live(live);
    let setup = Setup::plan(spec, &objects, &output)?;
    let (mut session, plan) = setup.running(process, output)?;
    session.arm(&plan, &objects)?;
    drop(plan);
    let ending = Ending::commanded(commands, None).awaiting_followed();
    let begun = || {
        // With children, CPU time counts from here on.
        let follow = spec.probes.follow;
        let cpu = if follow { Some(Nanos::ZERO) } else { Process::cpu_time(process.pid()) };
        events.send(Event::Update(Update::Begun { cpu })).context("the screen is gone")
    };
    event_loop::run(&mut session, watched, ending, begun)
}

/// Runs and traces a command. It keeps running when the screen closes.
fn launch(
    spec: &TraceSpec,
    program: &Program<'_>,
    live: Live,
    events: &SyncSender<Event>,
    commands: Commands,
) -> anyhow::Result<()> {
    let ending = Ending::commanded(commands, None).awaiting_followed();
    let begun = || {
        let begun = Event::Update(Update::Begun { cpu: Some(Nanos::ZERO) });
        events.send(begun).context("the screen is gone")
    };
    let output = Output::Live(live);
    let (mut launched, traced) = launch::trace(spec, program, output, |_, _| Ok(ending), begun)?;
    launched.let_go()?;
    if launched.goes_on() {
        let pid = launched.pid().0;
        ui::say(&format!("the command goes on without being traced; `kill {pid}` ends it"));
    }
    traced
}

/// Sends snapshots to `events`. While a stopped terminal takes none, they are counted as missed.
fn live(interval: Duration, events: SyncSender<Event>) -> Live {
    let mut missed = 0;
    let deliver = move |snapshot| {
        let update = Update::Interval { parts: vec![snapshot], missed };
        match events.try_send(Event::Update(update)) {
            Ok(()) => missed = 0,
            Err(TrySendError::Full(_)) => missed += 1,
            Err(TrySendError::Disconnected(_)) => return false,
        }
        true
    };
    // The screen does not show how durations change within an interval.
    let extras = Extras { histograms: true, slices: 1, ..Extras::default() };
    Live { interval, extras: Box::new(move || extras), center_cut: 1.0, deliver: Box::new(deliver) }
}
