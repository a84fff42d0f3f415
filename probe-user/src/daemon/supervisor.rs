//! The thread that decides which processes have sessions.

use super::{
    backoff::{Failure, Retry, Slowed},
    commands::Commands,
    config::{Config, Target},
    control,
    event::{DaemonEvent, SessionProgress},
    finder::Finder,
    fleet,
    hub::Hub,
    ids::{SessionId, TargetName},
    limits,
    metrics::service::Service,
    notify::Manager,
    once::SaidOnce,
    recordings::Recordings,
    session::Running,
    signals::{self, SignalOrder},
    waiting::Waiting,
};
use crate::{
    bpf::{self, Traced},
    target::process::facts,
    ui,
};
use anyhow::Context;
use ctrace_core::units::Pid;
use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    time::{Duration, Instant},
};

/// The time between looks at all processes, if they are asked for repeatedly.
const BETWEEN_SCANS: Duration = Duration::from_secs(1);
/// Time limit for sessions to remove their probes and report at the end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the daemon with this configuration file, until it is told to end.
pub(crate) fn run(path: &Path) -> anyhow::Result<()> {
    bpf::require()?;
    bpf::use_one_arena();
    let config = load(path)?;
    config.remarks().iter().for_each(|remark| ui::say(remark));
    let (events, arriving) = channel();
    signals::listen(events.clone()).context("cannot listen for signals")?;
    limits::allow_many_files();
    let hub = Arc::new(Hub::start(&config).context("cannot start a thread")?);
    // It ends after all sessions, with a last export.
    let _service = Service::start(config.metrics.service(), hub.metrics().clone())?;
    let recordings = Arc::new(Mutex::new(Recordings::new(config.daemon.recordings.clone())));
    let targets: Vec<_> = config.targets.iter().cloned().map(Arc::new).collect();
    let mut supervisor = Supervisor {
        listener: control::Listener::start(
            &config.daemon.socket,
            config.daemon.group,
            events.clone(),
            Arc::clone(&hub),
            Arc::clone(&recordings),
        )?,
        path: path.to_owned(),
        finder: Finder::start(targets.clone(), events.clone())?,
        commands: Commands::new(events.clone()),
        targets,
        config,
        hub,
        recordings,
        began: Instant::now(),
        manager: Manager::new(),
        events,
        sessions: HashMap::new(),
        retries: HashMap::new(),
        slowed: HashMap::new(),
        by_hand: HashMap::new(),
        detached: HashSet::new(),
        let_go: HashSet::new(),
        told: SaidOnce::default(),
        waiting: Waiting::default(),
        next_scan: Instant::now(),
        last_scan: None,
        last_session: SessionId(0),
    };
    supervisor.run(&arriving);
    Ok(())
}

/// Reads the file. Without the program that sends tables, the daemon works all the same: they wait.
fn load(path: &Path) -> anyhow::Result<Config> {
    let config = Config::load(path)?;
    if let Some(refusal) = fleet::refusal(&config.fleet) {
        ui::say(&format!("{}: {refusal}; tables wait until it is there", path.display()));
    }
    Ok(config)
}

/// A process, known by its start time, and its target. The target changes with the configuration,
/// if that names it.
pub(super) struct ByHand {
    pub(super) start_time: u64,
    pub(super) target: Arc<Target>,
}

pub(super) struct Supervisor {
    pub(super) path: PathBuf,
    pub(super) config: Config,
    pub(super) targets: Vec<Arc<Target>>,
    pub(super) hub: Arc<Hub>,
    pub(super) recordings: Arc<Mutex<Recordings>>,
    pub(super) listener: control::Listener,
    pub(super) began: Instant,
    pub(super) manager: Manager,
    pub(super) finder: Finder,
    pub(super) commands: Commands,
    pub(super) events: Sender<DaemonEvent>,
    pub(super) sessions: HashMap<Pid, Running>,
    /// Processes that could not be traced.
    pub(super) retries: HashMap<Pid, Retry>,
    /// Processes that were let go for their own good.
    slowed: HashMap<Pid, Slowed>,
    /// Processes attached by hand, which stay whatever the configuration says.
    pub(super) by_hand: HashMap<Pid, ByHand>,
    /// Targets detached by hand.
    pub(super) detached: HashSet<TargetName>,
    /// Processes detached by hand.
    pub(super) let_go: HashSet<Pid>,
    pub(super) waiting: Waiting,
    pub(super) told: SaidOnce,
    pub(super) next_scan: Instant,
    last_scan: Option<Instant>,
    pub(super) last_session: SessionId,
}

impl Supervisor {
    fn run(&mut self, arriving: &Receiver<DaemonEvent>) {
        ui::say(&format!("the daemon runs, with {} from {}", self.in_short(), self.path.display()));
        self.do_what_is_due();
        self.manager.ready(&self.in_short());
        loop {
            self.do_what_is_due();
            let alive = self.manager.live();
            let due = self.next_due();
            let pause =
                alive.map_or(due, |alive| due.min(alive)).saturating_duration_since(Instant::now());
            match arriving.recv_timeout(pause) {
                Ok(DaemonEvent::Signal(SignalOrder::End)) => return self.end(arriving),
                Ok(event) => self.take(event),
                Err(RecvTimeoutError::Timeout) => {}
                // We hold a sender ourselves.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn in_short(&self) -> String {
        ui::text::units::counted(self.targets.len() as u64, "target", "targets")
    }

    fn take(&mut self, event: DaemonEvent) {
        match event {
            DaemonEvent::Started(pid) => self.consider(pid),
            DaemonEvent::Known(answer) => self.known(answer),
            DaemonEvent::StartsLost => self.look_at_all(),
            DaemonEvent::Session(id, SessionProgress::Armed { traced, in_vain }) => {
                self.armed(id, traced, in_vain);
            }
            DaemonEvent::Session(id, SessionProgress::Ended(result)) => self.ended(id, result),
            DaemonEvent::Signal(SignalOrder::Reload) => {
                // A failure was logged.
                let _ = self.reload();
            }
            DaemonEvent::Request(control::ControlRequest { ask, answer }) => {
                self.answer(ask, answer);
            }
            DaemonEvent::Signal(SignalOrder::End) => {}
        }
    }

    /// Returns the time of the next work without an event.
    fn next_due(&self) -> Instant {
        let retries = self.retries.iter().filter(|(pid, _)| !self.commands.is_underway(**pid));
        retries.map(|(_, retry)| retry.at).fold(self.next_scan, Instant::min)
    }

    fn do_what_is_due(&mut self) {
        let now = Instant::now();
        if now >= self.next_scan {
            self.next_scan = now + self.config.daemon.rescan;
            self.last_scan = Some(now);
            for pid in self.finder.scan() {
                self.consider(pid);
                // There may be very many.
                self.manager.live();
            }
            let is_there = |pid: &Pid, start| facts::birth(*pid).is_some_and(|b| b.0 == start);
            self.retries.retain(|pid, retry| is_there(pid, retry.start_time));
            self.by_hand.retain(|pid, asked| is_there(pid, asked.start_time));
            self.let_go.retain(|pid| facts::birth(*pid).is_some());
            self.slowed.retain(|pid, slowed| is_there(pid, slowed.start_time));
            self.hub.forget_some(&self.config);
        }
        let is_due = |(pid, retry): (&Pid, &Retry)| {
            (retry.at <= now && !self.commands.is_underway(*pid)).then_some(*pid)
        };
        let due: Vec<Pid> = self.retries.iter().filter_map(is_due).collect();
        due.into_iter().for_each(|pid| self.consider(pid));
    }

    fn armed(&mut self, id: SessionId, traced: Traced, in_vain: bool) {
        let Some(running) = self.sessions.values_mut().find(|running| running.id == id) else {
            return;
        };
        running.traced = Some(traced);
        self.waiting.armed(id);
        let follows = running.target.what.probes.follow;
        self.hub.metrics().armed(id, running.commands.clone());
        let (pid, target) = (running.pid(), running.target.id.clone());
        self.hub.began(&target, id);
        self.retries.remove(&pid);
        // Otherwise processes of the target that can and that cannot be traced would fill the log.
        if !self.retries.values().any(|retry| retry.target == target) {
            self.told.forget(&target);
        }
        if in_vain {
            self.told.watched_in_vain(&target, pid.0);
        }
        tracing::info!("target {target}: process {} is traced", pid.0);
        if follows {
            self.look_at_all();
        }
    }

    /// Looks at all processes: children older or younger than their parent's session need their
    /// own, and starts may be lost. Sessions that begin and end in sequence share a look.
    fn look_at_all(&mut self) {
        self.finder.look_again();
        let soon = self.last_scan.map_or_else(Instant::now, |last| last + BETWEEN_SCANS);
        self.next_scan = self.next_scan.min(soon);
    }

    fn ended(&mut self, id: SessionId, result: Result<(), String>) {
        let found = self.sessions.values().find(|running| running.id == id);
        let Some(pid) = found.map(Running::pid) else { return };
        let Some(running) = self.sessions.remove(&pid) else { return };
        self.hub.ended(&running.target.id, id);
        let is_told = self.waiting.ended(id, &result);
        self.finder.unwatch(pid);
        if running.target.what.probes.follow {
            self.look_at_all();
        }
        let is_there = facts::birth(pid).is_some_and(|birth| birth.0 == running.facts.start_time);
        match result {
            Err(_) if !is_there => {}
            // The client has the answer.
            Err(_) if is_told => drop(self.by_hand.remove(&pid)),
            Err(error) => {
                if self.try_later(&running.target.id, &running.facts, &error) {
                    let what = format!("process {} cannot be traced: {error}", pid.0);
                    self.told.say(&running.target.id, &what);
                }
            }
            Ok(()) if is_there && !running.is_stopping => {
                let why = "the probes slowed it too much";
                let (start_time, target) = (running.facts.start_time, &running.target.id);
                let failure = Failure { start_time, target, why };
                let slowed = Slowed::once_more(self.slowed.get(&pid).copied(), start_time);
                self.retries.insert(pid, Retry::of_slowed(slowed, failure, Instant::now()));
                self.slowed.insert(pid, slowed);
                self.told.say(target, &format!("process {} is let go: {why}", pid.0));
                self.by_hand.remove(&pid);
                return;
            }
            Ok(()) => tracing::info!("target {}: process {} is let go", running.target.id, pid.0),
        }
        // Another process may wait for the room, and this one may now belong to another target.
        self.consider(pid);
        let now = Instant::now();
        for retry in self.retries.values_mut().filter(|retry| retry.waits_for_room) {
            retry.at = retry.at.min(now + Duration::from_secs(1));
        }
    }

    /// Reads the file again. Unchanged parts are not disturbed.
    pub(super) fn reload(&mut self) -> anyhow::Result<()> {
        self.manager.reloading();
        let read = load(&self.path);
        if let Ok(config) = &read {
            self.use_instead(config.clone());
        }
        self.manager.ready(&self.in_short());
        read.map(drop).inspect_err(|error| {
            ui::say(&format!("{error:#}; the configuration of before stays"));
        })
    }

    fn use_instead(&mut self, config: Config) {
        if config.daemon.socket != self.config.daemon.socket {
            ui::say("another socket needs a restart of the daemon");
        }
        if config.metrics != self.config.metrics {
            ui::say("other [metrics] need a restart of the daemon");
        }
        if config.pprof != self.config.pprof {
            ui::say("another [pprof] needs a restart of the daemon");
        }
        self.targets = config.targets.iter().cloned().map(Arc::new).collect();
        for asked in self.by_hand.values_mut() {
            let now = self.targets.iter().find(|target| target.id == asked.target.id);
            asked.target = Arc::clone(now.unwrap_or(&asked.target));
        }
        self.listener.set_group(config.daemon.group);
        *self.recordings.lock().unwrap_or_else(PoisonError::into_inner) =
            Recordings::new(config.daemon.recordings.clone());
        config.remarks().iter().for_each(|remark| ui::say(remark));
        self.hub.fleet().configure(&config.fleet);
        self.config = config;
        self.hub.forget_all_but(&self.config);
        self.detached.clear();
        self.let_go.clear();
        self.retries.clear();
        self.told.forget_all();
        self.finder.look_for(self.targets.clone());
        self.next_scan = Instant::now();
        let traced: Vec<Pid> = self.sessions.keys().copied().collect();
        traced.into_iter().for_each(|pid| self.consider(pid));
        ui::say(&format!("{} is read again: {}", self.path.display(), self.in_short()));
    }

    /// Removes all probes, and writes the last reports.
    fn end(&mut self, arriving: &Receiver<DaemonEvent>) {
        self.manager.ending(PATIENCE);
        self.sessions.values_mut().for_each(Running::stop);
        let patience = Instant::now() + PATIENCE;
        self.listener.finish(PATIENCE);
        while !self.sessions.is_empty() {
            let left = patience.saturating_duration_since(Instant::now());
            match arriving.recv_timeout(left) {
                Ok(DaemonEvent::Session(id, SessionProgress::Ended(_))) => {
                    self.hub.metrics().end(id);
                    self.sessions.retain(|_, running| running.id != id);
                }
                Ok(_) => {}
                Err(_) => {
                    ui::say(&format!("{} sessions did not end in time", self.sessions.len()));
                    break;
                }
            }
        }
        self.hub.finish();
    }
}
