//! Changes in how the ends of calls are seen, while they are being traced.
//!
//! If all probes are removed for a moment, calls begin and end unseen. A later end with the same
//! stack pointer would then pass for that of a call from before. So open calls end at the change.
//! If entries stay probed, open calls go on, and end at whatever sees it.

use crate::engine::Engine;
use crate::function::{ExitSeen, ProbeCost};
use crate::units::{FuncId, Nanos};

/// A function whose ends are seen in another way from a time on.
#[derive(Clone, Copy, Debug)]
pub struct NewExit {
    pub function: FuncId,
    pub exit: ExitSeen,
    /// The cost of its probes from then on, if that changes.
    pub probe: Option<ProbeCost>,
}

#[derive(Debug)]
pub(super) struct ExitChange {
    at: Nanos,
    functions: Vec<NewExit>,
    ends_open: bool,
}

impl Engine {
    /// Changes how the ends of these functions' calls are seen from `at` on, when nothing of them
    /// is probed. Calls that are open then end as untimed. Later calls of this have later times.
    pub fn change_exits(&mut self, at: Nanos, functions: Vec<NewExit>) {
        self.exit_changes.push_back(ExitChange { at, functions, ends_open: true });
    }

    /// The same where the entries stay probed: calls that are open then go on.
    pub fn change_exits_only(&mut self, at: Nanos, functions: Vec<NewExit>) {
        self.exit_changes.push_back(ExitChange { at, functions, ends_open: false });
    }

    /// Processes the events up to each change that is due, and makes it.
    pub(super) fn change_due_exits(&mut self, watermark: Nanos) {
        while self.exit_changes.front().is_some_and(|change| change.at <= watermark) {
            let Some(change) = self.exit_changes.pop_front() else { return };
            let ExitChange { at, functions, ends_open } = change;
            self.order.release(at.0, &mut self.tracker);
            if ends_open {
                self.forsake(&functions.iter().map(|new| new.function).collect(), at);
                self.tracker.given_up = at.0;
            }
            self.tracker.set_exits(functions);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{EngineConfig, ReportMeta};
    use crate::function::FunctionInfo;
    use crate::ingest::change::ProcessEvent;
    use crate::units::{Pid, Tid};
    use ctrace_common::{Change, Kind, Record};

    fn event(ts_ns: u64, probe: u32, kind: Kind, sp: u64) -> crate::ingest::event::Event {
        let record = Record { ts_ns, probe, sp, pid: 1, tid: 1, ..Record::default() };
        Record { kind: kind as u8, ..record }.into()
    }

    fn at_sites(function: FuncId, probe: Option<ProbeCost>) -> NewExit {
        NewExit { function, exit: ExitSeen::ByExitSites, probe }
    }

    /// A call that is open at the change is not ended by the end of a later one, whose beginning
    /// nobody saw, and functions that are not changed keep theirs.
    #[test]
    fn calls_that_are_open_at_a_change_are_untimed() {
        let mut engine = Engine::new(EngineConfig::default());
        let ids = ["outer", "changed"].map(|name| {
            let info = FunctionInfo { may_tail_jump: true, ..FunctionInfo::new(name, "program") };
            engine.add_function(info)
        });
        engine.push_events(
            0,
            &[
                event(10, 0, Kind::Enter, 900),
                event(20, 1, Kind::Enter, 800),
                event(30, 1, Kind::Return, 800),
                event(40, 1, Kind::Enter, 700),
                event(60, 1, Kind::ExitRet, 700),
                event(70, 1, Kind::Enter, 800),
                event(77, 1, Kind::ExitRet, 800),
                event(90, 0, Kind::Return, 900),
            ],
        );
        engine.change_exits(Nanos(50), vec![at_sites(ids[1], None)]);
        engine.advance(Nanos(45));
        assert_eq!(engine.functions()[1].exit, ExitSeen::ByReturnProbe);
        engine.advance(Nanos(100));
        assert_eq!(engine.functions()[1].exit, ExitSeen::ByExitSites);
        let report = engine.report(Nanos(100), ReportMeta::default());
        let [outer, changed] = &report.functions[..] else { panic!("two functions") };
        assert_eq!((outer.calls, outer.timed, outer.total_ns), (1, 1, Nanos(80)));
        assert_eq!((changed.calls, changed.timed, changed.untimed), (3, 2, 1));
        assert_eq!((changed.total_ns, changed.headless), (Nanos(17), 1));
    }

    /// A call whose end is not seen from a time on contains nothing later, but calls that seemed to be inside it
    /// and have ended. So calls end in order, and unions have all of them.
    #[test]
    fn a_call_without_an_end_ends_with_its_probes_or_with_what_ended_inside() {
        for (at, outer_ns) in [(30, 50), (90, 80)] {
            let mut engine = Engine::new(EngineConfig::default());
            let ids = ["outer", "inner", "next"]
                .map(|name| engine.add_function(FunctionInfo::new(name, "program")));
            engine.push_events(
                0,
                &[
                    event(10, 0, Kind::Enter, 900),
                    event(20, 1, Kind::Enter, 800),
                    event(60, 1, Kind::Return, 800),
                    event(120, 2, Kind::Enter, 700),
                ],
            );
            engine.advance(Nanos(130));
            engine.forsake(&[ids[0]].into(), Nanos(at));
            let report = engine.report(Nanos(140), ReportMeta::default());
            let [outer, inner, next] = &report.functions[..] else { panic!("three functions") };
            assert_eq!((outer.total_ns, outer.untimed), (Nanos(outer_ns), 1));
            assert_eq!((inner.total_ns, inner.active_ns), (Nanos(40), Nanos(40)));
            assert_eq!((outer.active_ns, next.total_ns), (outer.total_ns, Nanos(0)));
        }
    }

    /// The return address of a function that may leave by a jump was put back. What comes at its stack
    /// pointer later is no call of it.
    #[test]
    fn nothing_is_inside_a_call_whose_return_address_was_put_back() {
        for (restored, depth, total) in [(true, 1, 10), (false, 2, 71)] {
            let mut engine = Engine::new(EngineConfig::default());
            for name in ["catches", "next"] {
                let jumps =
                    FunctionInfo { may_tail_jump: true, ..FunctionInfo::new(name, "program") };
                engine.add_function(jumps);
            }
            let (enter, exit) = (Kind::Enter, Kind::Return);
            engine.push_events(0, &[event(10, 0, enter, 800), event(13, 1, enter, 700)]);
            if restored {
                engine.push_change(put_back(20, 600));
            }
            engine.push_events(0, &[event(50, 1, enter, 800), event(80, 1, exit, 800)]);
            if !restored {
                engine.push_events(0, &[event(81, 0, exit, 800)]);
            }
            engine.advance(Nanos(100));
            let report = engine.report(Nanos(100), ReportMeta::default());
            let deepest = report.paths.iter().map(|path| path.path.len()).max();
            assert_eq!(deepest, Some(2));
            let next: Vec<_> =
                report.paths.iter().filter(|path| &*path.path[0] == "next").collect();
            assert_eq!(next.len(), 2 - depth, "restored: {restored}");
            let [catches, ..] = &report.functions[..] else { panic!("two functions") };
            assert_eq!(catches.total_ns, Nanos(total), "restored: {restored}");
        }
    }

    fn put_back(at: u64, sp: u64) -> ProcessEvent {
        ProcessEvent {
            pid: Pid(1),
            tid: Tid(1),
            time: Nanos(at),
            lost_before: 0,
            change: Change::Restored { sp },
        }
    }

    /// An exception puts back all return addresses, and ends calls unseen. They went on until then.
    #[test]
    fn what_throws_has_its_time_until_then() {
        use ExitSeen::{ByExitSites, ByReturnProbe, Never};
        for (exit, sp, expected) in [
            (ByReturnProbe, 600, [55, 50]),
            (ByExitSites, 600, [55, 50]),
            (Never, 600, [5, 0]),
            // The stack shows that the innermost call has ended unseen before.
            (ByReturnProbe, 750, [5, 0]),
            (ByExitSites, 750, [5, 0]),
            // The stack pointer is not known: the kernel's list shows what is open.
            (ByReturnProbe, 0, [55, 50]),
            (ByExitSites, 0, [5, 0]),
        ] {
            let mut engine = Engine::new(EngineConfig::default());
            for name in ["catches", "throws"] {
                engine.add_function(FunctionInfo { exit, ..FunctionInfo::new(name, "program") });
            }
            engine
                .push_events(0, &[event(10, 0, Kind::Enter, 800), event(15, 1, Kind::Enter, 700)]);
            engine.push_change(put_back(65, sp));
            // The addresses were put back already, so nothing is known of this moment.
            engine.push_change(put_back(80, sp));
            engine.push_events(0, &[event(90, 0, Kind::Enter, 800)]);
            engine.advance(Nanos(100));
            let report = engine.report(Nanos(91), ReportMeta::default());
            let totals: Vec<u64> = report.functions.iter().map(|row| row.total_ns.0).collect();
            assert_eq!(totals, expected, "{exit:?} {sp}");
        }
    }

    /// What the thread does from the putting back until it is seen elsewhere may all be the cost of that.
    #[test]
    fn the_time_in_which_addresses_were_put_back_is_noted() {
        // Whether an event is seen inside the innermost call after that, and what is noted then.
        for (is_seen, of_throws) in [(false, 0), (true, 20)] {
            let mut engine = Engine::new(EngineConfig::default());
            for name in ["main", "catches", "throws", "cleans"] {
                let exit = ExitSeen::ByExitSites;
                engine.add_function(FunctionInfo { exit, ..FunctionInfo::new(name, "program") });
            }
            let (enter, exit) = (Kind::Enter, Kind::ExitRet);
            engine.push_events(
                0,
                &[event(5, 0, enter, 900), event(10, 1, enter, 800), event(15, 2, enter, 700)],
            );
            engine.push_change(put_back(65, 600));
            if is_seen {
                engine.push_events(0, &[event(80, 3, enter, 500), event(85, 3, exit, 500)]);
            }
            engine.push_events(
                0,
                &[
                    event(90, 3, enter, 750),
                    event(92, 3, exit, 750),
                    event(100, 1, exit, 800),
                    event(300, 0, exit, 900),
                ],
            );
            engine.advance(Nanos(400));
            let report = engine.report(Nanos(400), ReportMeta::default());
            let noted: Vec<_> = report.functions.iter().map(|row| row.restored).collect();
            let noted: Vec<_> =
                noted.iter().map(|it| (it.calls, it.total_ns.0, it.self_ns.0)).collect();
            let expected = [(1, 25, 0), (1, 25, 25), (1, of_throws, of_throws), (0, 0, 0)];
            assert_eq!(noted, expected, "seen inside: {is_seen}");
            let timed: Vec<u64> = report.functions.iter().map(|row| row.timed).collect();
            assert_eq!(timed[..3], [1, 1, 0]);
        }
    }

    /// A change of stacks is over when the other stack is seen, and so is an exception that the call which throws
    /// catches when that ends.
    #[test]
    fn what_puts_addresses_back_is_over_elsewhere() {
        let far = 900 + (1 << 40);
        for (next, sp, noted) in [(Kind::Enter, far, 25), (Kind::ExitRet, 900, 25)] {
            let mut engine = Engine::new(EngineConfig::default());
            for name in ["leaves", "other"] {
                let exit = ExitSeen::ByExitSites;
                engine.add_function(FunctionInfo { exit, ..FunctionInfo::new(name, "program") });
            }
            engine.push_events(0, &[event(5, 0, Kind::Enter, 900)]);
            engine.push_change(put_back(65, 600));
            let probe = u32::from(next == Kind::Enter);
            engine.push_events(0, &[event(90, probe, next, sp), event(200, 0, Kind::ExitRet, 900)]);
            engine.advance(Nanos(400));
            let report = engine.report(Nanos(400), ReportMeta::default());
            let row = &report.functions[0];
            assert_eq!((row.calls, row.restored.calls, row.restored.total_ns.0), (1, 1, noted));
        }
    }

    #[test]
    fn addresses_of_a_thread_without_calls_may_be_put_back() {
        let mut engine = Engine::new(EngineConfig::default());
        engine.push_change(put_back(20, 600));
        engine.advance(Nanos(100));
        assert!(engine.report(Nanos(100), ReportMeta::default()).functions.is_empty());
    }

    /// A call whose end both kinds of probes see ends once.
    #[test]
    fn a_late_return_is_no_other_end() {
        let mut engine = Engine::new(EngineConfig::default());
        let probe = Some(ProbeCost { call_ns: Nanos(2), ..ProbeCost::default() });
        let id =
            engine.add_function(FunctionInfo { probe, ..FunctionInfo::new("moved", "program") });
        engine.push_events(
            0,
            &[
                event(20, 0, Kind::Enter, 800),
                event(60, 0, Kind::ExitRet, 800),
                event(61, 0, Kind::Return, 800),
                event(70, 0, Kind::Enter, 800),
                event(73, 0, Kind::ExitRet, 800),
            ],
        );
        let cost = |call_ns| ProbeCost { call_ns: Nanos(call_ns), ..ProbeCost::default() };
        engine.change_exits_only(Nanos(50), vec![at_sites(id, Some(cost(5)))]);
        engine.advance(Nanos(100));
        let report = engine.report(Nanos(100), ReportMeta::default());
        let [moved] = &report.functions[..] else { panic!("one function") };
        assert_eq!((moved.calls, moved.timed, moved.headless), (2, 2, 0));
        assert_eq!(moved.total_ns, Nanos(43));
        // What a call costs now, which may be wrong by what it cost before.
        let cost = moved.probes.map(|probes| probes.cost);
        assert_eq!(cost.map(|it| (it.call_ns, it.error_ns)), Some((Nanos(5), Nanos(3))));
    }

    /// A call that does not count may have been reached by a jump out of one that goes on.
    #[test]
    fn what_an_unmet_call_shows_to_be_over_is_untimed() {
        for (jumps, ends) in [(true, (1, 0)), (false, (0, 1))] {
            let mut engine = Engine::new(EngineConfig::default());
            let outer = FunctionInfo { may_tail_jump: jumps, ..FunctionInfo::new("h", "program") };
            engine.add_function(outer);
            let condition = Some("n > 5".into());
            engine.add_function(FunctionInfo { condition, ..FunctionInfo::new("g", "program") });
            engine.push_events(
                0,
                &[
                    event(10, 0, Kind::Enter, 900),
                    // Left by an exception.
                    event(20, 1, Kind::Enter, 900),
                    event(25, 1, Kind::Enter, 800),
                    event(30, 1, Kind::Unmet, 900),
                    event(40, 1, Kind::Return, 900),
                    event(50, 0, Kind::Return, 900),
                ],
            );
            engine.advance(Nanos(100));
            let report = engine.report(Nanos(100), ReportMeta::default());
            let [h, g] = &report.functions[..] else { panic!("two functions") };
            assert_eq!((h.timed, h.untimed), ends, "jumps: {jumps}");
            assert_eq!((g.calls, g.timed, g.untimed, g.headless), (2, 0, 2, 0));
        }
    }

    /// An end without a beginning ends no call, if only calls that meet a condition have a
    /// beginning. It ends no call of another depth either.
    #[test]
    fn ends_of_calls_that_do_not_count_are_none() {
        for (end, has_condition) in
            [Kind::Return, Kind::ExitRet].map(|end| [(end, true), (end, false)]).concat()
        {
            let mut engine = Engine::new(EngineConfig::default());
            let exit = match end {
                Kind::Return => ExitSeen::ByReturnProbe,
                _ => ExitSeen::ByExitSites,
            };
            let condition = has_condition.then(|| "n > 5".into());
            let info = FunctionInfo { condition, exit, ..FunctionInfo::new("f", "program") };
            engine.add_function(info);
            engine.push_events(
                0,
                &[
                    event(10, 0, end, 900),
                    event(20, 0, Kind::Enter, 900),
                    event(30, 0, end, 800),
                    event(45, 0, end, 900),
                ],
            );
            engine.advance(Nanos(100));
            let report = engine.report(Nanos(100), ReportMeta::default());
            let row = &report.functions[0];
            let headless = if has_condition { 0 } else { 2 };
            assert_eq!((row.calls, row.timed, row.total_ns), (1, 1, Nanos(25)));
            assert_eq!(row.headless, headless, "{end:?}");
        }
    }
}
