//! Watches the cost of the probes, and acts on it.

use super::Session;
use crate::{
    bpf::CpuClock,
    session::budget::{
        costs::Spent,
        slowdown::{BudgetAction, Totals},
    },
    target::process::threads,
};
use ctrace_core::units::Tid;

impl Session {
    /// Starts the clock of the target. While children are followed, it counts the CPU time of all.
    pub(super) fn start_clock(&mut self) {
        /// The limit for threads: each costs a file descriptor.
        const MOST_THREADS: usize = 512;
        let follows = self.target.clock.follows();
        self.target.begin_clock();
        if self.arming.budget.is_none() && !(follows && self.rounds.watch.is_on()) {
            return;
        }
        let processes = self.target.alive();
        let threads: Vec<Tid> = processes.into_iter().flat_map(threads::ids_of).collect();
        if !follows && threads.len() > MOST_THREADS {
            return;
        }
        match CpuClock::start(threads, follows) {
            Ok(counters) => self.target.clock.counters = Some(counters),
            Err(error) if follows => {
                self.warn(&format!("the cost of the probes is not checked: {error}"));
            }
            Err(error) => tracing::warn!("{error}"),
        }
    }

    /// Returns the cost of the probes by the cost of a hit. Hits whose events were lost are included,
    /// and those of calls that did not meet a condition: they cost about the same. So is the time that
    /// threads waited for ctrace.
    pub(super) fn spent(&self) -> Spent {
        self.spent_on(&self.hits_with_unmet())
    }

    fn spent_on(&self, hits: &[u64]) -> Spent {
        let lost = self.engine.lost_events();
        let mut spent = self.arming.costs.with_lost(hits, lost);
        spent.aside = spent.aside.saturating_add(self.markers.waited);
        spent
    }

    /// Returns `false` if the cost ends the session.
    pub(super) fn check_slowdown(&mut self) -> anyhow::Result<bool> {
        let Some(cpu) = self.target.clock.time().filter(|cpu| self.rounds.watch.is_due(*cpu))
        else {
            return Ok(true);
        };
        self.count_losses()?;
        self.read_counts();
        let spent = self.spent_on(&self.with_unmet(self.engine.arrived().into()));
        let now = Totals { spent, cpu, used: self.target.used() };
        let measured = self.arming.costs.of_hits().are_measured();
        match self.rounds.watch.check(now, measured) {
            BudgetAction::Fine => Ok(true),
            BudgetAction::Warn(slowdown) => {
                self.warn(&format!(
                    "with these probes the target is {slowdown}: trace fewer functions, or limit \
                     their cost with --budget PERCENT"
                ));
                Ok(true)
            }
            BudgetAction::Stop(slowdown) => {
                let note = format!(
                    "tracing stopped early: with these probes the target was {slowdown}, more than \
                     --max-slowdown allows"
                );
                self.warn(&note);
                self.notes.add_in_any_case(note);
                Ok(false)
            }
        }
    }
}
