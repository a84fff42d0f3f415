//! Tests that the values of an event reach its call, or are counted as lost.

mod by_value;
mod enumerators;
pub(crate) mod locks;
mod losses;
mod marks;
mod results;
mod sums;
pub(crate) mod typed;

use crate::support::{Event, PID, control, enter, function, meta_with, point, ret};
use ctrace_common::{Kind, MAX_VALUES, RECORD_LEN, payload_slots};
use ctrace_core::engine::{Engine, EngineConfig};
use ctrace_core::filter::{Filter, ThreadFilter};
use ctrace_core::formats::{Export, Format, Options};
use ctrace_core::function::{ExitSeen, FunctionInfo, ValueInfo, ValueKind};
use ctrace_core::recording::replay::{Query, report_with};
use ctrace_core::recording::{End, Payload, Recording, Start, Writer};
use ctrace_core::report::{Extras, Report};
use ctrace_core::units::{Nanos, Pid};
use ctrace_core::values::Value;
use proptest::prelude::*;

const OUTER: u32 = 0;
const STAGE: u32 = 1;

/// Returns a function, a probe with a signed and an unsigned value, and a function with one value.
fn functions() -> Vec<FunctionInfo> {
    let value = |name: &str, kind| ValueInfo::new(name, kind);
    let stage = vec![value("arg0", ValueKind::Signed), value("arg1", ValueKind::Unsigned)];
    let load = vec![value("key", ValueKind::Unsigned)];
    vec![
        function("outer"),
        FunctionInfo { values: stage, ..function("stage") },
        FunctionInfo { values: load, ..function("load") },
    ]
}

/// Makes the record that an eBPF program writes after the event.
fn payload(event: &Event, values: &[u64], unread: u64) -> Vec<u8> {
    let slots = payload_slots(values.len(), 0) as u16;
    let head = Event { kind: Kind::Payload, sp: unread, lost: slots, ..*event };
    let mut bytes = head.bytes().to_vec();
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    bytes.resize(usize::from(slots) * RECORD_LEN, 0);
    bytes
}

/// A trace under construction.
struct Trace {
    engine: Engine,
    writer: Writer<Vec<u8>>,
}

impl Trace {
    fn new(filter: Filter) -> Self {
        let config = EngineConfig { record: true, rings: 2, filter, ..EngineConfig::default() };
        let mut engine = Engine::new(config);
        for info in functions() {
            engine.add_function(info);
        }
        engine.begin(Nanos(5));
        let writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
        Self { engine, writer }
    }

    fn push(&mut self, event: Event) -> &mut Self {
        self.engine.push(0, &event.bytes());
        self
    }

    /// Pushes an event and its values, both through the ring of this number.
    fn push_with(&mut self, event: Event, ring: usize, values: &[u64], unread: u64) -> &mut Self {
        self.engine.push(ring, &event.bytes());
        self.engine.push(ring, &payload(&event, values, unread));
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

    fn end(mut self, to: u64) -> Vec<u8> {
        self.chunk(to);
        let end = End { end_ns: Nanos(to), ..End::default() };
        self.writer.finish(&end).expect("memory takes all")
    }
}

fn open(bytes: Vec<u8>) -> Recording {
    Recording::open(bytes).expect("a recording")
}

fn all(recording: &Recording) -> Vec<Payload> {
    let each = |entry| recording.payloads(entry).expect("they are whole").each;
    recording.chunks().iter().flat_map(each).collect()
}

fn report(recording: &Recording, query: &Query) -> Report {
    let extras = Extras { slowest_calls: Some(3), ..Extras::default() };
    report_with(recording, query, meta_with(extras))
}

/// Returns the start and values of the points that the report lists first.
fn points(report: &Report) -> Vec<(u64, String)> {
    let first = report.points.first.iter();
    first.map(|point| (point.start_ns.0, point.values.to_string())).collect()
}

fn export(recording: &Recording, format: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let options = Options::default();
    let export = Export { recording, query: &Query::default(), options, progress: &|_| {} };
    Format::find(format).expect("there is one").write(&export, &mut out).expect("memory takes all");
    out
}

/// Records points in two threads, one of them inside a call.
fn typical() -> Vec<u8> {
    let mut trace = Trace::new(Filter::default());
    trace.push(enter(OUTER, 900, 10));
    trace.push_with(point(STAGE, 800, 20), 0, &[7, u64::MAX], 0);
    trace.push_with(point(STAGE, 800, 30).on(8), 1, &[-3_i64 as u64, 5], 0b10);
    trace.push(ret(OUTER, 900, 40));
    trace.end(50)
}

#[test]
fn a_report_of_single_calls_has_their_values() {
    let report = report(&open(typical()), &Query::default());
    let expected = [
        (20, "arg0=7 arg1=18446744073709551615".to_owned()),
        (30, "arg0=-3 arg1=<unreadable>".to_owned()),
    ];
    assert_eq!(points(&report), expected);
    let call = &report.slowest_calls.as_deref().expect("asked for")[0];
    let inside: Vec<_> = call.points.first.iter().map(|point| point.start_ns.0).collect();
    assert_eq!((call.name(), inside, call.points.more), ("outer", vec![20], 0));
    let json = serde_json::to_value(&report).expect("a report is JSON");
    let values = &json["points"]["first"][1]["values"];
    assert_eq!(values, &serde_json::json!({"arg0": -3, "arg1": null}));
    assert_eq!(report.loss.payloads, 0);
}

#[test]
fn only_the_first_points_are_told_and_the_others_counted() {
    let mut trace = Trace::new(Filter::default());
    for time in 0..500 {
        trace.push_with(point(STAGE, 800, 1_000 - time), 0, &[time, 1], 0);
    }
    let report = report(&open(trace.end(2_000)), &Query::default());
    let first: Vec<_> = report.points.first.iter().map(|point| point.start_ns.0).collect();
    assert_eq!((first, report.points.more), (vec![501, 502, 503], 497));
}

#[test]
fn a_filter_leaves_out_values_with_their_calls() {
    let recording = open(typical());
    let only = |tid| Filter { threads: vec![ThreadFilter::new(tid)], ..Filter::default() };
    let query = Query { filter: only("8"), ..Query::default() };
    assert_eq!(points(&report(&recording, &query)).len(), 1);
    let window = Some(Nanos(25)..Nanos(50));
    let late = report(&recording, &Query { window, ..Query::default() });
    assert_eq!(points(&late), [(30, "arg0=-3 arg1=<unreadable>".to_owned())]);
    let functions = Some(vec![true, false, true]);
    let others = report(&recording, &Query { functions, ..Query::default() });
    assert!(points(&others).is_empty());

    // The same filter during recording.
    let mut trace = Trace::new(only("8"));
    trace.push_with(point(STAGE, 800, 20), 0, &[7, 1], 0);
    trace.push_with(point(STAGE, 800, 30).on(8), 1, &[9, 2], 0);
    let recorded = all(&open(trace.end(50)));
    assert_eq!(recorded.iter().map(|payload| payload.time.0).collect::<Vec<_>>(), [30]);
}

#[test]
fn what_is_older_than_the_trace_is_not_in_it() {
    let mut trace = Trace::new(Filter::default());
    trace.push_with(point(STAGE, 800, 4), 0, &[7, 1], 0);
    trace.push_with(point(STAGE, 800, 6), 0, &[8, 1], 0);
    let times: Vec<_> = all(&open(trace.end(50))).iter().map(|payload| payload.time.0).collect();
    assert_eq!(times, [6]);
}

#[test]
fn values_of_an_entry_wait_for_the_end_of_their_call() {
    const LOAD: u32 = 2;
    let mut trace = Trace::new(Filter::default());
    trace.push_with(enter(LOAD, 900, 10), 0, &[42], 0).chunk(20);
    trace.chunk(30).push(ret(LOAD, 900, 35));
    let recording = open(trace.end(50));
    let chunks = recording.chunks().iter().map(|chunk| recording.payloads(chunk));
    let sizes: Vec<_> = chunks.map(|payloads| payloads.expect("whole").each.len()).collect();
    assert_eq!(sizes, [0, 0, 1]);
    let report = report(&recording, &Query::default());
    let call = &report.slowest_calls.as_deref().expect("asked for")[0];
    assert_eq!((call.values.to_string(), call.points.is_empty()), ("key=42".to_owned(), true));
    let jsonl = String::from_utf8(export(&recording, "jsonl")).expect("text");
    assert!(jsonl.contains(r#""values":{"key":42}"#), "{jsonl}");
}

#[test]
fn a_thread_id_that_is_used_again_is_of_two_threads() {
    let mut trace = Trace::new(Filter::default());
    trace.push_with(point(STAGE, 800, 20).on(8), 0, &[1, 1], 0);
    trace.engine.push(0, &control(Kind::ThreadExit, 25, 8, "", [0; 2]));
    trace.push_with(point(STAGE, 800, 30).on(8), 0, &[2, 2], 0);
    let payloads = all(&open(trace.end(50)));
    let [first, second] = payloads.as_slice() else { panic!("{payloads:?}") };
    assert_ne!(first.thread, second.thread);
    assert_eq!(
        (&first.values[0], &second.values[0]),
        (&Some(Value::Signed(1)), &Some(Value::Signed(2)))
    );
}

#[test]
fn lost_payloads_are_counted_once() {
    let mut trace = Trace::new(Filter::default());
    trace.push_with(point(STAGE, 800, 10), 0, &[7, 1], 0);
    trace.engine.set_lost_payloads(3);
    trace.chunk(20).push(point(STAGE, 800, 25));
    trace.engine.set_lost_payloads(4);
    let recording = open(trace.end(50));
    let report = report(&recording, &Query::default());
    assert_eq!((report.loss.payloads, report.points.first.len()), (4, 1));
    assert_eq!(report.functions[STAGE as usize].calls, 2, "the calls are there");
}

#[test]
fn exports_have_the_values() {
    let recording = open(typical());
    let csv = String::from_utf8(export(&recording, "csv")).expect("text");
    assert!(csv.starts_with(
        "pid,tid,thread,start_ns,duration_ns,timed,open,function,depth,path,values\n"
    ));
    assert!(csv.contains("stage,1,stage,arg0=-3 arg1=<unreadable>\n"), "{csv}");
    assert!(csv.contains(",outer,1,outer,\n"), "{csv}");
    let chrome: serde_json::Value =
        serde_json::from_slice(&export(&recording, "chrome")).expect("JSON");
    let events = chrome["traceEvents"].as_array().expect("a list");
    let arguments: Vec<_> = events.iter().filter(|event| event["name"] == "stage").collect();
    let arguments: Vec<_> = arguments.iter().map(|event| event["args"]["arg0"].as_i64()).collect();
    assert!(arguments.contains(&Some(7)) && arguments.contains(&Some(-3)), "{events:?}");
}

#[test]
fn damage_of_payloads_costs_no_calls() {
    let bytes = typical();
    let kind = [b"CTRB".as_slice(), &[7, 0]].concat();
    let at = bytes.windows(6).position(|six| six == kind).expect("a block of payloads");
    for (offset, what) in [(6, "its header"), (30, "its contents")] {
        let mut damaged = bytes.clone();
        damaged[at + offset] ^= 0x55;
        let report = report(&open(damaged), &Query::default());
        assert_eq!(report.functions[0].calls, 1, "{what}");
        assert_eq!((report.loss.payloads, points(&report).len()), (1, 0), "{what}");
    }
}

#[test]
fn a_recording_without_values_has_no_block_of_them() {
    let mut trace = Trace::new(Filter::default());
    trace.push(enter(OUTER, 900, 10)).push(ret(OUTER, 900, 20));
    let bytes = trace.end(50);
    let kind = [b"CTRB".as_slice(), &[7, 0]].concat();
    assert!(!bytes.windows(6).any(|six| six == kind));
}

#[test]
fn integers_alone_are_a_block_that_every_reader_knows() {
    let contents = [
        // The end of the chunk, losses, threads.
        &[50, 0, 2][..],
        // A thread with one payload: time, function, none unread, 7, 2^64 - 1.
        &[1, 1, 30, 1, 0, 14, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1],
        // Another: the second value is unread, the first is -3.
        &[2, 1, 20, 1, 2, 5],
    ];
    let length = contents.concat().len() as u8;
    let bytes = typical();
    let at = bytes.windows(6).position(|six| six == b"CTRB\x07\0").expect("a block of payloads");
    assert_eq!(bytes[at + 8..at + 12], [length, 0, 0, 0]);
    assert_eq!(bytes[at + 24..][..length.into()], contents.concat());
    assert!(!bytes.windows(6).any(|six| six == b"CTRB\x08\0"));
}

/// Time, thread, true for the other ring, values, and a bit for each unread value.
type Random = (u64, u32, bool, [u64; 2], u64);

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_goes_in_comes_out(
        hits in prop::collection::vec(
            (10u64..2_000, 1u32..4, any::<bool>(), any::<[u64; 2]>(), 0u64..4), 0..60,
        ),
        edges in prop::collection::vec(10u64..2_000, 0..4),
    ) {
        let mut hits: Vec<Random> = hits;
        hits.sort_by_key(|hit| (hit.1, hit.0));
        hits.dedup_by_key(|hit| (hit.1, hit.0));
        let mut trace = Trace::new(Filter::default());
        for &(time, tid, other, values, unread) in &hits {
            let event = point(STAGE, 800, time).on(tid);
            trace.push_with(event, usize::from(other), &values, unread);
        }
        let mut edges = edges;
        edges.sort_unstable();
        for edge in edges {
            trace.chunk(edge);
        }
        let recording = open(trace.end(3_000));
        let mut seen: Vec<_> = all(&recording).into_iter().map(|payload| {
            let thread = recording.thread(payload.thread).expect("it has a name");
            assert_eq!(thread.pid, Pid(PID));
            (thread.tid.0, payload.time.0, payload.values)
        }).collect();
        seen.sort_by_key(|seen| (seen.0, seen.1));
        let expected: Vec<_> = hits.iter().map(|&(time, tid, _, values, unread)| {
            let [a, b] = values;
            let values = [Value::Signed(a as i64), Value::Unsigned(b)];
            let read = |at: usize| (unread >> at & 1 == 0).then(|| values[at].clone());
            (tid, time, vec![read(0), read(1)])
        }).collect();
        prop_assert_eq!(seen, expected);
    }
}

/// A report counts the payloads that were lost in its interval.
#[test]
fn an_interval_misses_what_was_lost_in_it() {
    let interval = |engine: &mut Engine, lost, to| {
        engine.set_lost_payloads(lost);
        engine.report_interval(Nanos(to), meta_with(Extras::default())).loss.payloads
    };
    let mut kept = Engine::new(EngineConfig { keep: true, ..EngineConfig::default() });
    assert_eq!(interval(&mut kept, 3, 10), 3);
    assert_eq!(interval(&mut kept, 8, 20), 5);
    assert_eq!(interval(&mut kept, 8, 30), 0);
    // Without a recording there is no room for any.
    assert_eq!(interval(&mut Engine::new(EngineConfig::default()), 3, 10), 0);
}

#[test]
fn as_many_values_as_a_note_has_arguments_fit() {
    let value = |at: usize| ValueInfo::new(format!("arg{at}"), ValueKind::Unsigned);
    let mut trace = Trace::new(Filter::default());
    let info = FunctionInfo { values: (0..MAX_VALUES).map(value).collect(), ..function("many") };
    let id = trace.engine.add_function(info);
    let values: Vec<u64> = (100..100 + MAX_VALUES as u64).collect();
    trace.push_with(point(id.0, 800, 20), 0, &values, 0);
    let payloads = all(&open(trace.end(50)));
    let expected: Vec<_> = values.iter().map(|value| Some(Value::Unsigned(*value))).collect();
    assert_eq!(payloads[0].values, expected);
}
