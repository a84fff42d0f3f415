//! The source of snapshots: a session on its own thread, or repeated requests to the daemon.

pub(crate) mod daemon;
pub(crate) mod observer;
pub(crate) mod stretch;

use crate::session::{
    keep::{
        live::{Command, Live, Snapshot},
        output::Output,
    },
    run::subject::Subject,
    spec::TraceSpec,
};
use crate::top::{run::ScreenEvent, source::daemon::Traced};
use anyhow::{Context, anyhow};
use ctrace_core::{report::Extras, units::Nanos};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Sender, SyncSender, TrySendError, channel},
    },
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
    /// Nothing more comes. `missed` intervals after the last one were lost.
    Ended { result: anyhow::Result<()>, missed: u64 },
}

/// The number of intervals lost since the last that was delivered. Only the session's thread
/// changes it.
type Missed = Arc<AtomicU64>;

pub(super) enum IntervalSource {
    /// Takes commands.
    Session(UnboundedSender<Command>),
    /// Takes the process to look at, or `None` for the list of all.
    Daemon(Sender<Option<u32>>),
}

impl IntervalSource {
    /// Starts tracing. The results go to `events`.
    pub(super) fn start(
        spec: TraceSpec,
        interval: Duration,
        subject: Subject,
        events: SyncSender<ScreenEvent>,
    ) -> anyhow::Result<Self> {
        let (commands, received) = unbounded_channel();
        let missed = Missed::default();
        let session = move || {
            let output = Output::Live(live(interval, events.clone(), Missed::clone(&missed)));
            let begun = |cpu| {
                let begun = ScreenEvent::Update(Update::Begun { cpu });
                events.send(begun).context("the screen is gone")
            };
            let trace = || subject.trace(&spec, output, received, begun);
            let traced = catch_unwind(AssertUnwindSafe(trace));
            let result = traced.unwrap_or_else(|_| Err(anyhow!("the session ended by a fault")));
            let missed = missed.load(Ordering::Relaxed);
            // Nobody listens once the screen is gone.
            let _ = events.send(ScreenEvent::Update(Update::Ended { result, missed }));
        };
        let thread = std::thread::Builder::new().name("session".into());
        thread.spawn(session).context("cannot start a thread")?;
        Ok(Self::Session(commands))
    }

    /// Starts asking a daemon at each interval.
    pub(super) fn ask_daemon(
        socket: &Path,
        interval: Duration,
        events: SyncSender<ScreenEvent>,
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

    /// Asks a session to end. Returns whether an end is reported: a session reports it also where
    /// it has just ended by itself.
    pub(super) fn stop(&self) -> bool {
        match self {
            Self::Session(commands) => {
                let _ = commands.send(Command::Stop);
                true
            }
            Self::Daemon(_) => false,
        }
    }
}

/// Sends snapshots to `events`. While a stopped terminal takes none, they are counted as missed.
fn live(interval: Duration, events: SyncSender<ScreenEvent>, missed: Missed) -> Live {
    let deliver = move |snapshot| {
        let before = missed.load(Ordering::Relaxed);
        let update = Update::Interval { parts: vec![snapshot], missed: before };
        match events.try_send(ScreenEvent::Update(update)) {
            Ok(()) => missed.store(0, Ordering::Relaxed),
            Err(TrySendError::Full(_)) => missed.store(before + 1, Ordering::Relaxed),
            Err(TrySendError::Disconnected(_)) => return false,
        }
        true
    };
    // The screen does not show how durations change within an interval.
    let extras = Extras { histograms: true, slices: 1, ..Extras::default() };
    Live { interval, extras: Box::new(move || extras), center_cut: 1.0, deliver: Box::new(deliver) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::tests::{fixture, snapshot};
    use std::sync::mpsc::sync_channel;

    #[test]
    fn what_a_full_screen_refuses_is_counted() {
        let (sender, events) = sync_channel(1);
        let missed = Missed::default();
        let mut live = live(Duration::from_secs(1), sender, Missed::clone(&missed));
        let mut deliver = || (live.deliver)(snapshot(fixture::typical(), 0));
        assert!(deliver() && deliver() && deliver());
        assert_eq!(missed.load(Ordering::Relaxed), 2);
        let told = |event| match event {
            ScreenEvent::Update(Update::Interval { missed, .. }) => missed,
            _ => panic!("no interval"),
        };
        assert_eq!(told(events.recv().unwrap()), 0);
        assert!(deliver());
        assert_eq!((told(events.recv().unwrap()), missed.load(Ordering::Relaxed)), (2, 0));
    }
}
