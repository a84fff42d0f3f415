//! Calls that make no events, because they are deeper than `--depth` or shorter than `--min-duration`: the
//! programs count them.

use super::Session;
use crate::{
    bpf::{self, Held},
    ui::text::units::{Digits, count, counted, time},
};
use ctrace_core::{engine::LeftOut, report::render::clean::clean, units::Nanos};

/// Functions that a note names.
const NAMED: usize = 3;

/// The time between two readings of the calls whose entries are held.
const PAUSE: Nanos = Nanos::from_millis(500);

impl Session {
    /// Takes the counts of the programs.
    pub(super) fn count_left_out(&mut self) {
        let Self { kernel, engine, .. } = self;
        if let Some(counts) = kernel.left_out() {
            engine.take_left_out(|function| counts.of(function));
        }
    }

    /// Takes the calls in that go on and whose entries are held, before a report that is due, and now and
    /// then for a recording.
    pub(super) fn take_held_if_due(&mut self, settled: Nanos) {
        let since = bpf::now().since(self.progress.held_read);
        if self.kernel.left_out().is_some()
            && (since >= PAUSE || self.delivery.due(settled).is_some())
        {
            self.take_held(Held::Long);
        }
    }

    /// Takes these in.
    fn take_held(&mut self, which: Held) {
        let Some(counts) = self.kernel.left_out() else { return };
        match counts.held(which) {
            Ok(held) => self.engine.push_held(held),
            Err(error) => tracing::warn!("calls that go on may be missing: {error}"),
        }
        self.progress.held_read = bpf::now();
    }

    /// Takes in all calls that are open, as no call is counted any more.
    pub(crate) fn take_all_held(&mut self) {
        self.take_held(Held::All);
    }

    /// Has the threads give up their open calls, as functions have lost their probes. Returns when that was:
    /// the entries that were held then are taken in.
    pub(super) fn give_up_open(&mut self) -> Nanos {
        self.kernel.left_out().iter().for_each(|counts| counts.give_up_open());
        let at = bpf::now();
        self.take_held(Held::GivenUp);
        at
    }

    /// Returns notes on these calls.
    pub(super) fn left_out_notes(&self) -> Vec<String> {
        let functions = self.engine.functions();
        let name = |id: usize| clean(&functions[id].name).into_owned();
        let made = match self.kernel.counts() {
            Some(_) => "stayed out of all rows",
            None => "made no events",
        };
        left_out_notes(self.engine.left_out(), made, name)
    }
}

/// `made`: says of calls that they are left out.
fn left_out_notes(all: &[LeftOut], made: &str, name: impl Fn(usize) -> String) -> Vec<String> {
    let deep = most_of(all, |of| of.too_deep, &name).map(|(calls, functions)| {
        let calls = counted(calls, "deeper call", "deeper calls");
        format!("--depth: {calls} {made} since the start: {functions}")
    });
    let short = most_of(all, |of| of.short, &name).map(|(calls, functions)| {
        let calls = counted(calls, "shorter call", "shorter calls");
        let sum = Nanos(all.iter().map(|of| of.short_ns).sum());
        let sum = time(sum, Digits::Short);
        format!("--min-duration: {calls}, {sum} in all, {made} since the start: {functions}")
    });
    deep.into_iter().chain(short).collect()
}

/// Returns the sum of a count, and names the functions that have the most of it, unless it is 0.
fn most_of(
    all: &[LeftOut],
    of: impl Fn(&LeftOut) -> u64,
    name: impl Fn(usize) -> String,
) -> Option<(u64, String)> {
    let mut some: Vec<_> = all.iter().map(of).enumerate().filter(|(_, calls)| *calls > 0).collect();
    some.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
    let sum = |some: &[(usize, u64)]| some.iter().map(|(_, calls)| calls).sum::<u64>();
    let named = some.iter().take(NAMED);
    let mut told: Vec<_> =
        named.map(|(id, calls)| format!("{} of {}", count(*calls), name(*id))).collect();
    if some.len() > NAMED {
        told.push(format!("{} of others", count(sum(&some[NAMED..]))));
    }
    (!some.is_empty()).then(|| (sum(&some), told.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_functions_with_the_most_calls_are_named() {
        let notes = |of: &[(u64, u64)]| {
            let left_out = |&(too_deep, short): &(u64, u64)| LeftOut {
                too_deep,
                short,
                short_ns: 500 * short,
                ..LeftOut::default()
            };
            let all: Vec<_> = of.iter().map(left_out).collect();
            left_out_notes(&all, "made no events", |id| format!("f{id}"))
        };
        assert!(notes(&[(0, 0), (0, 0)]).is_empty());
        assert_eq!(
            notes(&[(0, 0), (1, 4)]),
            [
                "--depth: 1 deeper call made no events since the start: 1 of f1",
                "--min-duration: 4 shorter calls, 2.00 µs in all, made no events since the start: 4 of f1"
            ]
        );
        assert_eq!(
            notes(&[(7, 0), (2_000, 0), (9, 0), (1, 0), (2, 0)]),
            [
                "--depth: 2,019 deeper calls made no events since the start: 2,000 of f1, 9 of f2, 7 of f0, \
              3 of others"
            ]
        );
    }
}
