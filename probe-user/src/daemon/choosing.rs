//! Chooses the processes that get sessions. A target's process gets one if there is room, and if no
//! session traces it already.

use super::{
    backoff::{Failure, Retry},
    commands,
    config::Target,
    ids::{SessionId, TargetName},
    session::{self, Running, Shared},
    supervisor::Supervisor,
};
use crate::{
    bpf,
    target::process::facts::{self, Facts},
    ui,
};
use ctrace_core::units::Pid;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};

/// The approximate time to plan and arm.
const POSTPONED: Duration = Duration::from_secs(1);

/// Returns whether this is the daemon itself or its guard. Each record that the daemon reads would
/// make new ones, and the guard would wait for itself.
pub(super) fn is_own(pid: Pid) -> bool {
    pid.0 == std::process::id() || bpf::is_guard(pid)
}

impl Supervisor {
    /// Decides whether to trace a process. If the command line matters, the decision waits until it
    /// has been read.
    pub(super) fn consider(&mut self, pid: Pid) {
        if is_own(pid) {
            return;
        }
        let facts = Facts::of(pid);
        let depends = |facts: &Facts| {
            !self.is_asked_for(facts)
                && self.targets.iter().any(|target| target.matching.depends_on_command(facts))
        };
        match facts {
            Some(facts) if depends(&facts) => self.commands.ask(pid),
            facts => self.decide(pid, facts),
        }
    }

    /// Decides with the command line, unless it was asked for once more since.
    pub(super) fn known(&mut self, answer: commands::ReadCommand) {
        if self.commands.is_latest(&answer) {
            self.decide(answer.pid, answer.facts);
        }
    }

    fn decide(&mut self, pid: Pid, facts: Option<Facts>) {
        let Some(facts) = facts else {
            self.retries.remove(&pid);
            self.let_go.remove(&pid);
            return;
        };
        let wanted = self.wanted(&facts);
        if let Some(running) = self.sessions.get_mut(&pid) {
            postpone(self.retries.get_mut(&pid));
            let is_right = wanted.as_ref() == Some(&running.target)
                && running.facts.start_time == facts.start_time;
            if !is_right {
                // Its end calls this again.
                running.stop();
            }
            return;
        }
        let Some(target) = wanted else {
            self.retries.remove(&pid);
            return;
        };
        let retry = self.retries.get(&pid).filter(|retry| retry.start_time == facts.start_time);
        if retry.is_some_and(|retry| retry.at > Instant::now()) {
            return;
        }
        if self.is_followed(&target, pid) {
            // When that session ends, all processes are looked at.
            self.retries.remove(&pid);
            return;
        }
        if let Err(why) = self.has_room(&target) {
            self.told.say(&target.id, &why);
            self.try_later(&target.id, &facts, &why);
            if let Some(retry) = self.retries.get_mut(&pid) {
                retry.waits_for_room = true;
            }
            return;
        }
        self.start(target, facts);
    }

    /// Returns the target for a process: the one chosen by hand, or the first match.
    fn wanted(&mut self, facts: &Facts) -> Option<Arc<Target>> {
        let target = match self.by_hand.get(&facts.pid) {
            Some(asked) if self.is_asked_for(facts) => Arc::clone(&asked.target),
            _ => {
                let mut matching = self.targets.iter().filter(|t| t.matching.matches(facts));
                let target = Arc::clone(matching.next()?);
                if let Some(other) = matching.next() {
                    self.told.twice_matched(&target.id, &other.id, facts.pid.0);
                }
                target
            }
        };
        let is_let_go = self.detached.contains(&target.id) || self.let_go.contains(&facts.pid);
        (!is_let_go).then_some(target)
    }

    /// Returns whether somebody attached this very process by hand.
    fn is_asked_for(&self, facts: &Facts) -> bool {
        let asked = self.by_hand.get(&facts.pid);
        asked.is_some_and(|asked| asked.start_time == facts.start_time)
    }

    /// Returns whether a session of its target traces it as a child. A session without probes yet
    /// will trace what an ancestor forks from now on, perhaps this process.
    fn is_followed(&self, target: &Target, pid: Pid) -> bool {
        const FAR: usize = 64;
        if !target.what.probes.follow {
            return false;
        }
        let is_its = |running: &&Running| running.target.id == target.id;
        if self.sessions.values().filter(is_its).any(|running| running.traces(pid)) {
            return true;
        }
        let ancestors = std::iter::successors(facts::parent(pid), |pid| facts::parent(*pid));
        let mut sessions = ancestors.take(FAR).filter_map(|pid| self.sessions.get(&pid));
        sessions.any(|running| is_its(&running) && !running.is_armed())
    }

    pub(super) fn has_room(&self, target: &Target) -> Result<(), String> {
        let of_target = self.sessions.values().filter(|running| running.target.id == target.id);
        if of_target.count() >= target.max_processes as usize {
            let most = target.max_processes;
            return Err(format!("more than {most} processes; the others wait (max_processes)"));
        }
        let most = self.config.daemon.max_processes;
        if self.sessions.len() >= most as usize {
            return Err(format!(
                "more than {most} processes of all targets; it waits (max_processes of [daemon])"
            ));
        }
        Ok(())
    }

    pub(super) fn start(&mut self, target: Arc<Target>, facts: Facts) -> Option<SessionId> {
        let id = SessionId(self.last_session.0 + 1);
        self.last_session = id;
        self.hub.metrics().begin(id, &target.id.0);
        let started = session::start(id, Arc::clone(&target), facts.clone(), &self.shared());
        match started {
            Ok(running) => {
                self.finder.watch(facts.pid);
                self.sessions.insert(facts.pid, running);
                Some(id)
            }
            Err(error) => {
                self.hub.metrics().end(id);
                let why = format!("cannot start a thread: {error}");
                ui::say(&format!("process {}: {why}", facts.pid.0));
                self.try_later(&target.id, &facts, &why);
                None
            }
        }
    }

    fn shared(&self) -> Shared {
        Shared {
            hub: Arc::clone(&self.hub),
            recordings: Arc::clone(&self.recordings),
            events: self.events.clone(),
        }
    }

    /// Records a failure. Returns whether there were enough for a message.
    pub(super) fn try_later(&mut self, target: &TargetName, facts: &Facts, why: &str) -> bool {
        let before = self.retries.get(&facts.pid);
        let failure = Failure { start_time: facts.start_time, target, why };
        let retry = Retry::after(before, failure, Instant::now());
        let is_worth_a_word = retry.is_worth_a_word();
        self.retries.insert(facts.pid, retry);
        is_worth_a_word
    }
}

/// Postpones the next look at a process whose session has neither begun nor failed yet.
fn postpone(retry: Option<&mut Retry>) {
    if let Some(retry) = retry {
        retry.at = retry.at.max(Instant::now() + POSTPONED);
    }
}
