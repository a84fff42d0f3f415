//! Calls whose ends nothing but the order of a thread's events tells: pairs of USDT probes that are
//! in different functions, so that the stack pointer at the end says nothing about that at the start.
//!
//! A function of a language calls itself, so an end belongs to the latest call that is open. Other
//! calls do not nest. If one begins while another is open, either the end of that one was not seen,
//! or they overlap, and then it is not known which of them an end belongs to. So no duration of
//! them is told, until as many ends have come as there were starts.

use super::{Place, Stacks};
use crate::engine::ledger::Ledger;
use crate::engine::region::Regions;
use crate::units::{FuncId, Pid};

/// The limit of calls inside each other. Beyond it, ends are missing.
const DEEPEST: u64 = 1 << 12;

/// Stands for the stack pointer of the outermost call.
const OUTERMOST: u64 = 1 << 62;

impl Stacks {
    /// Begins a call. Returns true if it counts.
    pub(crate) fn enter_by_order(
        &mut self,
        func: FuncId,
        ts: u64,
        nests: bool,
        ledger: &mut Ledger,
    ) -> bool {
        if self.stacks.is_empty() {
            self.turn_to(Pid(0), (OUTERMOST, ts), &Regions::default(), ledger);
        }
        let overlaps = !nests && self.depth() > 0;
        if overlaps {
            // After a loss, its end is what was lost, most likely.
            let is_lossy = self.owed == 0 && self.innermost_is_damaged();
            self.owed += u64::from(!is_lossy);
            self.end_top(self.current, ledger, self.last, false);
        }
        let is_full = self.depth() == DEEPEST;
        if is_full {
            self.end_top(self.current, ledger, self.last, false);
        }
        let sp = OUTERMOST - self.depth();
        let counts = self.push(Place { func, sp, ts, is_scope: true, site: 0 }, 0, ledger);
        if overlaps || is_full || self.owed > 0 {
            self.damage();
        }
        counts
    }

    /// Ends the latest call that is open.
    pub(crate) fn exit_by_order(&mut self, func: FuncId, ts: u64, ledger: &mut Ledger) {
        if self.depth() > 0 {
            return self.end_top(self.current, ledger, ts, true);
        }
        self.owed = self.owed.saturating_sub(1);
        if self.selected {
            ledger.headless(func);
        }
    }

    /// Ends the latest call, if there is one. `timed`: its duration is known.
    pub(crate) fn leave_by_order(&mut self, ts: u64, timed: bool, ledger: &mut Ledger) {
        if self.depth() > 0 {
            self.end_top(self.current, ledger, ts, timed);
        }
    }

    /// Forgets the ends that may still come: they will not be seen.
    pub(crate) fn owe_nothing(&mut self) {
        self.owed = 0;
    }

    pub(crate) fn depth(&self) -> u64 {
        self.stacks.get(self.current).map_or(0, |stack| stack.frames.len() as u64)
    }

    fn innermost_is_damaged(&self) -> bool {
        let stack = self.stacks.get(self.current);
        stack.and_then(|stack| stack.frames.last()).is_some_and(|frame| frame.damaged)
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::{Engine, EngineConfig, ReportMeta};
    use crate::function::{ByOrder, FunctionInfo};
    use crate::units::Nanos;
    use ctrace_common::{Kind, Record};

    /// Events are `+` and `-` for start and end, at 10, 21, 33, 46 and so on, `!` for one that comes
    /// after a loss. Checks the calls, the timed ones and their total, the untimed ones, and ends
    /// without a start.
    #[track_caller]
    fn check(events: &str, nests: bool, expected: (u64, u64, u64, u64, u64)) {
        let mut engine = Engine::new(EngineConfig::default());
        engine.add_function(FunctionInfo {
            by_order: Some(if nests { ByOrder::Nested } else { ByOrder::InTurn }),
            ..FunctionInfo::new("pair", "program")
        });
        let (mut ts_ns, mut step, mut lost_before) = (0, 10, 0);
        for event in events.bytes() {
            let kind = match event {
                b'!' => {
                    lost_before = 1;
                    continue;
                }
                b'+' => Kind::PairEnter,
                _ => Kind::PairExit,
            };
            ts_ns += step;
            step += 1;
            // The stack pointer tells nothing.
            let sp = 0x7000 + (ts_ns * 7919) % 4096;
            let record = Record { ts_ns, sp, pid: 1, tid: 1, lost_before, ..Record::default() };
            engine.push_events(0, &[Record { kind: kind as u8, ..record }.into()]);
            lost_before = 0;
        }
        let end = Nanos(ts_ns + 100);
        engine.advance(end);
        let report = engine.report(end, ReportMeta::default());
        let row = &report.functions[0];
        let seen = (row.calls, row.timed, row.total_ns.0, row.untimed, row.headless);
        assert_eq!(seen, expected, "{events}: calls, timed, total, untimed, headless");
    }

    #[test]
    fn starts_and_ends_in_turn_are_calls() {
        check("+-", false, (1, 1, 11, 0, 0));
        check("+-+-", false, (2, 2, 11 + 13, 0, 0));
        check("-+-", false, (1, 1, 12, 0, 1));
        // The last one is open.
        check("+-+", false, (2, 1, 11, 0, 0));
    }

    #[test]
    fn calls_that_may_overlap_have_no_duration() {
        // Both ends may belong to either.
        check("++--", false, (2, 0, 0, 2, 1));
        check("++--+-", false, (3, 1, 15, 2, 1));
        // They follow each other like this for ever.
        check("++-+-+--", false, (4, 0, 0, 4, 1));
    }

    #[test]
    fn functions_call_themselves() {
        check("++--", true, (2, 2, 12 + (11 + 12 + 13), 0, 0));
        check("+-++--", true, (3, 3, 11 + 14 + (13 + 14 + 15), 0, 0));
    }

    #[test]
    fn calls_without_ends_are_not_kept_for_ever() {
        let starts = "+".repeat(5_000);
        check(&starts, true, (5_000, 0, 0, 904, 0));
        // Which of them an end belongs to is not known any more.
        check(&format!("{starts}--"), true, (5_000, 0, 4_129_095, 906, 0));
    }

    #[test]
    fn a_loss_costs_the_durations_around_it_alone() {
        check("+!-+-", false, (2, 1, 13, 1, 0));
        // The end of the first one may be what was lost, or it may come yet.
        check("+!+-+-", false, (3, 1, 14, 2, 0));
        check("+!-", true, (1, 0, 0, 1, 0));
    }
}
