//! Finds the processes that come later and are among those that the user chose.
//!
//! The kernel reports each program that starts. A process can also become one of those without that:
//! it changes its user, is moved to a control group, or its report was lost. So from time to time all
//! processes are looked at.

use super::{admission, chosen::First};
use crate::{
    bpf::{BpfError, Starts, Traced},
    target::process::{
        Process,
        facts::{self, ProgramFacts},
        lookup::ProcessName,
        ours::Ours,
    },
    ui,
};
use anyhow::Context as _;
use ctrace_core::units::Pid;
use rustix::{
    event::{PollFd, PollFlags, poll},
    time::Timespec,
};
use std::{
    collections::HashMap,
    os::fd::OwnedFd,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The pause between two looks at all processes.
const PAUSE: Duration = Duration::from_secs(1);
/// The same as a multiple of the time that a look takes: there may be very many processes.
const PAUSE_PER_LOOK: u32 = 50;

/// The processes that the user means by names, but for ctrace's own.
pub(crate) struct Meant {
    names: Vec<ProcessName>,
    ours: Ours,
}

impl Meant {
    pub(crate) fn new(names: Vec<ProcessName>) -> Self {
        Self { names, ours: Ours::new() }
    }

    pub(crate) fn has(&self, pid: Pid) -> bool {
        self.names.iter().any(|name| name.means(pid)) && !self.is_ours(pid)
    }

    /// Returns whether a process is ctrace's own, or has ended.
    pub(crate) fn is_ours(&self, pid: Pid) -> bool {
        let program = ProgramFacts::of(pid);
        program.is_none_or(|program| self.ours.has(pid.0, Path::new(&program.exe)))
    }

    /// Returns what the kernel can tell by itself whether a process is meant; see [`admission::by`].
    pub(crate) fn admits(&self) -> u32 {
        admission::by(&self.names)
    }
}

/// Finds processes from its creation on.
pub(crate) struct Later {
    meant: Arc<Meant>,
    starts: Starts,
    readable: OwnedFd,
    /// The time up to which the first process is awaited.
    until: Option<Instant>,
    next_look: Instant,
    /// Processes that were found by looks, with the times of their starts.
    seen: HashMap<Pid, u64>,
}

impl Later {
    /// `names`: a process that any of them means is found. `limit`: the first one is awaited no longer
    /// than that.
    pub(crate) fn new(names: Vec<ProcessName>, limit: Option<Duration>) -> Result<Self, BpfError> {
        let starts = Starts::watch()?;
        let (readable, now, seen) = (starts.readable()?, Instant::now(), HashMap::new());
        let (meant, until) = (Arc::new(Meant::new(names)), limit.map(|limit| now + limit));
        Ok(Self { meant, starts, readable, until, next_look: now, seen })
    }

    pub(crate) fn meant(&self) -> &Arc<Meant> {
        &self.meant
    }

    /// Waits for the first process that can be opened, and tells it. Returns `None` if there is none in
    /// time.
    pub(crate) fn first(&mut self) -> Option<First> {
        loop {
            let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return None;
            }
            let found = self.next(left.map_or(PAUSE, |left| left.min(PAUSE)), |_| false);
            let open = |pid: Pid| First::look(Process::open(pid.0).ok()?).ok();
            if let Some(first) = found.into_iter().find_map(open) {
                // The next look tells the others again.
                self.seen.clear();
                self.next_look = Instant::now();
                let process = &first.process;
                ui::say(&format!(
                    "process {} has come: {}",
                    process.pid(),
                    process.exe().display()
                ));
                return Some(first);
            }
        }
    }

    /// Finds processes on a thread of their own, until nobody receives them any more.
    pub(crate) fn find(mut self, traced: Traced) -> anyhow::Result<UnboundedReceiver<Pid>> {
        let (sender, receiver) = unbounded_channel();
        let thread = std::thread::Builder::new().name("later".into());
        let find = move || {
            while !sender.is_closed() {
                let found = self.next(PAUSE, |pid| traced.has(pid));
                tell(&sender, found);
            }
        };
        thread.spawn(find).context("cannot start a thread")?;
        Ok(receiver)
    }

    /// Waits, no longer than this, and returns the processes that have come, but not those that are
    /// known.
    fn next(&mut self, wait: Duration, is_known: impl Fn(Pid) -> bool) -> Vec<Pid> {
        let wait = wait.min(self.next_look.saturating_duration_since(Instant::now()));
        let wait = Timespec::try_from(wait).ok();
        // A signal makes this an empty round.
        let _ = poll(&mut [PollFd::new(&self.readable, PollFlags::IN)], wait.as_ref());
        let mut started = Vec::new();
        if !self.starts.drain(|pid| started.push(pid)) {
            self.next_look = Instant::now();
        }
        started.retain(|pid| !is_known(*pid) && self.meant.has(*pid));
        for pid in &started {
            self.seen.remove(pid);
        }
        let now = Instant::now();
        if now >= self.next_look {
            started.extend(self.look(is_known));
            self.next_look = Instant::now() + PAUSE.max(now.elapsed() * PAUSE_PER_LOOK);
        }
        started
    }

    /// Looks at all processes. Each is told once.
    fn look(&mut self, is_known: impl Fn(Pid) -> bool) -> Vec<Pid> {
        let before = std::mem::take(&mut self.seen);
        let mut found = Vec::new();
        for pid in facts::all().filter(|pid| !is_known(*pid)) {
            let Some((start, _)) = facts::birth(pid) else { continue };
            let is_new = before.get(&pid) != Some(&start);
            if is_new && !self.meant.has(pid) {
                continue;
            }
            self.seen.insert(pid, start);
            if is_new {
                found.push(pid);
            }
        }
        found
    }
}

fn tell(sender: &UnboundedSender<Pid>, found: Vec<Pid>) {
    // The session may be over.
    let _ = found.into_iter().try_for_each(|pid| sender.send(pid));
}
