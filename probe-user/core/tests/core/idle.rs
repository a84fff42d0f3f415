//! Tests how much of a function's self time is told to be no work, live and from a recording: only as much as
//! the threads that called it cannot have worked.

use crate::support::*;
use ctrace_common::Kind;
use ctrace_core::engine::{EngineConfig, ReportMeta};
use ctrace_core::recording::replay::{Query, report};
use ctrace_core::recording::{End, Recording, Start, Writer};
use ctrace_core::report::{Report, render::json};

const MS: u64 = 1_000_000;
const F: u32 = 0;
const G: u32 = 1;

/// A call of a thread. Times are in milliseconds.
fn call(function: u32, tid: u32, from: u64, to: u64) -> Vec<(u64, Vec<u8>)> {
    let both = [enter(function, 900, from * MS), ret(function, 900, to * MS)];
    both.map(|event| (event.ts, event.on(tid).bytes().into())).into()
}

/// The end of a thread, after so many milliseconds of work.
fn exit(tid: u32, at: u64, work: u64) -> Vec<(u64, Vec<u8>)> {
    vec![(at * MS, control(Kind::ThreadExit, at * MS, tid, "gone", [work * MS, 0]))]
}

/// Returns the report on these records, and the one on a recording of them.
fn reports(records: &[Vec<(u64, Vec<u8>)>]) -> [Report; 2] {
    let functions = [function("f"), function("g")];
    let config = EngineConfig { keep: true, ..EngineConfig::default() };
    let mut engine = engine(&functions, config);
    engine.begin(end(0));
    let mut records = records.concat();
    records.sort_by_key(|(at, _)| *at);
    records.iter().for_each(|(_, bytes)| engine.push(0, bytes));
    let to = end(9_000 * MS);
    engine.advance(to);
    engine.end_chunk(to);
    let mut writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
    let blocks = engine.take_blocks();
    blocks.iter().for_each(|block| writer.write(block).expect("memory takes all"));
    let ended = End { end_ns: to, ..End::default() };
    let recording = Recording::open(writer.finish(&ended).expect("memory takes all"));
    let live = engine.report(to, ReportMeta::default());
    [live, report(&recording.expect("a recording"), &Query::default(), 0.0)]
}

/// Checks the idle time of both functions, in milliseconds.
#[track_caller]
fn check(records: &[Vec<(u64, Vec<u8>)>], expected: [u64; 2]) {
    for report in reports(records) {
        let idle = [0, 1].map(|at| report.functions[at].idle_ns.0 / MS);
        assert_eq!(idle, expected);
        let text = json::to_line(&report);
        assert_eq!(text.contains("\"idle_ns\""), expected != [0, 0], "{text}");
    }
}

/// The kernel may not have counted 10 ms of a thread that ends.
#[test]
fn self_time_is_idle_beyond_the_work_of_its_thread() {
    check(&[call(F, 7, 1, 1_001), exit(7, 1_002, 5)], [985, 0]);
    check(&[call(F, 7, 1, 1_001), exit(7, 1_002, 1_000)], [0, 0]);
    check(&[call(F, 7, 1, 1_001), exit(7, 1_002, 600)], [390, 0]);
    // Of two functions, each may have done all of the work.
    let both = [call(F, 7, 1, 401), call(G, 7, 501, 801), exit(7, 1_002, 90)];
    check(&both, [300, 200]);
}

#[test]
fn all_threads_that_called_it_count() {
    let two = [call(F, 7, 1, 1_001), call(F, 8, 1, 501)];
    let [first, second] = [exit(7, 1_002, 40), exit(8, 600, 400)];
    check(&[two.concat(), first.clone(), second], [1_500 - 50 - 410, 0]);
    // The second may have worked all the time, and more in calls that were not seen.
    check(&[two.concat(), first.clone()], [0, 0]);
    check(&[two.concat(), first, exit(8, 600, 0)], [0, 0]);
}

/// The system gives the id of a thread to another one.
#[test]
fn threads_with_one_id_are_told_apart() {
    let first = [call(F, 7, 1, 1_001), exit(7, 1_002, 40)].concat();
    let second = [call(G, 7, 2_000, 3_000), exit(7, 3_001, 990)].concat();
    check(&[first.clone(), second.clone()], [950, 0]);
    let again = [call(F, 7, 2_000, 3_000), exit(7, 3_001, 990)].concat();
    check(&[first, again], [2_000 - 50 - 1_000, 0]);
}

/// A thread that executes a program goes on under the id of the first one. The work of that one is not known.
#[test]
fn a_thread_that_has_taken_over_an_id_has_no_known_work() {
    let exec = |by| vec![(1_500 * MS, control(Kind::Exec, 1_500 * MS, 7, "other", [by, 0]))];
    let around = |by| [call(F, 7, 1, 1_001), exec(by), exit(7, 2_000, 40)];
    check(&around(7), [950, 0]);
    check(&around(8), [0, 0]);
}
