//! Finds processes. The kernel reports starts. A look through /proc finds processes that started
//! earlier or whose report was lost. The running program rules most of them out.

use super::{config::Target, event::DaemonEvent};
use crate::{
    bpf::{self, Starts},
    target::process::facts::{self, ProgramFacts},
};
use ctrace_core::units::{Nanos, Pid};
use rustix::event::{PollFd, PollFlags, poll};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc::Sender},
    time::Duration,
};

/// Programs start in bursts, and many end soon. Attaching takes longer than the shortest pause. The
/// longest applies where programs start without end.
const GATHERING: (Nanos, Nanos) = (Nanos::from_millis(20), Nanos::from_millis(200));
/// The pause between two rounds, as a multiple of the first one's CPU time.
const PAUSE_PER_ROUND: u64 = 1000;

/// The number of looks until a process counts as known. Its facts (user, control group) may change
/// soon after its start, and hardly ever later.
const LOOKS: u8 = 3;

pub(super) struct Finder {
    shared: Arc<Shared>,
    /// For each process: the time of its start, its name, and the number of looks.
    known: HashMap<Pid, (u64, String, u8)>,
}

/// State shared with the thread that waits for the kernel's reports.
struct Shared {
    starts: Mutex<Starts>,
    interest: Mutex<Interest>,
}

/// The processes that are of interest.
struct Interest {
    targets: Vec<Arc<Target>>,
    /// Traced processes, whatever they run.
    watched: HashSet<Pid>,
}

impl Finder {
    pub(super) fn start(
        targets: Vec<Arc<Target>>,
        events: Sender<DaemonEvent>,
    ) -> anyhow::Result<Self> {
        let starts = Starts::watch()?;
        let fd = starts.readable()?;
        let interest = Interest { targets, watched: HashSet::new() };
        let finder = Arc::new(Shared { starts: starts.into(), interest: interest.into() });
        let shared = Arc::clone(&finder);
        std::thread::Builder::new().name("finder".into()).spawn(move || {
            let (mut earliest, mut used) = (Nanos::ZERO, bpf::own_time());
            loop {
                // A signal makes this an empty round.
                let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], None);
                let pause = earliest.since(bpf::now()).clamp(GATHERING.0, GATHERING.1);
                std::thread::sleep(Duration::from_nanos(pause.0));
                let mut started = Vec::new();
                let all = lock(&shared.starts).drain(|pid| started.push(pid));
                let interest = lock(&shared.interest);
                started.retain(|pid| interest.is_in(*pid));
                drop(interest);
                let mut told = started.into_iter().map(DaemonEvent::Started);
                let mut listening = told.all(|started| events.send(started).is_ok());
                if !all {
                    listening &= events.send(DaemonEvent::StartsLost).is_ok();
                }
                if !listening {
                    return;
                }
                let before = std::mem::replace(&mut used, bpf::own_time());
                let round = used.since(before).0;
                earliest = bpf::now().saturating_add(Nanos(round.saturating_mul(PAUSE_PER_ROUND)));
            }
        })?;
        Ok(Self { shared: finder, known: HashMap::new() })
    }

    /// Returns all processes that may be new or may have changed.
    pub(super) fn scan(&mut self) -> Vec<Pid> {
        let mut known = std::mem::take(&mut self.known);
        let mut found = Vec::new();
        let interest = lock(&self.shared.interest);
        for pid in facts::all() {
            let Some((start_time, name)) = facts::birth(pid) else { continue };
            let looks = match known.remove(&pid) {
                Some((time, old, looks)) if time == start_time && old == name => looks,
                _ => 0,
            };
            if looks < LOOKS && interest.is_in(pid) {
                found.push(pid);
            }
            self.known.insert(pid, (start_time, name, looks.saturating_add(1).min(LOOKS)));
        }
        found
    }

    /// Sets the targets to look for.
    pub(super) fn look_for(&mut self, targets: Vec<Arc<Target>>) {
        lock(&self.shared.interest).targets = targets;
        self.look_again();
    }

    /// Treats all processes as new.
    pub(super) fn look_again(&mut self) {
        self.known.clear();
    }

    /// Watches a traced process: reports its changes, and its children, since they run the same
    /// program.
    pub(super) fn watch(&self, pid: Pid) {
        lock(&self.shared.interest).watched.insert(pid);
        if let Err(error) = lock(&self.shared.starts).tell_children_of(pid) {
            tracing::warn!("children of process {}: {error}", pid.0);
        }
    }

    pub(super) fn unwatch(&self, pid: Pid) {
        lock(&self.shared.interest).watched.remove(&pid);
        lock(&self.shared.starts).forget(pid);
    }
}

impl Interest {
    fn is_in(&self, pid: Pid) -> bool {
        let admits = |program: &ProgramFacts| {
            self.targets.iter().any(|target| target.matching.admits(program))
        };
        self.watched.contains(&pid) || ProgramFacts::of(pid).as_ref().is_some_and(admits)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
