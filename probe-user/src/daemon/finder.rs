//! Finds processes: the kernel tells of those that start, and a look through /proc finds those that
//! were there before, and any of which the word was lost.

use super::Event;
use crate::{bpf::Starts, target::facts};
use ctrace_core::units::Pid;
use rustix::event::{PollFd, PollFlags, poll};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, mpsc::Sender},
};

/// Looks at a process; after so many it is not new any more. What it is known by may change soon
/// after its start (user, control group), and hardly ever later.
const LOOKS: u8 = 3;

pub(super) struct Finder {
    /// Shared with the thread that waits for the kernel's word.
    starts: Arc<Mutex<Starts>>,
    /// By process, with the time of its start and its name: how often it was looked at.
    known: HashMap<Pid, (u64, String, u8)>,
}

impl Finder {
    pub(super) fn start(events: Sender<Event>) -> anyhow::Result<Self> {
        let starts = Starts::watch()?;
        let fd = starts.readable()?;
        let starts = Arc::new(Mutex::new(starts));
        let shared = Arc::clone(&starts);
        std::thread::Builder::new().name("finder".into()).spawn(move || {
            loop {
                // A signal makes this an empty round.
                let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], None);
                let mut listening = true;
                let all = lock(&shared).drain(|pid| {
                    listening &= events.send(Event::Started(pid)).is_ok();
                });
                if !all {
                    listening &= events.send(Event::StartsLost).is_ok();
                }
                if !listening {
                    return;
                }
            }
        })?;
        Ok(Self { starts, known: HashMap::new() })
    }

    /// All processes that may be new, or may have become something else.
    pub(super) fn scan(&mut self) -> Vec<Pid> {
        let mut known = std::mem::take(&mut self.known);
        let mut found = Vec::new();
        for pid in facts::all() {
            let Some((start_time, name)) = facts::birth(pid) else { continue };
            let looks = match known.remove(&pid) {
                Some((time, old, looks)) if time == start_time && old == name => looks,
                _ => 0,
            };
            if looks < LOOKS {
                found.push(pid);
            }
            self.known.insert(pid, (start_time, name, looks.saturating_add(1).min(LOOKS)));
        }
        found
    }

    /// All are new again: others may be wanted now.
    pub(super) fn forget(&mut self) {
        self.known.clear();
    }

    /// Its children are told of, since they run what it runs.
    pub(super) fn tell_children_of(&self, pid: Pid) {
        if let Err(error) = lock(&self.starts).tell_children_of(pid) {
            tracing::warn!("children of process {}: {error}", pid.0);
        }
    }

    pub(super) fn no_children_of(&self, pid: Pid) {
        lock(&self.starts).forget(pid);
    }
}

fn lock(starts: &Mutex<Starts>) -> std::sync::MutexGuard<'_, Starts> {
    starts.lock().unwrap_or_else(PoisonError::into_inner)
}
