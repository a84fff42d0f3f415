//! Answers requests from the control socket on the supervisor's thread.

use super::{
    backoff::Retry,
    choosing::is_own,
    config::Target,
    control::{Ask, Choice, ControlAnswer, Handle, Reply, Whom},
    ids::{SessionId, TargetName},
    session::Running,
    supervisor::{ByHand, Supervisor},
};
use crate::target::process::facts::Facts;
use ctrace_core::{report::render::clean::clean, units::Pid};
use serde_json::{Value, json};
use std::{
    sync::{Arc, mpsc::Sender},
    time::Instant,
};

/// Limit of untraced processes that are listed for a target.
const MOST_UNTRACED: usize = 20;

impl Supervisor {
    pub(super) fn answer(&mut self, ask: Ask, asker: Sender<ControlAnswer>) {
        let result = match ask {
            Ask::Status => Ok(self.status()),
            Ask::Targets => Ok(self.all_targets()),
            Ask::Attach { pid, target, choice } => match self.attach(Pid(pid), target, choice) {
                Ok((id, told)) => return self.waiting.until_armed(id, told, asker),
                Err(error) => Err(error),
            },
            Ask::Detach { whom } => match self.detach(&whom) {
                Ok((ids, told)) => return self.waiting.until_gone(ids, told, asker),
                Err(error) => Err(error),
            },
            Ask::Reload => self.reload().map(|()| self.status()).map_err(|e| format!("{e:#}")),
            Ask::Report { whom, .. } | Ask::Record { whom, .. } => match self.handles(&whom) {
                Ok(sessions) => {
                    let _ = asker.send(ControlAnswer::Sessions(sessions));
                    return;
                }
                Err(error) => Err(error),
            },
        };
        // The client may have gone.
        let _ = asker.send(ControlAnswer::Now(result.map_or_else(Reply::error, Reply::ok)));
    }

    fn status(&self) -> Value {
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "config": self.path.display().to_string(),
            "uptime_s": self.began.elapsed().as_secs(),
            "targets": self.targets.len(),
            "processes": self.sessions.len(),
            "waiting": self.retries.len(),
            "reports_lost": self.hub.reports_lost(),
        })
    }

    fn all_targets(&self) -> Value {
        let mut all: Vec<&Arc<Target>> = self.targets.iter().collect();
        let of_sessions = self.sessions.values().map(|running| &running.target);
        for target in of_sessions.chain(self.by_hand.values().map(|asked| &asked.target)) {
            if !all.iter().any(|other| other.id == target.id) {
                all.push(target);
            }
        }
        let all = all.iter().map(|target| self.one_target(target));
        json!({ "targets": all.collect::<Vec<_>>() })
    }

    fn one_target(&self, target: &Target) -> Value {
        let known = self.hub.known(&target.id);
        let mut of_target: Vec<&Running> =
            self.sessions.values().filter(|running| running.target.id == target.id).collect();
        of_target.sort_by_key(|running| running.id);
        let processes = of_target.iter().map(|running| {
            let seen = known.sessions.get(&running.id).copied().unwrap_or_default();
            json!({
                "pid": running.pid().0,
                "exe": running.facts.program.exe,
                "session": running.id.0,
                "since_s": running.since.elapsed().as_secs(),
                "state": if running.is_armed() { "traced" } else { "starting" },
                "since_start": seen.since_start,
                "last": seen.last,
            })
        });
        let is_detached = self.detached.contains(&target.id);
        let is_untraced = |(pid, retry): &(&Pid, &Retry)| {
            retry.target == target.id && !is_detached && !self.sessions.contains_key(pid)
        };
        let mut untraced: Vec<(&Pid, &Retry)> = self.retries.iter().filter(is_untraced).collect();
        untraced.sort_by_key(|(pid, retry)| (retry.at, **pid));
        let all_untraced = untraced.len();
        let untraced = untraced.into_iter().take(MOST_UNTRACED).map(|(pid, retry)| {
            let pause = retry.at.saturating_duration_since(Instant::now()).as_secs();
            let pause = (!retry.waits_for_room).then_some(pause);
            json!({ "pid": pid.0, "why": retry.why, "again_in_s": pause })
        });
        json!({
            "target": target.id.0,
            "state": if is_detached { "detached" } else { "wanted" },
            "interval_s": target.reports.interval.as_secs_f64(),
            "budget_percent": target.what.probes.budget,
            "processes": processes.collect::<Vec<_>>(),
            "untraced": untraced.collect::<Vec<_>>(),
            "all_untraced": all_untraced,
            "since_start": known.totals,
        })
    }

    fn attach(
        &mut self,
        pid: Pid,
        target: Option<String>,
        choice: Choice,
    ) -> Result<(SessionId, Value), String> {
        if is_own(pid) {
            return Err("the daemon does not trace itself or its guard".into());
        }
        let facts = Facts::of(pid).ok_or_else(|| format!("there is no process {}", pid.0))?;
        if let Some(running) = self.sessions.get(&pid) {
            return Err(format!("process {} is traced already, for {}", pid.0, running.target.id));
        }
        let target = match target {
            Some(name) if choice.is_empty() => {
                let target = self.targets.iter().find(|target| *target.id.0 == *name);
                Arc::clone(target.ok_or_else(|| no_target(&name))?)
            }
            Some(_) => return Err("a target has its own selection: give one or the other".into()),
            None => Arc::new(self.made_by_hand(pid, choice)),
        };
        self.has_room(&target)?;
        self.detached.remove(&target.id);
        self.let_go.remove(&pid);
        self.retries.remove(&pid);
        let (name, start_time) = (target.id.clone(), facts.start_time);
        let id = self.start(Arc::clone(&target), facts).ok_or("no thread can be started")?;
        self.by_hand.insert(pid, ByHand { start_time, target });
        Ok((id, json!({ "target": name.0, "pid": pid.0 })))
    }

    /// Makes a target outside of any file, with the defaults.
    fn made_by_hand(&self, pid: Pid, choice: Choice) -> Target {
        let mut target = self.config.common.clone();
        target.id = TargetName(format!("pid-{}", pid.0).into());
        target.max_processes = target.max_processes.max(1);
        let select = &mut target.what.select;
        select.functions = choice.functions;
        select.usdt = choice.usdt;
        select.markers = choice.markers;
        select.exclude.extend(choice.exclude);
        target
    }

    fn detach(&mut self, whom: &Whom) -> Result<(Vec<SessionId>, Value), String> {
        if let (Some(name), None) = (&whom.target, whom.pid) {
            let known = self.targets.iter().find(|target| *target.id.0 == **name);
            if let Some(target) = known {
                self.detached.insert(target.id.clone());
            }
        }
        let asked = self.by_hand.len();
        self.by_hand.retain(|pid, asked| !whom.is(&asked.target.id, *pid));
        let was_asked = self.by_hand.len() < asked;
        self.let_go.extend(whom.pid.filter(|_| was_asked).map(Pid));
        let mut ids = Vec::new();
        let pids: Vec<u32> = match self.found(whom) {
            Ok(found) => found.iter().map(|running| running.pid().0).collect(),
            Err(_) if was_asked || whom.pid.is_none() && self.is_detached(whom) => Vec::new(),
            Err(error) => return Err(error),
        };
        for pid in &pids {
            if whom.pid.is_some() {
                self.let_go.insert(Pid(*pid));
            }
            if let Some(running) = self.sessions.get_mut(&Pid(*pid)) {
                running.stop();
                ids.push(running.id);
            }
        }
        Ok((ids, json!({ "pids": pids })))
    }

    fn is_detached(&self, whom: &Whom) -> bool {
        let name = whom.target.as_deref().unwrap_or_default();
        self.detached.iter().any(|target| *target.0 == *name)
    }

    fn handles(&self, whom: &Whom) -> Result<Vec<Handle>, String> {
        let handle = |running: &&Running| Handle {
            id: running.id,
            pid: running.pid(),
            target: Arc::clone(&running.target),
            commands: running.commands.clone(),
            looks: Arc::clone(&running.looks),
        };
        Ok(self.found(whom)?.iter().map(handle).collect())
    }

    /// Returns the requested sessions: at least one, the oldest first.
    fn found(&self, whom: &Whom) -> Result<Vec<&Running>, String> {
        let is_meant = |running: &&Running| whom.is(&running.target.id, running.pid());
        let mut found: Vec<&Running> = self.sessions.values().filter(is_meant).collect();
        found.sort_by_key(|running| running.id);
        if !found.is_empty() {
            return Ok(found);
        }
        Err(match (&whom.target, whom.pid) {
            (_, Some(pid)) => {
                format!("process {pid} is not traced; `ctrace ctl targets` shows which")
            }
            (Some(name), None) if self.targets.iter().any(|target| *target.id.0 == **name) => {
                format!("target {} has no process now", clean(name))
            }
            (Some(name), None) => no_target(name),
            (None, None) => "no process is traced now".to_owned(),
        })
    }
}

fn no_target(name: &str) -> String {
    format!("there is no target `{}`; `ctrace ctl targets` shows them", clean(name))
}
