//! Tests that each wait has the one who ended it.

use crate::support::*;
use ctrace_common::WaitState::{Interruptible, Preempted, Woken};
use ctrace_common::{Cause, Kind, NO_SYSCALL, WaitState, WokenFrom};
use ctrace_core::engine::{Engine, EngineConfig};
use ctrace_core::formats::{Export, Format, Options};
use ctrace_core::recording::replay::{Query, by_values_of, report_with};
use ctrace_core::recording::{End, Recording, Start, Writer};
use ctrace_core::report::render::RowKind;
use ctrace_core::report::render::csv;
use ctrace_core::report::render::rows::RowChoice;
use ctrace_core::report::{Extras, Report};
use ctrace_core::units::{FuncId, Nanos};

const MAIN: u32 = 1;
const SERVE: u32 = 2;
const WAIT: u32 = 3;

const FUTEX: u16 = 202;
const READ: u16 = 0;

/// The threads that wait, and those that wake them.
const FIRST: u32 = PID;
const SECOND: u32 = 101;
const STRANGER: u32 = 7;

fn wait(state: WaitState, syscall: u16, tid: u32, ts: u64) -> Event {
    Event { kind: Kind::WaitBegin, ..enter(Cause::new(state, syscall).0, 0, ts) }.on(tid)
}

fn woken(tid: u32, ts: u64) -> Event {
    wait(Woken, NO_SYSCALL, tid, ts)
}

fn end_of_wait(tid: u32, ts: u64) -> Event {
    let cause = Cause::new(Preempted, NO_SYSCALL).0;
    Event { kind: Kind::WaitEnd, ..enter(cause, 0, ts) }.on(tid)
}

/// A session with wakers, and its recording.
struct Trace {
    engine: Engine,
    writer: Writer<Vec<u8>>,
}

impl Trace {
    fn new() -> Self {
        let config = EngineConfig {
            waits: true,
            wakers: true,
            record: true,
            rings: 2,
            ..EngineConfig::default()
        };
        // The first function is that of waits for a processor.
        let engine = engine(&["main", "serve", "wait"].map(function), config);
        let writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
        Self { engine, writer }
    }

    fn push(&mut self, events: &[Event]) -> &mut Self {
        events.iter().for_each(|event| self.engine.push(0, &event.bytes()));
        self
    }

    /// Pushes the record of a wake through another ring. `waker`: its process, its thread and the name of
    /// that.
    fn wake(
        &mut self,
        ts: u64,
        tid: u32,
        (pid, waker, name): (u32, u32, &str),
        from: WokenFrom,
    ) -> &mut Self {
        let woken = u64::from(PID) | u64::from(tid) << 32;
        let mut bytes = control(Kind::Wake, ts, waker, name, [woken, from as u64]);
        bytes[16..20].copy_from_slice(&pid.to_le_bytes());
        self.engine.push(1, &bytes);
        self
    }

    fn chunk(&mut self, to: u64) -> &mut Self {
        self.engine.advance(Nanos(to));
        self.engine.end_chunk(Nanos(to));
        for block in self.engine.take_blocks() {
            self.writer.write(&block).expect("memory takes all");
        }
        self
    }

    fn end(mut self, to: u64) -> Recording {
        self.chunk(to);
        let end = End { end_ns: Nanos(to), ..End::default() };
        let bytes = self.writer.finish(&end).expect("memory takes all");
        Recording::open(bytes).expect("it was just written")
    }
}

fn report(recording: &Recording, most: usize) -> Report {
    let extras = Extras { wakers: Some(most), slowest_calls: Some(9), ..Extras::default() };
    report_with(recording, &Query::default(), meta_with(extras))
}

/// Returns a line for each row of the report: who waited for what, who ended it, how often and how long.
fn rows(report: &Report) -> Vec<String> {
    let wakers = report.wakers.as_ref().expect("they were asked for");
    let name = |at: usize| &report.functions[at].name;
    let rows = wakers.rows.iter().map(|row| {
        let function = row.function.map_or("?", |at| name(at));
        let (waker, of) = (&row.waker, row.of);
        format!("{function} {} {waker}: {} {}", name(row.wait), of.waits, of.total_ns.0)
    });
    let others = wakers.others.map(|of| format!("others: {} {}", of.waits, of.total_ns.0));
    rows.chain(others).collect()
}

/// One thread serves another one, which waits for a lock in `wait`; a stranger and a timer end waits, too.
fn trace() -> Trace {
    let mut trace = Trace::new();
    trace
        .push(&[enter(MAIN, 900, 10).on(SECOND), enter(WAIT, 800, 12)])
        .push(&[wait(Interruptible, FUTEX, FIRST, 20), enter(SERVE, 850, 30).on(SECOND)])
        .wake(40, FIRST, (PID, SECOND, "worker-3"), WokenFrom::Thread)
        .push(&[woken(FIRST, 43), end_of_wait(FIRST, 44), ret(SERVE, 850, 45).on(SECOND)])
        .push(&[wait(Interruptible, READ, FIRST, 50)])
        .wake(120, FIRST, (PID, SECOND, "worker-3"), WokenFrom::Thread)
        .push(&[woken(FIRST, 121), end_of_wait(FIRST, 122), ret(MAIN, 900, 125).on(SECOND)])
        .push(&[wait(Interruptible, READ, FIRST, 130)])
        .wake(133, FIRST, (STRANGER, STRANGER, "cat"), WokenFrom::Thread)
        .push(&[woken(FIRST, 137), end_of_wait(FIRST, 138), wait(Interruptible, FUTEX, FIRST, 140)])
        .wake(145, FIRST, (0, 0, ""), WokenFrom::Interrupt)
        .push(&[woken(FIRST, 151), end_of_wait(FIRST, 152), wait(Interruptible, FUTEX, FIRST, 160)])
        .wake(165, FIRST, (PID, SECOND, "worker-3"), WokenFrom::Thread)
        .push(&[woken(FIRST, 165 + 8), end_of_wait(FIRST, 175), ret(WAIT, 800, 180)]);
    trace
}

const WHOLE: [&str; 5] = [
    "wait [blocked: read] main (worker-3): 1 71",
    "wait [blocked: futex] serve (worker-3): 1 23",
    "wait [blocked: futex] - (worker-3): 1 13",
    "wait [blocked: futex] [interrupt]: 1 11",
    "wait [blocked: read] - (cat, process 7): 1 7",
];

#[test]
fn a_wait_has_the_innermost_function_of_who_ended_it() {
    let trace = trace();
    assert_eq!(trace.engine.unknown_wakers(), 0);
    let recording = trace.end(200);
    let all = report(&recording, 9);
    assert_eq!(rows(&all), WHOLE);
    assert_eq!(all.loss.payloads, 0);
    let few = report(&recording, 2);
    assert_eq!(rows(&few), [WHOLE[0], WHOLE[1], "others: 3 31"]);
    let csv = csv::render(&few, RowKind::Wakers, &RowChoice::default()).expect("no sort");
    assert!(csv.contains("wait,app,[blocked: futex],serve (worker-3),1,1,23,23,23,\n"), "{csv}");
    assert!(csv.ends_with(",,,,3,3,31,10,13,\n"), "{csv}");
}

/// A wait has its waker wherever single calls have values.
#[test]
fn the_waker_is_a_value_of_the_wait() {
    let recording = trace().end(200);
    let told = report(&recording, 9);
    let calls = told.slowest_calls.expect("they were asked for");
    let of = |name: &str| calls.iter().find(|call| call.name() == name).expect("it was called");
    let inside = of("wait").points.first.iter();
    let inside: Vec<String> = inside.map(|point| point.values.to_string()).collect();
    assert!(inside.contains(&"waker=\"serve (worker-3)\"".to_owned()), "{inside:?}");
    let mut out = Vec::new();
    let (query, options) = (Query::default(), Options::default());
    let export = Export { recording: &recording, query: &query, options, progress: &|_| {} };
    Format::find("chrome")
        .expect("there is one")
        .write(&export, &mut out)
        .expect("memory takes all");
    let text = String::from_utf8(out).expect("it is text");
    assert!(text.contains("serve (worker-3)") && text.contains("[interrupt]"), "{text}");
}

/// As `--by '[blocked: futex]: waker'` asks for them.
#[test]
fn waits_are_told_apart_by_who_ended_them() {
    let recording = trace().end(200);
    let functions = recording.functions();
    let futex = functions.iter().position(|info| &*info.name == "[blocked: futex]");
    let futex = futex.expect("there were some");
    let values = by_values_of(&recording, &Query::default(), FuncId(futex as u32), 0, 9);
    let callers: Vec<bool> = (0..functions.len()).map(|at| at == futex).collect();
    let told = values.expect("they are few").each.into_iter().map(|one| {
        let (callers, within) = (Some(callers.clone()), Some(one.within));
        let query = Query { callers, within, ..Query::default() };
        let report = report_with(&recording, &query, meta_with(Extras::default()));
        let called = report.functions.iter().filter(|row| row.calls > 0);
        let called: Vec<_> = called.map(|row| (row.name.to_string(), row.total_ns.0)).collect();
        (one.value.expect("all are known").to_string(), called)
    });
    let told: Vec<_> = told.collect();
    let expected = [("serve (worker-3)", 23), ("- (worker-3)", 13), ("[interrupt]", 11)];
    let expected = expected.map(|(waker, total)| {
        (format!("\"{waker}\""), vec![("[blocked: futex]".to_owned(), total)])
    });
    assert_eq!(told, expected);
}

#[test]
fn a_recording_that_is_cut_anywhere_has_the_same_wakers() {
    for at in (11..=185).step_by(3) {
        let mut trace = trace();
        trace.chunk(at);
        assert_eq!(rows(&report(&trace.end(200), 9)), WHOLE, "cut at {at}");
    }
}

/// The thread has set its state, and who wakes it is quicker than the switch to another thread.
#[test]
fn a_wake_may_come_before_its_wait() {
    let mut trace = Trace::new();
    trace
        .push(&[enter(SERVE, 900, 10).on(SECOND), enter(WAIT, 800, 12)])
        .wake(29, FIRST, (PID, SECOND, "early"), WokenFrom::Thread)
        .push(&[wait(Interruptible, FUTEX, FIRST, 30), woken(FIRST, 35), end_of_wait(FIRST, 36)])
        // It is woken, but does not wait any more. That wakes it from nothing later.
        .wake(40, FIRST, (PID, SECOND, "idle"), WokenFrom::Thread)
        .push(&[woken(FIRST, 41), wait(Interruptible, FUTEX, FIRST, 50)])
        .push(&[woken(FIRST, 67), end_of_wait(FIRST, 68), ret(WAIT, 800, 80)]);
    trace.engine.advance(Nanos(90));
    assert_eq!(trace.engine.unknown_wakers(), 1);
    let expected =
        ["wait [blocked: futex] [unknown]: 1 17", "wait [blocked: futex] serve (early): 1 5"];
    assert_eq!(rows(&report(&trace.end(90), 9)), expected);
}

/// Nothing is guessed: not after losses of the waker, and not after those of the thread that waited.
#[test]
fn losses_leave_wakers_unknown() {
    let mut trace = Trace::new();
    trace
        .push(&[enter(MAIN, 900, 10).on(SECOND), enter(WAIT, 800, 12)])
        .push(&[enter(SERVE, 850, 15).on(SECOND).lost(2), wait(Interruptible, FUTEX, FIRST, 20)])
        .push(&[ret(SERVE, 850, 25).on(SECOND)])
        .wake(30, FIRST, (PID, SECOND, "w"), WokenFrom::Thread)
        .push(&[woken(FIRST, 31), end_of_wait(FIRST, 32), wait(Interruptible, FUTEX, FIRST, 40)])
        .wake(43, FIRST, (PID, SECOND, "w"), WokenFrom::Thread)
        .push(&[woken(FIRST, 44).lost(1), end_of_wait(FIRST, 45)])
        .push(&[wait(Interruptible, READ, FIRST, 50)])
        .wake(56, FIRST, (PID, SECOND, "w"), WokenFrom::Unknown)
        .push(&[woken(FIRST, 58), end_of_wait(FIRST, 59), ret(WAIT, 800, 80)]);
    trace.engine.advance(Nanos(90));
    assert_eq!(trace.engine.unknown_wakers(), 2);
    let mut told = rows(&report(&trace.end(90), 9));
    told.sort();
    let expected = [
        "wait [blocked: futex] ? (w): 1 11",
        "wait [blocked: futex] [unknown]: 1 0",
        "wait [blocked: read] [unknown]: 1 8",
    ];
    assert_eq!(told, expected);
}

/// A record that comes after later ones were applied says nothing about the stack of the waker then.
#[test]
fn a_late_wake_is_not_believed() {
    let mut trace = Trace::new();
    trace.push(&[enter(SERVE, 900, 10).on(SECOND), enter(WAIT, 800, 12)]);
    trace.push(&[wait(Interruptible, FUTEX, FIRST, 20)]).chunk(40);
    trace.wake(30, FIRST, (PID, SECOND, "w"), WokenFrom::Thread);
    trace.push(&[woken(FIRST, 41), end_of_wait(FIRST, 42), ret(WAIT, 800, 80)]);
    assert_eq!(rows(&report(&trace.end(90), 9)), ["wait [blocked: futex] [unknown]: 1 21"]);
}

/// Strangers that wake each other begin no threads.
#[test]
fn only_waits_of_known_threads_count() {
    let mut trace = Trace::new();
    trace.push(&[enter(MAIN, 900, 10), ret(MAIN, 900, 15)]);
    trace.wake(20, 4_711, (STRANGER, STRANGER, "cat"), WokenFrom::Thread);
    let told = report(&trace.end(90), 9);
    assert_eq!((told.threads.len(), told.wakers), (1, None));
}
