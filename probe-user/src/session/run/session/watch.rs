//! Watches the cost of the probes, and acts on it.

use super::Session;
use crate::{
    bpf::CpuClock,
    session::{
        budget::{
            costs::Spent,
            slowdown::{BudgetAction, Totals},
        },
        keep::output::Output,
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
                let is_live = matches!(self.delivery.output, Output::Live(_));
                self.warn(&warning(&slowdown, is_live));
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

/// Returns the line for a target that the probes slow down much. Where it `is_live`, it is one line of a
/// screen.
fn warning(slowdown: &str, is_live: bool) -> String {
    match is_live {
        true => format!("use -x or --budget: probes make the target {slowdown}"),
        false => format!(
            "with these probes the target is {slowdown}: trace fewer functions, or limit their cost with \
             --budget PERCENT"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::budget::evidence::Estimate;
    use ctrace_core::units::Nanos;

    #[test]
    fn a_screen_of_80_columns_has_room_for_the_warning_and_the_remedy() {
        let ms = Nanos::from_millis;
        let told = |least, most: Option<u64>, used| {
            Estimate { least: ms(least), most: most.map(ms) }.slowdown(ms(used))
        };
        let all = [told(300, Some(990), 1_000), told(700, None, 1_000), told(1, Some(999), 1_000)];
        for slowdown in all {
            let line = warning(&slowdown, true);
            assert!(line.chars().count() <= 80, "{line}");
            assert!(line.starts_with("use -x or --budget"), "{line}");
        }
    }
}
