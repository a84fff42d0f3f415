//! Where snapshots come from: a session on a thread of its own.

use super::run::Event;
use crate::{
    cli::TopArgs,
    session::{
        Origin, Setup,
        live::{Command, Commands, Live, Snapshot},
        output::Output,
        signals::Signals,
        trace::{self, Ending, Watched},
    },
    target::process::Process,
};
use anyhow::{Context, anyhow};
use ctrace_core::{
    report::{Extras, TargetReport},
    units::{Nanos, Pid},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc::{SyncSender, TrySendError},
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// What a source tells.
pub(super) enum Update {
    /// Calls count from now on; the target has used so much processor time.
    Begun { cpu: Option<Nanos> },
    /// Before it, so many were lost because nobody took them.
    Snapshot { snapshot: Box<Snapshot>, missed: u64 },
    /// Nothing more comes.
    Ended(anyhow::Result<()>),
}

/// A session that goes on.
pub(super) struct Source {
    commands: UnboundedSender<Command>,
}

impl Source {
    /// Traces a process; what it finds out goes to `events`.
    pub(super) fn start(
        args: TopArgs,
        process: Process,
        watched: Watched,
        events: SyncSender<Event>,
    ) -> anyhow::Result<Self> {
        let (commands, received) = unbounded_channel();
        let session = move || {
            let traced = catch_unwind(AssertUnwindSafe(|| {
                trace(&args, &process, watched, &events, received)
            }));
            let result = traced.unwrap_or_else(|_| Err(anyhow!("the session ended by a fault")));
            // Nobody listens any more when the screen is gone.
            let _ = events.send(Event::Update(Update::Ended(result)));
        };
        let thread = std::thread::Builder::new().name("session".into());
        thread.spawn(session).context("cannot start a thread")?;
        Ok(Self { commands })
    }

    /// Asks for the end, which is told when it has come.
    pub(super) fn stop(&self) {
        // It may have ended by itself.
        let _ = self.commands.send(Command::Stop);
    }
}

fn trace(
    args: &TopArgs,
    process: &Process,
    watched: Watched,
    events: &SyncSender<Event>,
    commands: Commands,
) -> anyhow::Result<()> {
    let objects = process.objects()?;
    let mut setup = Setup::plan(&args.what, &objects)?;
    let plan = std::mem::take(&mut setup.plan);
    let pid = Pid(process.pid());
    let target = TargetReport {
        pid: Some(pid),
        exe: Some(process.exe().display().to_string()),
        command: process.command().to_vec(),
        ..TargetReport::default()
    };
    let output = Output::Live(live(args, events.clone()));
    let mut tracer = setup.tracer(pid, Origin::Running, target, output)?;
    tracer.introduce(process);
    tracer.arm(&plan, &objects)?;
    drop(plan);
    let ending = Ending { after: None, signals: Signals::Elsewhere, commands: Some(commands) };
    let begun = || {
        // With children the clock counts from here on.
        let follow = args.what.probes.follow;
        let cpu = if follow { Some(Nanos::ZERO) } else { Process::cpu_time(pid.0) };
        events.send(Event::Update(Update::Begun { cpu })).context("the screen is gone")
    };
    trace::run(&mut tracer, watched, ending, begun)
}

/// Snapshots go to `events`. While a terminal stands still, nobody takes them: they are counted.
fn live(args: &TopArgs, events: SyncSender<Event>) -> Live {
    let mut missed = 0;
    let deliver = move |snapshot| {
        let update = Update::Snapshot { snapshot: Box::new(snapshot), missed };
        match events.try_send(Event::Update(update)) {
            Ok(()) => missed = 0,
            Err(TrySendError::Full(_)) => missed += 1,
            Err(TrySendError::Disconnected(_)) => return false,
        }
        true
    };
    // How durations change within an interval is not shown.
    let extras = Extras { histograms: true, slices: 1, ..Extras::default() };
    Live { interval: args.interval, extras, center_cut: 1.0, deliver: Box::new(deliver) }
}
