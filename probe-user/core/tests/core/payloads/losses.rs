//! Values that cannot be shown are counted, and those of calls that a filter leaves out are not.

use super::*;
use crate::support::{at_ret, jump, passes_on};
use ctrace_core::recording::{Block, Definitions, Framed};
use std::io::{self, Write};

const LOAD: u32 = 2;

impl Trace {
    /// The values of an event, which come later than usual.
    fn push_late(&mut self, event: Event, values: &[u64]) -> &mut Self {
        self.engine.push(0, &payload(&event, values, 0));
        self
    }
}

/// The number of lost payloads, as reports with and without values tell it.
#[track_caller]
fn lost(recording: &Recording) -> u64 {
    let with_values = report(recording, &Query::default()).loss.payloads;
    let without = report_with(recording, &Query::default(), meta_with(Extras::default()));
    assert_eq!(without.loss.payloads, with_values);
    with_values
}

fn times(recording: &Recording) -> Vec<u64> {
    all(recording).iter().map(|payload| payload.time.0).collect()
}

#[test]
fn what_comes_after_the_chunk_of_its_call_is_lost() {
    let mut trace = Trace::new(Filter::default());
    trace.push(point(STAGE, 800, 10)).chunk(20);
    trace.push_late(point(STAGE, 800, 10), &[7, 1]);
    trace.push_with(point(STAGE, 800, 30), 0, &[8, 1], 0);
    let recording = open(trace.end(50));
    assert_eq!((lost(&recording), times(&recording)), (1, vec![30]));
}

#[test]
fn what_comes_while_its_call_is_open_is_in_time() {
    let mut trace = Trace::new(Filter::default());
    trace.push(enter(LOAD, 900, 10)).chunk(20);
    trace.push_late(enter(LOAD, 900, 10), &[42]).push(ret(LOAD, 900, 35));
    let recording = open(trace.end(50));
    assert_eq!((lost(&recording), times(&recording)), (0, vec![10]));
}

#[test]
fn a_thread_that_ended_does_not_begin_anew_with_late_values() {
    let mut trace = Trace::new(Filter::default());
    for at in [10, 15] {
        trace.push(point(STAGE, 800, at).on(8));
    }
    trace.engine.push(0, &control(Kind::ThreadExit, 18, 8, "", [0; 2]));
    // The thread is gone, but its calls are in no chunk yet.
    trace.engine.advance(Nanos(20));
    trace.push_late(point(STAGE, 800, 15).on(8), &[7, 1]).chunk(25);
    trace.push_late(point(STAGE, 800, 10).on(8), &[7, 1]);
    let recording = open(trace.end(50));
    assert_eq!((lost(&recording), times(&recording)), (1, vec![15]));
    assert_eq!(recording.threads().count(), 1);
}

#[test]
fn values_of_an_event_that_is_too_late_are_lost() {
    let mut trace = Trace::new(Filter::default());
    trace.push(point(STAGE, 800, 30));
    trace.engine.advance(Nanos(40));
    trace.push_with(point(STAGE, 800, 20), 0, &[7, 1], 0);
    let recording = open(trace.end(50));
    assert_eq!((lost(&recording), times(&recording)), (1, vec![]));
    assert_eq!(report(&recording, &Query::default()).loss.late, 1);
}

#[test]
fn values_of_calls_that_are_too_deep_are_neither_kept_nor_lost() {
    let mut trace = Trace::new(Filter { max_depth: Some(1), ..Filter::default() });
    trace.push(enter(OUTER, 900, 10));
    trace.push_with(point(STAGE, 800, 20), 0, &[7, 1], 0);
    trace.push(ret(OUTER, 900, 30));
    trace.push_with(point(STAGE, 800, 40), 0, &[8, 1], 0);
    let recording = open(trace.end(50));
    assert_eq!((lost(&recording), times(&recording)), (0, vec![40]));
}

#[test]
fn values_of_an_unknown_function_cost_no_others() {
    let mut trace = Trace::new(Filter::default());
    trace.push_with(point(STAGE, 800, 10), 0, &[7, 1], 0);
    trace.push_late(point(99, 800, 20), &[7]);
    let recording = open(trace.end(50));
    assert_eq!((lost(&recording), times(&recording)), (0, vec![10]));
    assert_eq!(report(&recording, &Query::default()).loss.decode_errors, 1);
}

/// Adds blocks to a file.
fn write(writer: &mut Writer<Vec<u8>>, blocks: &[Block]) {
    blocks.iter().for_each(|block| writer.write(block).expect("memory takes all"));
}

#[test]
fn a_file_that_ends_behind_a_chunk_has_lost_no_values() {
    let Trace { mut engine, writer: mut first } = Trace::new(Filter::default());
    let mut blocks = |time, to| {
        engine.push(0, &point(STAGE, 800, time).bytes());
        engine.advance(Nanos(to));
        engine.end_chunk(Nanos(to));
        engine.take_blocks()
    };
    let (early, late) = (blocks(10, 20), blocks(30, 40));
    write(&mut first, &early);
    let start = Start { start_ns: Nanos(20), ..Start::default() };
    let mut second = Writer::new(Vec::new(), &start).expect("memory takes all");
    let mut definitions = Definitions::default();
    early.iter().for_each(|block| definitions.note(block));
    definitions.write(&mut second).expect("memory takes all");
    write(&mut second, &late);
    let files = [first, second].map(|writer| (String::new(), open(writer.into_inner())));
    let Ok(joined) = Recording::join(files.into()) else { panic!("they are of one recording") };
    let report = report_with(&joined, &Query::default(), meta_with(Extras::default()));
    assert_eq!((report.functions[STAGE as usize].calls, report.loss.payloads), (2, 0));
}

#[test]
fn a_copy_of_a_chunk_tells_of_its_damaged_values() {
    let mut trace = Trace::new(Filter::default());
    trace.push_with(point(STAGE, 800, 10), 0, &[7, 1], 0);
    trace.engine.advance(Nanos(20));
    trace.engine.end_chunk(Nanos(20));
    let (blocks, mut definitions) = (trace.engine.take_blocks(), Definitions::default());
    blocks.iter().for_each(|block| definitions.note(block));
    write(&mut trace.writer, &blocks);
    let bytes = trace.writer.into_inner();
    let copied = |bytes: &Vec<u8>| {
        let recording = open(bytes.clone());
        let chunk = Framed::read(bytes, &recording.chunks()[0]).expect("the chunk is whole");
        let mut copy = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
        definitions.write(&mut copy).expect("memory takes all");
        copy.add(chunk).expect("memory takes all");
        let copy = open(copy.into_inner());
        (lost(&copy), all(&copy).len())
    };
    assert_eq!(copied(&bytes), (0, 1));
    let kind = [b"CTRB".as_slice(), &[7, 0]].concat();
    let at = bytes.windows(6).position(|six| six == kind).expect("a block of payloads");
    let mut damaged = bytes;
    damaged[at + 6] ^= 0x55;
    assert_eq!(copied(&damaged), (1, 0));
}

/// Counts writes.
struct Writes(u64);

impl Write for Writes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += 1;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_chunk_and_its_values_are_one_write() {
    let mut trace = Trace::new(Filter::default());
    trace.push_with(point(STAGE, 800, 10), 0, &[7, 1], 0);
    trace.engine.advance(Nanos(20));
    trace.engine.end_chunk(Nanos(20));
    let blocks = trace.engine.take_blocks();
    let mut writer = Writer::new(Writes(0), &Start::default()).expect("it takes all");
    blocks.iter().for_each(|block| writer.write(block).expect("it takes all"));
    // The file's header and the start come first.
    assert_eq!(writer.into_inner().0, 2 + blocks.len() as u64);
}

/// Calls that are too short take no room from the values of those that count.
#[test]
fn values_of_calls_that_are_too_short_are_forgotten() {
    let mut trace = Trace::new(Filter { min_duration: Nanos(15), ..Filter::default() });
    for call in 0..5 {
        let start = 20 + 10 * call;
        trace.push_with(enter(LOAD, 900, start), 0, &[call], 0).push(ret(LOAD, 900, start + 4));
    }
    trace.push_with(enter(LOAD, 900, 100), 0, &[77], 0);
    trace.push_with(enter(LOAD, 800, 101), 0, &[5], 0).push(ret(LOAD, 800, 103));
    trace.push(ret(LOAD, 900, 130));
    // Its values come when it has ended.
    let late = enter(LOAD, 900, 140);
    trace.push(late).push(ret(LOAD, 900, 142)).push_late(late, &[6]);
    let recording = open(trace.end(200));
    assert_eq!((times(&recording), lost(&recording)), (vec![100], 0));
}

/// The end of such a call may be that of the function to which it jumped.
#[test]
fn values_of_short_calls_that_end_behind_a_jump_are_forgotten() {
    let mut trace = Trace::new(Filter { min_duration: Nanos(15), ..Filter::default() });
    let values = vec![ValueInfo::new("key", ValueKind::Unsigned)];
    let first = trace.engine.add_function(FunctionInfo { values, ..passes_on("first") });
    let next = FunctionInfo { exit: ExitSeen::ByExitSites, ..function("next") };
    let next = trace.engine.add_function(next);
    trace.engine.set_successors(first, vec![next]);
    for (call, length) in [(0, 9), (1, 27), (2, 12)] {
        let start = 20 + 40 * call;
        trace.push_with(enter(first.0, 900, start), 0, &[call], 0);
        trace.push(jump(first.0, 900, start + 2)).push(enter(next.0, 900, start + 3));
        trace.push(at_ret(next.0, 900, start + length));
    }
    let recording = open(trace.end(200));
    assert_eq!((times(&recording), lost(&recording)), (vec![60], 0));
}
