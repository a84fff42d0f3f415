//! Tests that a recorded trace has every call when it is read again, even if it was cut off
//! anywhere.

#[path = "../../examples/read_recording.rs"]
#[allow(dead_code, reason = "its main is for people")]
mod read_recording;

use crate::support::{Event, PID, enter, function, point, recorded, ret};
use ctrace_core::recording::{RecordError, Recording, Start};

fn record(groups: &[&[Event]], end: bool) -> Vec<u8> {
    let functions = ["outer", "inner", "mark"].map(function);
    recorded::record(&functions, &Start::default(), groups, end)
}

const FIRST: &[Event] = &[];

fn groups() -> Vec<Vec<Event>> {
    vec![
        vec![enter(0, 900, 10), enter(1, 800, 20), ret(1, 800, 25), point(2, 850, 27)],
        vec![enter(1, 800, 40), ret(1, 800, 70)],
        vec![ret(0, 900, 100), enter(0, 900, 110).on(7)],
    ]
}

/// Returns name of the path, start, duration and timed for calls in readable chunks, by time of the
/// end.
fn calls(recording: &Recording) -> Vec<(String, u64, u64, bool)> {
    let mut calls = Vec::new();
    for entry in recording.chunks() {
        let Ok(chunk) = recording.chunk(entry) else { continue };
        for thread in chunk.threads() {
            for call in chunk.calls(thread).iter().rev() {
                let (mut path, mut names) = (call.path(), Vec::new());
                while let Some(node) = recording.path(path) {
                    names.insert(0, recording.functions()[node.function.index()].name.to_string());
                    path = node.parent;
                }
                let (start, duration) = (call.start().0, call.duration().0);
                calls.push((names.join(";"), start, duration, call.is_timed()));
            }
        }
    }
    calls
}

fn expected() -> Vec<(String, u64, u64, bool)> {
    [
        ("outer;inner", 20, 5, true),
        ("outer;mark", 27, 0, false),
        ("outer;inner", 40, 30, true),
        ("outer", 10, 90, true),
    ]
    .map(|(path, start, duration, timed)| (path.to_owned(), start, duration, timed))
    .into()
}

#[test]
fn every_call_comes_back() {
    let groups = groups();
    let groups: Vec<&[Event]> = groups.iter().map(Vec::as_slice).collect();
    for ended in [true, false] {
        let recording = Recording::open(record(&groups, ended)).expect("a recording");
        assert_eq!(calls(&recording), expected());
        assert_eq!((recording.end().is_some(), recording.unreadable()), (ended, 0));
        let windows: Vec<_> =
            recording.chunks().iter().map(|c| (c.from.0, c.to.0, c.calls)).collect();
        assert_eq!(windows, [(0, 27, 2), (27, 70, 1), (70, 110, 1)]);
        let last = recording.chunk(&recording.chunks()[2]).expect("a chunk");
        let open: Vec<_> = last.threads().iter().flat_map(|t| &t.open).map(|o| o.start.0).collect();
        assert_eq!(open, [110]);
        let threads = last.threads().iter().map(|t| recording.thread(t.thread).expect("named"));
        let threads: Vec<_> = threads.map(|t| (t.tid.0, &*t.name)).collect();
        assert_eq!(threads, [(PID, "main"), (7, "")]);
    }
}

#[test]
fn the_example_prints_the_slowest_call_of_each_function() {
    let groups = groups();
    let groups: Vec<&[Event]> = groups.iter().map(Vec::as_slice).collect();
    let recording = Recording::open(record(&groups, true)).expect("a recording");
    let mut out = Vec::new();
    read_recording::print(&recording, &mut out).expect("memory takes all");
    let lines = [
        "    0.000090 ms  outer, in main, 0.000010 ms after the start\n",
        "    0.000030 ms  inner, in main, 0.000040 ms after the start\n",
    ];
    assert_eq!(String::from_utf8_lossy(&out), lines.concat());
}

#[test]
fn what_was_whole_before_the_cut_is_read() {
    let groups = groups();
    let groups: Vec<&[Event]> = groups.iter().map(Vec::as_slice).collect();
    let bytes = record(&groups, true);
    let mut seen = Vec::new();
    for cut in 0..bytes.len() {
        match Recording::open(bytes[..cut].to_vec()) {
            Ok(recording) => {
                let calls = calls(&recording);
                assert_eq!(calls, expected()[..calls.len()]);
                seen.push(calls.len());
            }
            Err(RecordError::NotARecording | RecordError::Empty) => assert!(seen.is_empty()),
            Err(error) => panic!("cut at {cut}: {error}"),
        }
    }
    seen.dedup();
    assert_eq!(seen, [0, 2, 3, 4]);
}

#[test]
fn damage_is_an_error_and_never_another_call() {
    let groups = groups();
    let groups: Vec<&[Event]> = groups.iter().map(Vec::as_slice).collect();
    for ended in [true, false] {
        let whole = record(&groups, ended);
        let check = |damaged: Vec<u8>, at: usize| {
            let is_cut = damaged.len() < whole.len();
            let Ok(recording) = Recording::open(damaged) else { return };
            let calls = calls(&recording);
            assert!(calls.iter().all(|call| expected().contains(call)), "byte {at}: {calls:?}");
            let is_told = recording.unreadable() > 0 || ended || is_cut;
            assert!(calls.len() == 4 || is_told, "byte {at}");
        };
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << bit;
                check(bytes, at);
            }
            for length in [1, 24, 60, 100, 300] {
                let end = whole.len().min(at + length);
                let mut bytes = whole.clone();
                bytes[at..end].fill(0);
                check(bytes, at);
                check([&whole[..at], &whole[end..]].concat(), at);
            }
        }
    }
}

/// Returns the starts of the blocks of a kind. Their contents follow a header of 24 bytes.
fn blocks(bytes: &[u8], kind: u8) -> Vec<usize> {
    let head = [b"CTRB".as_slice(), &[kind, 0]].concat();
    (0..bytes.len()).filter(|&at| bytes[at..].starts_with(&head)).collect()
}

#[test]
fn damage_costs_its_own_chunk_where_there_is_no_index_too() {
    let groups = groups();
    let groups: Vec<&[Event]> = groups.iter().map(Vec::as_slice).collect();
    let whole = record(&groups, false);
    let second = blocks(&whole, 4)[1];
    // Its magic number, kind, length, checksum and contents.
    for at in [0, 4, 8, 20, 24] {
        let mut bytes = whole.clone();
        bytes[second + at] ^= 0x55;
        let recording = Recording::open(bytes).expect("the rest of it");
        let kept: Vec<_> = expected().into_iter().filter(|call| call.1 != 40).collect();
        assert_eq!(calls(&recording), kept, "byte {at}");
        assert!((1..100).contains(&recording.unreadable()), "byte {at}");
    }
}

/// An example is an index with entries of a later ctrace.
#[test]
fn nothing_is_missing_where_only_the_index_cannot_be_found_or_read() {
    let groups = groups();
    let groups: Vec<&[Event]> = groups.iter().map(Vec::as_slice).collect();
    let whole = record(&groups, true);
    let index = *blocks(&whole, 6).last().expect("an index");
    // Its header, its contents, and the reference to it.
    for at in [index, index + 8, index + 24, whole.len() - 16, whole.len() - 8, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        let recording = Recording::open(bytes).expect("its blocks are sound");
        assert_eq!((calls(&recording), recording.unreadable()), (expected(), 0), "byte {at}");
        assert!(recording.end().is_some());
    }
}

#[test]
fn what_came_before_damaged_names_is_read() {
    let groups = groups();
    let groups: Vec<&[Event]> = groups.iter().map(Vec::as_slice).collect();
    for ended in [true, false] {
        let mut bytes = record(&groups, ended);
        // The thread that occurs last.
        let names = *blocks(&bytes, 2).last().expect("names");
        bytes[names + 24] ^= 0x55;
        let unreadable = (bytes.len() - names) as u64;
        let recording = Recording::open(bytes).expect("what came before");
        assert_eq!(calls(&recording), expected()[..3], "up to the second chunk");
        assert_eq!(recording.unreadable(), unreadable);
    }
}

#[test]
fn others_files_and_newer_ones_are_told() {
    assert!(matches!(Recording::open(Vec::new()), Err(RecordError::NotARecording)));
    assert!(matches!(Recording::open(vec![b'x'; 500]), Err(RecordError::NotARecording)));
    let mut newer = record(&[FIRST], true);
    newer[8] = 2;
    assert!(matches!(Recording::open(newer), Err(RecordError::Newer { found: 2, known: 1 })));
}

/// Checks the reports of intervals and a recording of the same calls, from one engine.
#[test]
fn what_is_kept_beside_reports_is_whole() {
    use ctrace_core::engine::{Engine, EngineConfig, ReportMeta};
    use ctrace_core::recording::{End, Writer};
    use ctrace_core::units::Nanos;
    let mut engine = Engine::new(EngineConfig { keep: true, ..EngineConfig::default() });
    for name in ["outer", "inner", "mark"] {
        engine.add_function(function(name));
    }
    engine.watch_slow(Nanos(30), |function| &*function.name != "outer");
    engine.begin(Nanos(0));
    let mut writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
    let mut told = Vec::new();
    let (mut reported, mut to) = (0, 0);
    for group in groups() {
        for event in &group {
            engine.push(0, &event.bytes());
            to = to.max(event.ts);
        }
        engine.advance(Nanos(to));
        let report = engine.report_interval(Nanos(to), ReportMeta::default());
        reported += report.functions.iter().map(|f| f.calls - f.open).sum::<u64>();
        for block in engine.take_blocks() {
            writer.write(&block).expect("memory takes all");
        }
        let slow = engine.take_slow();
        let slow = slow.map(|(slow, f)| (f.name.to_string(), slow.duration.0, slow.calls));
        told.extend(slow);
    }
    let end = End { end_ns: Nanos(to), ..End::default() };
    let bytes = writer.finish(&end).expect("memory takes all");
    assert_eq!(calls(&Recording::open(bytes).expect("a recording")), expected());
    assert_eq!(reported, 4);
    assert_eq!(told, [("inner".to_owned(), 30, 1)]);
}

/// A chunk may end before it is known when tracing was armed, and has counts of its own.
#[test]
fn counts_from_before_the_arming_are_not_taken_from_later_ones() {
    use ctrace_core::engine::{Engine, EngineConfig};
    use ctrace_core::recording::Writer;
    use ctrace_core::units::Nanos;
    let mut engine = Engine::new(EngineConfig { record: true, ..EngineConfig::default() });
    engine.count_malformed(5);
    engine.end_chunk(Nanos(10));
    engine.begin(Nanos(10));
    engine.count_malformed(2);
    engine.end_chunk(Nanos(20));
    let mut writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
    for block in engine.take_blocks() {
        writer.write(&block).expect("memory takes all");
    }
    let recording = Recording::open(writer.into_inner()).expect("a recording");
    let errors = |entry| recording.chunk(entry).expect("a chunk").loss.decode_errors;
    assert_eq!(recording.chunks().iter().map(errors).collect::<Vec<_>>(), [5, 2]);
}
