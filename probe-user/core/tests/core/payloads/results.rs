//! The result of a call comes with its exit and joins its arguments. A call that ended in another
//! way has none.

use super::*;
use crate::support::jump;
use ctrace_common::RESULT;
use ctrace_core::units::Tid;

/// A function with an argument and a result.
const FIND: u32 = 3;
/// A function with a result only.
const NEXT: u32 = 4;

fn functions_with_results() -> [FunctionInfo; 2] {
    let result = ValueInfo { is_result: true, ..ValueInfo::new("retval", ValueKind::Signed) };
    let key = ValueInfo::new("key", ValueKind::Unsigned);
    [
        FunctionInfo { values: vec![key, result.clone()], ..function("find") },
        FunctionInfo { values: vec![result], ..function("next") },
    ]
}

fn traced() -> Trace {
    traced_with(Filter::default())
}

fn traced_with(filter: Filter) -> Trace {
    let mut trace = Trace::new(filter);
    let ids = functions_with_results().map(|info| trace.engine.add_function(info).0);
    assert_eq!(ids, [FIND, NEXT]);
    trace
}

impl Trace {
    /// Pushes an entry of [`FIND`] and its argument.
    fn find(&mut self, sp: u64, time: u64, key: u64) -> &mut Self {
        self.push_with(enter(FIND, sp, time), 0, &[key], 0)
    }

    /// Pushes an exit and the result, through the other ring.
    fn result(&mut self, exit: Event, result: i64) -> &mut Self {
        self.push_with(exit, 1, &[result as u64], 1 << RESULT)
    }
}

/// Returns what is recorded of all calls with values, in order of their start.
fn shown(recording: &Recording) -> Vec<(u64, String)> {
    let mut calls: Vec<_> = all(recording)
        .iter()
        .map(|payload| (payload.time.0, recording.named_values(payload).to_string()))
        .collect();
    calls.sort();
    calls
}

fn strings<const N: usize>(calls: [(u64, &str); N]) -> Vec<(u64, String)> {
    calls.map(|(time, text)| (time, text.to_owned())).into()
}

#[test]
fn a_call_has_its_argument_and_its_result() {
    let mut trace = traced();
    trace.find(900, 10, 7).result(ret(FIND, 900, 20), -2);
    trace.push(enter(NEXT, 900, 30)).result(ret(NEXT, 900, 40), 5);
    let recording = open(trace.end(50));
    assert_eq!(shown(&recording), strings([(10, "key=7 retval=-2"), (30, "retval=5")]));
    let report = report(&recording, &Query::default());
    let calls = report.slowest_calls.as_deref().expect("asked for");
    let values: Vec<_> = calls.iter().map(|call| call.values.to_string()).collect();
    assert_eq!(
        (values, report.loss.payloads),
        (vec!["key=7 retval=-2".into(), "retval=5".into()], 0)
    );
    let jsonl = String::from_utf8(export(&recording, "jsonl")).expect("text");
    assert!(jsonl.contains(r#""values":{"key":7,"retval":-2}"#), "{jsonl}");
    let csv = String::from_utf8(export(&recording, "csv")).expect("text");
    assert!(csv.contains(",key=7 retval=-2\n") && csv.contains(",retval=5\n"), "{csv}");
}

#[test]
fn each_call_of_a_recursion_has_its_own_result() {
    let mut trace = traced();
    for depth in 0..5 {
        trace.find(900 - 10 * depth, 10 + depth, depth);
    }
    for depth in (0..5).rev() {
        trace.result(ret(FIND, 900 - 10 * depth, 30 - depth), depth as i64 * 100);
    }
    let expected: Vec<_> =
        (0..5).map(|depth| (10 + depth, format!("key={depth} retval={}", depth * 100))).collect();
    assert_eq!(shown(&open(trace.end(50))), expected);
}

#[test]
fn a_call_that_was_unwound_has_no_result() {
    let mut trace = traced();
    trace.push(enter(OUTER, 900, 10)).find(800, 11, 1).find(700, 12, 2);
    // The inner call was thrown through, and the outer one caught it.
    trace.result(ret(FIND, 800, 20), 9);
    // Neither of these returned.
    trace.find(800, 30, 3).find(700, 31, 4);
    trace.push(ret(OUTER, 900, 40));
    let recording = open(trace.end(50));
    let expected = [(11, "key=1 retval=9"), (12, "key=2"), (30, "key=3"), (31, "key=4")];
    assert_eq!(shown(&recording), strings(expected));
    let unwound = all(&recording).into_iter().find(|payload| payload.time.0 == 12).expect("it");
    assert_eq!((unwound.values, unwound.absent), (vec![Some(Value::Unsigned(2)), None], 0b10));
    let report = report(&recording, &Query::default());
    assert_eq!((report.loss.payloads, report.points.unread), (0, 0));
}

#[test]
fn tail_calls_share_their_result() {
    let mut trace = Trace::new(Filter::default());
    for info in functions_with_results() {
        trace.engine.add_function(FunctionInfo { may_tail_jump: true, ..info });
    }
    trace.find(900, 10, 7).push(enter(NEXT, 900, 12));
    trace.result(ret(NEXT, 900, 20), 3).result(ret(FIND, 900, 21), 3);
    let recording = open(trace.end(50));
    assert_eq!(shown(&recording), strings([(10, "key=7 retval=3"), (12, "retval=3")]));
}

#[test]
fn a_jump_out_of_a_function_has_no_result_yet() {
    let mut trace = Trace::new(Filter::default());
    let exit = ExitSeen::ByExitSites;
    for info in functions_with_results() {
        trace.engine.add_function(FunctionInfo { may_tail_jump: true, exit, ..info });
    }
    let at_ret = |function, time| Event { kind: Kind::ExitRet, ..ret(function, 900, time) };
    trace.find(900, 10, 7);
    trace.push(jump(FIND, 900, 12));
    trace.push(enter(NEXT, 900, 13)).result(at_ret(NEXT, 20), 3);
    trace.find(900, 30, 8).result(at_ret(FIND, 35), 4);
    let expected = [(10, "key=7"), (13, "retval=3"), (30, "key=8 retval=4")];
    assert_eq!(shown(&open(trace.end(50))), strings(expected));
}

#[test]
fn a_result_without_its_call_is_dropped() {
    let mut trace = traced();
    // The call had begun before the trace.
    trace.result(ret(FIND, 900, 10), 1);
    let recording = open(trace.end(50));
    assert_eq!(shown(&recording), []);
    let report = report(&recording, &Query::default());
    assert_eq!((report.loss.payloads, report.functions[FIND as usize].headless), (0, 1));
}

#[test]
fn a_result_after_a_loss_is_not_trusted() {
    let mut trace = traced();
    trace.find(900, 10, 1);
    trace.result(Event { lost: 2, ..ret(FIND, 900, 20) }, 5);
    // These two events may be the end of the first call, and the beginning of another one.
    let recording = open(trace.end(50));
    assert_eq!(shown(&recording), strings([(10, "key=1")]));
}

#[test]
fn either_end_can_come_alone() {
    let mut trace = traced();
    trace.push(enter(FIND, 900, 10)).result(ret(FIND, 900, 20), 6);
    trace.find(900, 30, 2).push(ret(FIND, 900, 40));
    trace.engine.set_lost_payloads(2);
    let recording = open(trace.end(50));
    assert_eq!(shown(&recording), strings([(10, "retval=6"), (30, "key=2")]));
    assert_eq!(report(&recording, &Query::default()).loss.payloads, 2);
}

#[test]
fn a_value_that_could_not_be_read_is_no_absent_one() {
    let mut trace = traced();
    trace.push_with(enter(FIND, 900, 10), 0, &[0], 1);
    trace.push_with(ret(FIND, 900, 20), 0, &[0], 1 << RESULT | 1);
    let recording = open(trace.end(50));
    assert_eq!(shown(&recording), strings([(10, "key=<unreadable> retval=<unreadable>")]));
    assert_eq!(report(&recording, &Query::default()).points.unread, 2);
}

#[test]
fn both_ends_meet_over_chunks() {
    let mut trace = traced();
    trace.find(900, 10, 7).find(800, 12, 8).chunk(15);
    trace.result(ret(FIND, 800, 16), 2).chunk(25);
    trace.result(ret(FIND, 900, 30), 1);
    let recording = open(trace.end(50));
    let sizes: Vec<_> = recording
        .chunks()
        .iter()
        .map(|chunk| recording.payloads(chunk).expect("whole").each.len())
        .collect();
    assert_eq!(sizes, [0, 1, 1]);
    assert_eq!(shown(&recording), strings([(10, "key=7 retval=1"), (12, "key=8 retval=2")]));
}

#[test]
fn a_result_that_comes_too_late_is_counted() {
    let mut trace = traced();
    let exit = ret(FIND, 900, 20);
    trace.find(900, 10, 7).push(exit).chunk(30);
    trace.engine.push(0, &payload(&exit, &[3], 1 << RESULT));
    let recording = open(trace.end(50));
    assert_eq!(shown(&recording), strings([(10, "key=7")]));
    assert_eq!(report(&recording, &Query::default()).loss.payloads, 1);
}

/// A deep stack ends at once, with more calls than a chunk can have values of.
#[test]
fn values_that_a_chunk_has_no_room_for_are_counted() {
    const MOST: u64 = 1 << 17;
    let mut trace = traced();
    for depth in 0..MOST + 5 {
        let key = depth.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        trace.find(8_000_000 - 16 * depth, 10 + depth, key);
    }
    trace.push(enter(OUTER, 9_000_000, 900_000));
    let recording = open(trace.end(1_000_000));
    assert_eq!(all(&recording).len() as u64, MOST);
    assert_eq!(report(&recording, &Query::default()).loss.payloads, 5);
}

#[test]
fn a_filter_leaves_out_results_with_their_calls() {
    let threads = vec![ThreadFilter::new("8")];
    let mut trace = traced_with(Filter { threads, ..Filter::default() });
    trace.find(900, 10, 7).result(ret(FIND, 900, 20), 1);
    trace.push_with(enter(FIND, 900, 11).on(8), 0, &[9], 0);
    trace.result(ret(FIND, 900, 21).on(8), 2);
    let recording = open(trace.end(50));
    assert_eq!(shown(&recording), strings([(11, "key=9 retval=2")]));
    assert_eq!(report(&recording, &Query::default()).loss.payloads, 0);
}

#[test]
fn readers_that_know_no_results_pass_over_what_is_new() {
    let mut trace = traced();
    trace.find(900, 10, 7);
    trace.push(enter(OUTER, 1_000, 30));
    let bytes = trace.end(50);
    let at = bytes.windows(6).position(|six| six == b"CTRB\x07\0").expect("a block of payloads");
    // The end of the chunk, losses, threads, payloads of the thread, time, function. Then the bits
    // of missing values: readers look at the lowest 16 of them only. Then the value.
    let missing = [0b10 | 0x80, 0x80, 0b1000];
    let expected = [&[50, 0, 1, 1, 1, 40, 3][..], &missing, &[7]].concat();
    assert_eq!(bytes[at + 24..][..expected.len()], expected);
    let [info, _] = functions_with_results();
    let json = r#"{"name":"retval","kind":"signed","result":true}"#;
    assert_eq!(serde_json::to_string(&info.values[1]).expect("JSON"), json);
}

/// A step of a thread: it calls, returns, or throws through this many calls.
#[derive(Clone, Copy, Debug)]
enum Step {
    Call(u16),
    Return(i16),
    Throw(u8),
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the calls of some threads do, each value is that of its own call.
    #[test]
    fn values_are_those_of_their_calls(
        steps in prop::collection::vec(
            (
                1u32..4,
                prop_oneof![
                    3 => any::<u16>().prop_map(Step::Call),
                    2 => any::<i16>().prop_map(Step::Return),
                    1 => (1u8..4).prop_map(Step::Throw),
                ],
                any::<bool>(),
                any::<bool>(),
            ),
            0..200,
        ),
    ) {
        let mut trace = traced();
        let mut open_calls: [Vec<usize>; 4] = Default::default();
        let mut expected: Vec<(u32, u64, u16, Option<i16>)> = Vec::new();
        let mut time = 100;
        for (tid, step, ring, ends_chunk) in steps {
            time += 10;
            let stack = &mut open_calls[tid as usize];
            let (ring, sp) = (usize::from(ring), |depth: usize| 100_000 - 16 * depth as u64);
            match step {
                Step::Call(key) => {
                    let event = enter(FIND, sp(stack.len()), time).on(tid);
                    trace.push_with(event, ring, &[key.into()], 0);
                    stack.push(expected.len());
                    expected.push((tid, time, key, None));
                }
                Step::Return(result) => {
                    let Some(call) = stack.pop() else { continue };
                    let event = ret(FIND, sp(stack.len()), time).on(tid);
                    trace.push_with(event, ring, &[i64::from(result) as u64], 1 << RESULT);
                    expected[call].3 = Some(result);
                }
                Step::Throw(calls) => {
                    stack.truncate(stack.len().saturating_sub(calls.into()));
                }
            }
            if ends_chunk {
                trace.chunk(time);
            }
        }
        // Calls that are open at the end have no values in the recording. An event above them shows
        // that they are over.
        for tid in 1..4 {
            time += 10;
            trace.push(enter(OUTER, 200_000, time).on(tid));
        }
        let recording = open(trace.end(time + 10));
        let mut seen: Vec<_> = all(&recording)
            .into_iter()
            .map(|payload| {
                let Tid(tid) = recording.thread(payload.thread).expect("it has a name").tid;
                let is_there = |at: usize| payload.absent >> at & 1 == 0;
                let (key, result) = (&payload.values[0], &payload.values[1]);
                assert_eq!([is_there(0), is_there(1)], [key.is_some(), result.is_some()]);
                (tid, payload.time.0, key.clone(), result.clone())
            })
            .collect();
        seen.sort_by_key(|call| call.1);
        let expected: Vec<_> = expected
            .into_iter()
            .map(|(tid, time, key, result)| {
                let result = result.map(|result| Value::Signed(result.into()));
                (tid, time, Some(Value::Unsigned(key.into())), result)
            })
            .collect();
        prop_assert_eq!(seen, expected);
    }
}
