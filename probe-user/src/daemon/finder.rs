//! Finds processes: the kernel tells of those that start, and a look through /proc finds those that
//! were there before, and any of which the word was lost. Most of them are of no interest, as their
//! program tells.

use super::{Event, config::Target};
use crate::{
    bpf::{self, Starts},
    target::facts::{self, Program},
};
use ctrace_core::units::{Nanos, Pid};
use rustix::event::{PollFd, PollFlags, poll};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc::Sender},
    time::Duration,
};

/// Programs start in bursts, and many are over soon. To attach takes longer than the shortest pause;
/// the longest comes where programs start without end.
const GATHERING: (Nanos, Nanos) = (Nanos::from_millis(20), Nanos::from_millis(200));
/// Between two rounds lies so many times the processor time of the first.
const PAUSE_PER_ROUND: u64 = 1000;

/// Looks at a process; after so many it is not new any more. What it is known by may change soon
/// after its start (user, control group), and hardly ever later.
const LOOKS: u8 = 3;

pub(super) struct Finder {
    shared: Arc<Shared>,
    /// By process, with the time of its start and its name: how often it was looked at.
    known: HashMap<Pid, (u64, String, u8)>,
}

/// With the thread that waits for the kernel's word.
struct Shared {
    starts: Mutex<Starts>,
    interest: Mutex<Interest>,
}

/// Which processes somebody wants to know of.
struct Interest {
    targets: Vec<Arc<Target>>,
    /// Those that are traced, whatever they run.
    watched: HashSet<Pid>,
}

impl Finder {
    pub(super) fn start(targets: Vec<Arc<Target>>, events: Sender<Event>) -> anyhow::Result<Self> {
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
                let mut told = started.into_iter().map(Event::Started);
                let mut listening = told.all(|started| events.send(started).is_ok());
                if !all {
                    listening &= events.send(Event::StartsLost).is_ok();
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

    /// All processes that may be new, or may have become something else.
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

    /// Other targets.
    pub(super) fn look_for(&mut self, targets: Vec<Arc<Target>>) {
        lock(&self.shared.interest).targets = targets;
        self.look_again();
    }

    /// All processes are new.
    pub(super) fn look_again(&mut self) {
        self.known.clear();
    }

    /// A process is traced: what becomes of it is told, and its children are, since they run what it
    /// runs.
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
        let admits =
            |program: &Program| self.targets.iter().any(|target| target.matching.admits(program));
        self.watched.contains(&pid) || Program::of(pid).as_ref().is_some_and(admits)
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
