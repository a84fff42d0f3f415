//! Calls that the eBPF programs count themselves: what a session tells them, and what it reads.

use super::Session;
use crate::{
    bpf::{self, CountedFacts},
    ui::text::units::counted,
};
use ctrace_common::{MOST_COUNTED_THREADS, MOST_OPEN, RestoreReason};
use ctrace_core::{
    engine::NewExit,
    function::ExitSeen,
    units::{FuncId, Nanos},
};

/// The time between two readings. Budgets and the status line know no calls since the last one.
const PAUSE: Nanos = Nanos::from_millis(1_000);

/// Said if threads change stacks within traced calls.
const SWITCHES: &str = "the target changes stacks within traced calls: where two stacks are within 8 MiB of \
    each other, calls on one count as made by calls on the other, so paths and self times may be wrong. \
    Without --aggregate they are told apart";

/// Said if the open calls could not all be read.
const SOME_OPEN: &str =
    "so many threads began and ended that some calls that are open may be missing";

impl Session {
    /// Tells the programs how calls of these functions begin and end, before they have probes.
    pub(super) fn tell_counting(&self, functions: &[FuncId]) {
        for function in functions {
            self.tell_ends(*function, self.engine.functions()[function.index()].exit);
        }
    }

    /// Tells them how calls end from now on.
    pub(super) fn tell_counting_of(&self, changed: &[NewExit]) {
        changed.iter().for_each(|new| self.tell_ends(new.function, new.exit));
    }

    /// Tells them that no return probe sees calls of a function end from now on.
    pub(super) fn tell_moving(&self, function: FuncId) {
        self.tell_ends(function, ExitSeen::Never);
    }

    /// Returns the end of a report that is due. Counts do not tell when calls have ended: the report has
    /// all of them until now, so that is its end.
    pub(super) fn end_of_report(&self, due: Nanos) -> Nanos {
        self.kernel.counts().map_or(due, |counts| bpf::now().min(counts.until()).max(due))
    }

    fn tell_ends(&self, function: FuncId, exit: ExitSeen) {
        let info = &self.engine.functions()[function.index()];
        if let Some(counts) = self.kernel.left_out() {
            counts.know(function, info.entry_is_loop_head);
        }
        if let Some(counts) = self.kernel.counts() {
            let facts = CountedFacts {
                begins_a_loop: info.entry_is_loop_head,
                tail_calls_nest: info.tail_calls_nest(exit),
                exit,
            };
            counts.know(function, facts);
        }
    }

    /// Ends the time that is reported.
    pub(crate) fn end_time(&self, end: Nanos) {
        self.count_until(end);
        self.target.end_queues();
    }

    /// Lets no calls count that end later.
    pub(crate) fn count_until(&self, end: Nanos) {
        if let Some(counts) = self.kernel.counts() {
            counts.count_until(end);
        }
        if let Some(counts) = self.kernel.left_out() {
            counts.count_until(end);
        }
    }

    /// Takes in what was counted, and the calls that are open now.
    pub(super) fn take_counts(&mut self) -> anyhow::Result<()> {
        self.read_counts();
        let Some(counts) = self.kernel.counts() else { return Ok(()) };
        let open = counts.open()?;
        self.engine.set_counted_open(open.calls);
        self.progress.open_is_part = open.is_part;
        Ok(())
    }

    /// Takes in what was counted, if the last time is long ago.
    pub(super) fn read_counts_if_due(&mut self) {
        if bpf::now().since(self.progress.counts_read) >= PAUSE {
            self.read_counts();
        }
    }

    /// Takes in what was counted.
    pub(super) fn read_counts(&mut self) {
        if let Some(counts) = self.kernel.counts() {
            self.engine.take_counted(counts);
            self.progress.counts_read = bpf::now();
        }
    }

    /// Returns notes on calls of which no time is known, although they were seen.
    pub(super) fn counts_notes(&self) -> Vec<String> {
        let Some(counts) = self.kernel.counts() else { return Vec::new() };
        let uncounted = match counts.uncounted() {
            Ok(uncounted) => uncounted,
            Err(error) => {
                return vec![format!(
                    "the number of calls without a duration is not known: {error}"
                )];
            }
        };
        let paths = counts.sizes().paths - 1;
        let changes_stacks =
            uncounted.far_away > 0 || self.kernel.restored(RestoreReason::Switch) > 0;
        let doubts = [(changes_stacks, SWITCHES), (self.progress.open_is_part, SOME_OPEN)];
        let reasons = [
            (
                uncounted.paths_full,
                format!(
                    "there are more than {paths} call paths: a larger --spool has room for more, and \
                     fewer functions have fewer"
                ),
            ),
            (
                uncounted.threads_full,
                format!("more than {MOST_COUNTED_THREADS} threads have called traced functions"),
            ),
            (
                uncounted.too_deep,
                format!(
                    "they were inside {MOST_OPEN} other traced calls of their thread, the innermost of \
                     which has their time as its own"
                ),
            ),
            (
                uncounted.far_away,
                "their thread was on another stack than its open calls, as with coroutines: without \
                 --aggregate they are timed"
                    .to_owned(),
            ),
        ];
        let told = reasons.into_iter().filter(|(calls, _)| *calls > 0);
        let told = told.map(|(calls, why)| {
            let calls = counted(calls, "call was", "calls were");
            format!("{calls} counted without a time since the start, because {why}")
        });
        let doubts = doubts.into_iter().filter(|(is_so, _)| *is_so);
        let doubts = doubts.map(|(_, note)| note.to_owned());
        told.chain(doubts).collect()
    }
}
