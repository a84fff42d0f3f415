//! The session of one process: works like `ctrace attach`, on its own threads, and sends its
//! reports to the hub.

use super::{
    config::Target,
    event::{DaemonEvent, SessionProgress},
    flight,
    hub::Hub,
    ids::SessionId,
    looks::Looks,
    recordings::{RecordingPlace, Recordings},
    source::{Builds, Source},
    split, turns,
};
use crate::{
    bpf::{self, Traced},
    session::{
        collect::pace::Pace,
        keep::{
            flight::Flight,
            live::{Command, Live, Snapshot},
            output::Output,
            recording::{Limit, Recording},
        },
        run::{
            event_loop::{self, Ending},
            session::Session,
            setup::Setup,
        },
        spec::TraceSpec,
    },
    target::process::{Process, facts::Facts, maps::MappedObject},
};
use anyhow::{Context, ensure};
use ctrace_core::{report::Extras, units::Pid};
use std::{
    sync::{Arc, Mutex, mpsc::Sender},
    time::{Duration, Instant},
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The pause between passes over the rings of a session that needs events as they come: a
/// recording, the flight recorder, or markers, whose events wait in the target's memory.
const CALM: Duration = Duration::from_secs(1);
/// The pause if a budget is to be kept.
const WATCHFUL: Duration = Duration::from_millis(250);
/// The pause if only the next report needs the events, which has its own pass.
const LAZY: Duration = Duration::from_secs(8);

/// The answer to late requests.
pub(super) const ENDING: &str = "the daemon is ending";

/// A session as the supervisor knows it.
pub(super) struct Running {
    pub(super) id: SessionId,
    pub(super) target: Arc<Target>,
    pub(super) facts: Facts,
    pub(super) commands: UnboundedSender<Command>,
    pub(super) looks: Arc<Looks>,
    pub(super) since: Instant,
    /// `None` until its probes are in place.
    pub(super) traced: Option<Traced>,
    pub(super) is_stopping: bool,
}

impl Running {
    pub(super) fn pid(&self) -> Pid {
        self.facts.pid
    }

    pub(super) fn is_armed(&self) -> bool {
        self.traced.is_some()
    }

    /// Returns whether it traces this process by now.
    pub(super) fn traces(&self, pid: Pid) -> bool {
        self.traced.as_ref().is_some_and(|traced| traced.has(pid))
    }

    /// Asks it to end. Its end is reported.
    pub(super) fn stop(&mut self) {
        self.is_stopping = true;
        // It may be over already.
        let _ = self.commands.send(Command::Stop);
    }
}

/// Resources that all sessions share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) hub: Arc<Hub>,
    pub(super) recordings: Arc<Mutex<Recordings>>,
    pub(super) events: Sender<DaemonEvent>,
}

/// Starts a session. The supervisor learns of its progress.
pub(super) fn start(
    id: SessionId,
    target: Arc<Target>,
    facts: Facts,
    shared: &Shared,
) -> std::io::Result<Running> {
    let (commands, receiver) = unbounded_channel();
    let looks = Arc::new(Looks::default());
    let work = Work {
        id,
        target: Arc::clone(&target),
        facts: facts.clone(),
        hub: Arc::clone(&shared.hub),
        recordings: Arc::clone(&shared.recordings),
        looks: Arc::clone(&looks),
        events: shared.events.clone(),
    };
    std::thread::Builder::new().name("session".into()).spawn(move || work.run(receiver))?;
    Ok(Running {
        id,
        target,
        facts,
        commands,
        looks,
        since: Instant::now(),
        traced: None,
        is_stopping: false,
    })
}

struct Work {
    id: SessionId,
    target: Arc<Target>,
    facts: Facts,
    hub: Arc<Hub>,
    recordings: Arc<Mutex<Recordings>>,
    looks: Arc<Looks>,
    events: Sender<DaemonEvent>,
}

impl Work {
    fn run(self, commands: UnboundedReceiver<Command>) {
        let mut outcome = Outcome { id: self.id, events: self.events.clone(), result: None };
        let result = self.trace(commands).map_err(|error| format!("{error:#}"));
        outcome.result = Some(result);
    }

    fn trace(self, mut commands: UnboundedReceiver<Command>) -> anyhow::Result<()> {
        let pid = self.facts.pid;
        let process = Process::open(pid.0)?;
        let watched = event_loop::watch(pid)?;
        let is_same = Process::open(pid.0)?.start_time() == self.facts.start_time;
        ensure!(is_same, "process {} ended before it could be traced", pid.0);
        let flight = flight::asked(&self.target, pid, &self.recordings, &self.hub);
        let is_over = || matches!(commands.try_recv(), Ok(Command::Stop));
        let splits = split::asked(&self.target, self.id, &self.hub);
        // Nobody else needs the values of calls.
        let values = flight.is_some() || splits.are_wanted();
        let planned = plan(&self.target.what, &process, values, is_over)?;
        let Some(mut planned) = planned else { return Ok(()) };
        for line in &planned.setup.plan.remarks {
            tracing::info!("target {}: {line}", self.target.id);
        }
        planned.setup.pace = Pace::calm(self.pause(planned.setup.asks_for_markers()));
        planned.setup.flight = flight.map(Flight::new);
        planned.setup.splits = splits;
        let builds = Builds::of(&planned.setup.plan, &planned.objects);
        let mut session = planned.arm(&process, self.output(builds))?;
        let (traced, in_vain) = (session.traced(), session.watches_in_vain());
        event_loop::run(&mut session, watched, Ending::commanded(commands, None), || {
            // The supervisor goes only when all is over.
            let _ = self
                .events
                .send(DaemonEvent::Session(self.id, SessionProgress::Armed { traced, in_vain }));
            Ok(())
        })
    }

    /// Returns the pause between passes over the rings, if they do not fill.
    fn pause(&self, asks_for_markers: bool) -> Duration {
        let Target { what, flight, by, plots, .. } = &*self.target;
        if what.probes.budget.is_some() {
            WATCHFUL
        } else if flight.slow.is_some() || by.is_some() || *plots || asks_for_markers {
            CALM
        } else {
            LAZY
        }
    }

    fn output(&self, builds: Builds) -> Output {
        let reports = &self.target.reports;
        let (hub, target, id) = (Arc::clone(&self.hub), Arc::clone(&self.target), self.id);
        let (looks, looked_at) = (Arc::clone(&self.looks), Arc::clone(&self.looks));
        let always = hub.extras(&target);
        let mut source = Source::new(&target.id.0, &self.facts, builds);
        let (of_hub, of_target) = (Arc::clone(&self.hub), Arc::clone(&self.target));
        // A reload may begin tables.
        let extras = move || match looked_at.is_wanted(bpf::now()) && !always.histograms {
            true => Extras { histograms: true, slices: 1, ..of_hub.extras(&of_target) },
            false => of_hub.extras(&of_target),
        };
        let deliver = move |mut snapshot: Snapshot| {
            // A target's reports do not depend on who looks.
            let all = &mut snapshot.report.histograms;
            let histograms = all.take_if(|_| !always.histograms);
            hub.observe(&target, id, &snapshot);
            source.deliver(&snapshot, &hub);
            snapshot.report.histograms = snapshot.report.histograms.or(histograms);
            looks.keep(snapshot, bpf::now());
            true
        };
        Output::Live(Live {
            interval: reports.interval,
            extras: Box::new(extras),
            center_cut: reports.center_cut,
            deliver: Box::new(deliver),
        })
    }
}

/// Records every call of a process for a time, beside other sessions and without a budget.
pub(crate) fn record(
    what: &TraceSpec,
    pid: Pid,
    place: &RecordingPlace,
    time: Duration,
    mut commands: UnboundedReceiver<Command>,
) -> anyhow::Result<()> {
    let process = Process::open(pid.0)?;
    let watched = event_loop::watch(pid)?;
    let mut what = what.clone();
    what.probes.budget = None;
    let is_over = || matches!(commands.try_recv(), Ok(Command::Stop));
    let planned = plan(&what, &process, true, is_over)?.context(ENDING)?;
    let limit = Limit::Newest(place.bytes.max(1 << 20));
    let output =
        Output::Recording(Box::new(Recording::of_daemon(&place.path, limit, &place.target.0)?));
    let mut session = planned.arm(&process, output)?;
    event_loop::run(&mut session, watched, Ending::commanded(commands, Some(time)), || Ok(()))
}

/// The plan for attaching to a process.
struct Planned<'a> {
    setup: Setup<'a>,
    objects: Vec<MappedObject>,
}

/// Plans at its turn, as [`Setup::choose`] does. Returns `None` if it is no longer wanted by then.
fn plan<'a>(
    what: &'a TraceSpec,
    process: &Process,
    values: bool,
    mut is_over: impl FnMut() -> bool,
) -> anyhow::Result<Option<Planned<'a>>> {
    let _turn = turns::take();
    if is_over() {
        return Ok(None);
    }
    let objects = process.objects()?;
    let mut setup = Setup::choose(what, &objects, values)?;
    setup.pace = Pace::calm(CALM);
    bpf::give_back();
    Ok(Some(Planned { setup, objects }))
}

impl Planned<'_> {
    /// Arms. The kernel is slow at this, and several sessions wait for it at once.
    fn arm(self, process: &Process, output: Output) -> anyhow::Result<Session> {
        let (mut session, plan) = self.setup.running(process, output)?;
        for line in &plan.remarks {
            tracing::info!("{line}");
        }
        session.arm(&plan, &self.objects)?;
        Ok(session)
    }
}

/// Reports how a session ended, whatever became of its thread.
struct Outcome {
    id: SessionId,
    events: Sender<DaemonEvent>,
    result: Option<Result<(), String>>,
}

impl Drop for Outcome {
    fn drop(&mut self) {
        let panicked = || Err("the session ended by a mistake in ctrace; please report it".into());
        let result = self.result.take().unwrap_or_else(panicked);
        let _ = self.events.send(DaemonEvent::Session(self.id, SessionProgress::Ended(result)));
    }
}
