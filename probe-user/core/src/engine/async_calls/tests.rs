//! Polls of threads to calls.

use crate::engine::{Engine, EngineConfig, ReportMeta};
use crate::function::FunctionInfo;
use crate::ingest::change::ProcessEvent;
use crate::report::Report;
use crate::units::{Nanos, Pid, Tid};
use ctrace_common::AsyncStep::{self, Begun, Completed, Dropped, Resumed};
use ctrace_common::{AsyncCall, Change, Kind, Record};

/// Functions are numbered: `outer`, `inner`, `other`.
struct Program {
    engine: Engine,
    lost: u16,
}

impl Program {
    fn new() -> Self {
        let mut engine = Engine::new(EngineConfig::default());
        for name in ["outer", "inner", "other"] {
            let info = FunctionInfo { is_async: true, ..FunctionInfo::new(name, "program") };
            engine.add_function(info);
        }
        Self { engine, lost: 0 }
    }

    fn event(&mut self, ts_ns: u64, tid: u32, kind: Kind, probe: u32, sp: u64) {
        let lost_before = std::mem::take(&mut self.lost);
        let kind = kind as u8;
        let record =
            Record { ts_ns, sp, pid: 1, tid, probe, kind, lost_before, ..Record::default() };
        self.engine.push_events(tid as usize, &[record.into()]);
    }

    /// Polls a call, from a function at this depth of the thread's stack.
    fn enter(&mut self, ts: u64, tid: u32, (func, id): (u32, u64), step: AsyncStep) {
        self.event(ts, tid, Kind::PollEnter, func, 900 - u64::from(func) * 10);
        if id > 0 {
            self.event(ts, tid, Kind::AsyncCall, func, AsyncCall::new(id, step).0);
        }
    }

    fn exit(&mut self, ts: u64, tid: u32, func: u32) {
        self.event(ts, tid, Kind::PollExit, func, 900 - u64::from(func) * 10);
    }

    fn end(&mut self, ts: u64, tid: u32, (func, id): (u32, u64), step: AsyncStep) {
        self.event(ts, tid, Kind::AsyncCall, func, AsyncCall::new(id, step).0);
    }

    fn report(&mut self) -> Report {
        self.engine.advance(Nanos(1_000_000));
        self.engine.report(Nanos(1_000_000), ReportMeta::default())
    }
}

/// Returns calls, timed ones, untimed ones and their time, of a function.
fn row(report: &Report, name: &str) -> (u64, u64, u64, u64) {
    let row = report.functions.iter().find(|row| &*row.name == name);
    row.map_or((0, 0, 0, 0), |row| (row.calls, row.timed, row.untimed, row.total_ns.0))
}

/// Returns each path with its calls and its time, those of async calls only.
fn paths(report: &Report) -> Vec<String> {
    let path = |path: &crate::report::PathReport| {
        let names: Vec<&str> = path.path.iter().map(|name| &**name).collect();
        format!("{} {} {}", names.join(" > "), path.calls, path.total_ns.0)
    };
    let mut paths: Vec<_> = report.paths.iter().map(path).collect();
    paths.retain(|path| !path.contains("(poll)"));
    paths.sort();
    paths
}

#[test]
fn a_call_lasts_from_its_first_poll_to_its_end_across_threads() {
    let mut program = Program::new();
    program.enter(100, 1, (0, 7), Begun);
    program.exit(110, 1, 0);
    // The ring of the second thread is released first.
    program.enter(400, 2, (0, 7), Resumed);
    program.exit(430, 2, 0);
    program.enter(600, 1, (0, 7), Resumed);
    program.exit(605, 1, 0);
    program.end(606, 1, (0, 7), Completed);
    let report = program.report();
    assert_eq!(row(&report, "outer"), (1, 1, 0, 505));
    assert_eq!(row(&report, "outer (poll)"), (3, 3, 0, 10 + 30 + 5));
    assert_eq!(row(&report, "[await]"), (2, 2, 0, 290 + 170));
    assert_eq!(paths(&report), ["outer 1 505", "outer > [await] 2 460"]);
    let names: Vec<&str> = report.threads.iter().map(|row| &*row.name).collect();
    assert_eq!(names, ["", "async 1", ""]);
}

#[test]
fn an_awaited_call_is_inside_the_one_that_awaits_it() {
    let mut program = Program::new();
    program.enter(100, 1, (0, 7), Begun);
    program.enter(102, 1, (1, 8), Begun);
    program.exit(108, 1, 1);
    program.exit(110, 1, 0);
    program.enter(400, 2, (0, 7), Resumed);
    program.enter(405, 2, (1, 8), Resumed);
    program.exit(410, 2, 1);
    program.end(411, 2, (1, 8), Completed);
    // The next one that it awaits.
    program.enter(412, 2, (2, 9), Begun);
    program.exit(415, 2, 2);
    program.end(416, 2, (2, 9), Completed);
    program.exit(430, 2, 0);
    program.end(431, 2, (0, 7), Completed);
    let report = program.report();
    assert_eq!(
        paths(&report),
        [
            "outer 1 330",
            "outer > inner 1 308",
            // From the end of the inner poll to its next beginning.
            "outer > inner > [await] 1 297",
            "outer > other 1 3",
        ]
    );
}

/// As `join!` does.
#[test]
fn calls_that_go_on_at_one_time_have_lanes_of_their_own() {
    let mut program = Program::new();
    program.enter(100, 1, (0, 7), Begun);
    for (ts, step) in [(110, Begun), (210, Resumed)] {
        program.enter(ts, 1, (1, 8), step);
        program.exit(ts + 5, 1, 1);
        if step == Resumed {
            program.end(ts + 5, 1, (1, 8), Completed);
        }
        program.enter(ts + 20, 1, (2, 9), step);
        program.exit(ts + 30, 1, 2);
        if step == Begun {
            program.exit(150, 1, 0);
            program.enter(200, 1, (0, 7), Resumed);
        }
    }
    program.end(241, 1, (2, 9), Completed);
    program.exit(250, 1, 0);
    program.end(250, 1, (0, 7), Completed);
    let report = program.report();
    assert_eq!(
        paths(&report),
        [
            "other 1 110",
            "other > [await] 1 90",
            "outer 1 150",
            "outer > inner 1 105",
            "outer > inner > [await] 1 95",
        ]
    );
}

#[test]
fn a_dropped_call_has_no_duration() {
    let mut program = Program::new();
    program.enter(100, 1, (0, 7), Begun);
    program.enter(102, 1, (1, 8), Begun);
    program.exit(108, 1, 1);
    program.exit(110, 1, 0);
    program.end(300, 3, (1, 8), Dropped);
    program.end(301, 3, (0, 7), Dropped);
    // The lane is free again.
    program.enter(400, 1, (2, 9), Begun);
    program.exit(408, 1, 2);
    program.end(409, 1, (2, 9), Completed);
    let report = program.report();
    // As of every call whose end is not seen, the time until then is in the total, and in nothing else.
    assert_eq!(row(&report, "outer"), (1, 0, 1, 201));
    assert_eq!(row(&report, "inner"), (1, 0, 1, 198));
    assert_eq!(row(&report, "other"), (1, 1, 0, 8));
    let lanes = report.threads.iter().filter(|row| row.name.starts_with("async"));
    assert_eq!(lanes.count(), 1);
}

#[test]
fn polls_of_calls_that_began_unseen_are_polls_alone() {
    let mut program = Program::new();
    // The program did not know of ctrace, or this ctrace was not there.
    program.enter(100, 1, (0, 0), Resumed);
    program.exit(110, 1, 0);
    program.enter(200, 1, (0, 7), Resumed);
    program.exit(210, 1, 0);
    program.end(211, 1, (0, 7), Completed);
    let report = program.report();
    assert_eq!(row(&report, "outer"), (0, 0, 0, 0));
    assert_eq!(row(&report, "outer (poll)"), (2, 2, 0, 20));
    assert_eq!(report.functions[0].headless, 0);
}

#[test]
fn a_loss_costs_the_durations_of_what_is_open() {
    let mut program = Program::new();
    for (at, id) in [(100, 7), (1_000, 8)] {
        program.enter(at, 1, (0, id), Begun);
        program.exit(at + 10, 1, 0);
        program.engine.advance(Nanos(at + 50));
        // Polls of any call may be among the lost events of any thread.
        program.lost = u16::from(id == 7);
        program.enter(at + 100, 2, (0, 99), Resumed);
        program.exit(at + 110, 2, 0);
        program.enter(at + 200, 1, (0, id), Resumed);
        program.exit(at + 210, 1, 0);
        program.end(at + 210, 1, (0, id), Completed);
        program.engine.advance(Nanos(at + 300));
    }
    assert_eq!(row(&program.report(), "outer"), (2, 1, 1, 310), "the first ends at the loss");
}

#[test]
fn a_process_that_ends_leaves_its_calls() {
    let mut program = Program::new();
    program.enter(100, 1, (0, 7), Begun);
    program.exit(110, 1, 0);
    let change = Change::ProcessExit { status: 0, comm: [0; 16] };
    let (pid, tid, time) = (Pid(1), Tid(1), Nanos(500));
    program.engine.push_change(ProcessEvent { pid, tid, time, lost_before: 0, change });
    assert_eq!(row(&program.report(), "outer"), (1, 0, 1, 0));
    assert_eq!(program.engine.tracker.async_calls.followed, 0);
}

/// A program may begin any number of calls and end none.
#[test]
fn calls_beyond_the_bound_are_counted() {
    let mut program = Program::new();
    let calls = 100_000;
    for id in 1..=calls {
        program.enter(id * 2, 1, (0, id), Begun);
        program.exit(id * 2 + 1, 1, 0);
    }
    for id in 1..=calls {
        program.enter(500_000 + id * 2, 1, (0, id), Resumed);
        program.exit(500_000 + id * 2 + 1, 1, 0);
        program.end(500_000 + id * 2 + 1, 1, (0, id), Completed);
    }
    let report = program.report();
    let (followed, beyond) = (super::MOST_CALLS as u64, calls - super::MOST_CALLS as u64);
    let (counted, timed, untimed, _) = row(&report, "outer");
    assert_eq!((counted, timed, untimed), (calls, followed, beyond));
    let note = format!("{beyond} calls of async functions were only counted");
    let seen = program.engine.async_note().expect("a note");
    assert!(seen.starts_with(&note), "{seen}");
    assert_eq!(row(&report, "outer (poll)").0, 2 * calls);
    assert!(program.engine.tracker.threads.iter().count() as u64 <= followed + 3);
}

/// The data may say anything.
#[test]
fn steps_that_make_no_sense_are_harmless() {
    let mut program = Program::new();
    program.end(10, 1, (0, 7), Completed);
    program.end(11, 1, (0, 7), Begun);
    program.end(12, 1, (0, 7), Begun);
    program.exit(13, 1, 0);
    program.enter(14, 1, (1, 8), Begun);
    program.end(15, 2, (1, 8), Resumed);
    program.end(16, 2, (1, 8), Completed);
    program.exit(17, 1, 1);
    program.end(18, 1, (1, 8), Dropped);
    let report = program.report();
    assert_eq!(row(&report, "outer").0, 2);
    assert_eq!(row(&report, "inner"), (1, 1, 0, 2));
}

/// The end of a poll was lost: what comes later on that thread is not inside its call.
#[test]
fn nothing_is_inside_a_call_whose_polls_were_lost() {
    let mut program = Program::new();
    program.enter(100, 1, (0, 1), Begun);
    program.lost = 3;
    for turn in 0..3 {
        let ts = 1_000 + turn * 100;
        program.enter(ts, 1, (0, 7 + turn), Begun);
        program.enter(ts + 10, 1, (1, 20 + turn), Begun);
        program.exit(ts + 20, 1, 1);
        program.end(ts + 21, 1, (1, 20 + turn), Completed);
        program.exit(ts + 30, 1, 0);
        program.end(ts + 31, 1, (0, 7 + turn), Completed);
    }
    let report = program.report();
    let depths = report.paths.iter().map(|path| path.path.len());
    assert_eq!(depths.max(), Some(2), "{:?}", report.paths);
    let (calls, timed, untimed, _) = row(&report, "outer");
    assert_eq!((calls, timed, untimed), (4, 3, 1));
    let lanes = report.threads.iter().filter(|thread| thread.name.starts_with("async"));
    assert_eq!(lanes.count(), 1, "the lane of the lost call is used again");
}

/// A future that holds another one drops it after it completed, as `timeout(query())` does.
#[test]
fn a_call_has_completed_although_its_future_holds_one_that_has_not() {
    let mut program = Program::new();
    program.enter(100, 1, (0, 1), Begun);
    program.enter(110, 1, (1, 2), Begun);
    program.exit(120, 1, 1);
    program.exit(130, 1, 0);
    program.enter(200, 1, (0, 1), AsyncStep::Resumed);
    program.exit(230, 1, 0);
    program.end(233, 1, (0, 1), Completed);
    program.end(236, 1, (1, 2), Dropped);
    let report = program.report();
    assert_eq!(row(&report, "outer"), (1, 1, 0, 130));
    let (calls, timed, untimed, _) = row(&report, "inner");
    assert_eq!((calls, timed, untimed), (1, 0, 1));
}

#[test]
fn a_program_that_only_begins_polls_takes_bounded_memory() {
    let mut program = Program::new();
    for turn in 0..20_000 {
        program.event(100 + turn, 1, Kind::PollEnter, 0, 900_000 - turn);
    }
    program.enter(50_000, 1, (0, 5), Begun);
    program.exit(50_100, 1, 0);
    program.end(50_101, 1, (0, 5), Completed);
    assert_eq!(row(&program.report(), "outer"), (1, 1, 0, 100));
}
