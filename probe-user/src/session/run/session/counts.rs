//! Calls that the eBPF programs count themselves: what a session tells them, and what it reads.

use super::Session;
use crate::{bpf, ui::text::units::counted};
use ctrace_common::{MOST_COUNTED_THREADS, MOST_OPEN};
use ctrace_core::{
    engine::NewExit,
    function::ExitSeen,
    units::{FuncId, Nanos},
};

/// The time between two readings. Budgets and the status line know no calls since the last one.
const PAUSE: Nanos = Nanos::from_millis(1_000);

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

    fn tell_ends(&self, function: FuncId, exit: ExitSeen) {
        if let Some(counts) = self.kernel.counts() {
            let info = &self.engine.functions()[function.index()];
            counts.know(function, info.entry_is_loop_head, info.tail_calls_nest(exit));
        }
    }

    /// Lets no calls count that end later.
    pub(crate) fn count_until(&self, end: Nanos) {
        if let Some(counts) = self.kernel.counts() {
            counts.count_until(end);
        }
    }

    /// Takes in what was counted, and the calls that are open now.
    pub(super) fn take_counts(&mut self) -> anyhow::Result<()> {
        let Some(counts) = self.kernel.counts() else { return Ok(()) };
        self.engine.take_counted(counts);
        self.engine.set_counted_open(counts.open()?);
        self.progress.counts_read = bpf::now();
        Ok(())
    }

    /// Takes in what was counted, if the last time is long ago.
    pub(super) fn take_counts_if_due(&mut self) {
        if let Some(counts) = self.kernel.counts()
            && bpf::now().since(self.progress.counts_read) >= PAUSE
        {
            self.engine.take_counted(counts);
            self.progress.counts_read = bpf::now();
        }
    }

    /// Returns notes on calls of which no time is known, although they were seen.
    pub(super) fn counts_notes(&self) -> Vec<String> {
        let Some(counts) = self.kernel.counts() else { return Vec::new() };
        let uncounted = match counts.uncounted() {
            Ok(uncounted) => uncounted,
            Err(error) => return vec![format!("calls without a time cannot be told: {error}")],
        };
        let paths = counts.sizes().paths - 1;
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
                format!("they were inside {MOST_OPEN} other traced calls of their thread"),
            ),
            (
                uncounted.far_away,
                "their thread was on another stack than its open calls, as with coroutines: without \
                 --aggregate they are timed"
                    .to_owned(),
            ),
        ];
        let told = reasons.into_iter().filter(|(calls, _)| *calls > 0);
        told.map(|(calls, why)| {
            let calls = counted(calls, "call was", "calls were");
            format!("{calls} counted without a time since the start, because {why}")
        })
        .collect()
    }
}
