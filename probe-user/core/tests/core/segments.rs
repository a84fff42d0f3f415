//! Tests that a file that begins in the middle of a trace defines its ids.

use crate::support::*;
use ctrace_common::Kind;
use ctrace_core::engine::EngineConfig;
use ctrace_core::recording::replay::{Query, report};
use ctrace_core::recording::{BlockKind, Definitions, End, Recording, Start, Writer};
use ctrace_core::report::render::json;
use ctrace_core::units::Nanos;

/// A thread, the seconds in which it calls something, and the second in which it ends.
struct Busy {
    tid: u32,
    seconds: &'static [u64],
    ends_in: Option<u64>,
}

const SECOND: u64 = 1_000;

fn definitions(threads: &[Busy], seconds: u64) -> Definitions {
    let mut engine = engine(&[function("f")], EngineConfig { record: true, ..Default::default() });
    let mut definitions = Definitions::default();
    for second in 0..seconds {
        let now = second * SECOND;
        for (Busy { tid, seconds, ends_in }, at) in threads.iter().zip(now + 1..) {
            if seconds.contains(&second) {
                engine.push(0, &enter(0, 900, at).on(*tid).bytes());
                engine.push(0, &ret(0, 900, at + 100).on(*tid).bytes());
            }
            if *ends_in == Some(second) {
                engine.push(0, &control(Kind::ThreadExit, at + 200, *tid, "gone", [0, 0]));
            }
        }
        engine.advance(Nanos(now + SECOND));
        engine.end_chunk(Nanos(now + SECOND));
        engine.take_blocks().into_iter().for_each(|block| definitions.note(&block));
    }
    definitions
}

/// Returns the system's ids of the threads that a new file knows.
fn known(definitions: &Definitions) -> Vec<u32> {
    let mut writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
    definitions.write(&mut writer).expect("memory takes all");
    let recording = Recording::open(writer.into_inner()).expect("a recording");
    assert_eq!(recording.functions().len(), 1);
    let ids = (1..100).filter_map(|id| recording.thread(ctrace_core::units::ThreadId(id)));
    ids.map(|thread| thread.tid.0).collect()
}

#[test]
fn a_thread_that_rests_is_known_and_one_that_ended_is_forgotten() {
    let mut definitions = definitions(
        &[
            Busy { tid: 1, seconds: &[0, 1, 2, 3], ends_in: None },
            Busy { tid: 2, seconds: &[0], ends_in: None },
            Busy { tid: 3, seconds: &[0], ends_in: Some(1) },
            Busy { tid: 4, seconds: &[0, 3], ends_in: Some(3) },
        ],
        4,
    );
    assert_eq!(known(&definitions), [1, 2, 3, 4]);
    definitions.forget_threads_before(Nanos(2 * SECOND));
    assert_eq!(known(&definitions), [1, 2, 4], "what 3 did is in no chunk any more");
    definitions.forget_threads_before(Nanos(4 * SECOND));
    assert_eq!(known(&definitions), [1, 2], "nor is what 4 did");
}

#[test]
fn what_is_kept_is_between_what_was_asked_for() {
    let mut engine = engine(&[function("f")], EngineConfig { record: true, ..Default::default() });
    let mut writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
    let mut begins = Vec::new();
    for second in 0..5 {
        let now = second * SECOND;
        for at in now + 1..now + 400 {
            engine.push(0, &point(0, 900, at).bytes());
        }
        engine.advance(Nanos(now + SECOND));
        engine.end_chunk(Nanos(now + SECOND));
        for block in engine.take_blocks() {
            begins.push(writer.written());
            writer.write(&block).expect("memory takes all");
        }
    }
    let between = |enough, most| {
        let chunks = writer.newest_chunks(enough, most);
        chunks.iter().map(|chunk| chunk.from.0).collect::<Vec<_>>()
    };
    let kept = |enough| between(enough, u64::MAX);
    let last = writer.written() - begins.last().expect("blocks");
    assert_eq!(kept(1), [4_000], "at least one");
    assert_eq!(kept(last), [4_000]);
    assert_eq!(kept(last + 1), [3_000, 4_000]);
    assert_eq!(kept(u64::MAX), [0, 1_000, 2_000, 3_000, 4_000]);
    assert_eq!(writer.chunks(), 5);
    assert!(between(1, last).is_empty(), "the index has to tell of it");
    assert_eq!(between(u64::MAX, last + 100), [4_000]);
    assert_eq!(between(u64::MAX, 2 * last + 100), [3_000, 4_000]);
}

/// Returns seconds of calls in one file, and in files of the given numbers of seconds. Functions
/// and threads appear one by one, and calls continue from file to file.
fn rotated(seconds_in_each: &[u64]) -> (Vec<u8>, Vec<Vec<u8>>) {
    rotated_by("1", seconds_in_each)
}

/// Like [`rotated`], by this version of ctrace.
fn rotated_by(version: &str, seconds_in_each: &[u64]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut engine = engine(&[function("f0")], EngineConfig { record: true, ..Default::default() });
    let begin = |from: u64| {
        let start = Start { start_ns: Nanos(from), ctrace: version.into(), ..Start::default() };
        Writer::new(Vec::new(), &start).expect("memory takes all")
    };
    let end = |writer: Writer<Vec<u8>>, at: u64, notes: &[&str]| {
        let notes = notes.iter().map(|note| note.to_string()).collect();
        let end = End { end_ns: Nanos(at), notes, ..End::default() };
        writer.finish(&end).expect("memory takes all")
    };
    let (mut whole, mut definitions, mut files) = (begin(0), Definitions::default(), Vec::new());
    engine.begin(Nanos(0));
    let mut second = 0;
    for seconds in seconds_in_each {
        let mut writer = begin(second * SECOND);
        definitions.forget_threads_before(Nanos(second * SECOND));
        definitions.write(&mut writer).expect("memory takes all");
        for _ in 0..*seconds {
            let (now, tid) = (second * SECOND, second as u32);
            let id = engine.add_function(function(&format!("f{}", second + 1))).0;
            engine.push(0, &enter(id, 900, now + 10).on(tid).bytes());
            engine.push(0, &enter(0, 800, now + 20).on(tid).bytes());
            engine.push(0, &ret(0, 800, now + 30 + second).on(tid).bytes());
            if second > 0 {
                engine.push(0, &ret(id - 1, 900, now + 500).on(tid - 1).bytes());
                engine.push(0, &control(Kind::ThreadExit, now + 600, tid - 1, "gone", [0, 0]));
            }
            second += 1;
            engine.advance(Nanos(second * SECOND));
            engine.end_chunk(Nanos(second * SECOND));
            for block in engine.take_blocks() {
                assert!(block.kind != BlockKind::Calls || block.calls() > 0);
                writer.write(&block).expect("memory takes all");
                whole.write(&block).expect("memory takes all");
                definitions.note(&block);
            }
        }
        files.push(end(writer, second * SECOND, &["it goes on"]));
    }
    // Only the last file tells the end of the trace.
    (end(whole, second * SECOND, &["it goes on"]), files)
}

/// Cuts a file off at the start of this chunk.
fn cut_before_chunk(file: &[u8], number: usize) -> Vec<u8> {
    let begins = |at: &usize| file[*at..].starts_with(b"CTRB\x04\0");
    let at = (0..file.len()).filter(begins).nth(number).expect("a chunk");
    file[..at].to_vec()
}

/// Joins the files of these numbers.
fn join(files: &[Vec<u8>], numbers: &[usize]) -> Result<String, String> {
    let open = |number: &usize| {
        let file = Recording::open(files[*number].clone()).expect("it stands for itself");
        (format!("file {number}"), file)
    };
    let joined = Recording::join(numbers.iter().map(open).collect());
    let joined = joined.map_err(|error| error.to_string())?;
    Ok(json::to_pretty(&report(&joined, &Query::default(), 1.0)))
}

#[test]
fn files_of_one_recording_are_as_if_there_were_one() {
    let (whole, files) = rotated(&[2, 1, 3]);
    let whole = Recording::open(whole).expect("a recording");
    let whole = json::to_pretty(&report(&whole, &Query::default(), 1.0));
    for numbers in [[0, 1, 2], [2, 0, 1]] {
        assert_eq!(join(&files, &numbers).as_ref(), Ok(&whole));
    }
}

#[test]
fn files_that_are_not_one_recording_are_told() {
    let (_, mut files) = rotated(&[1, 1, 1]);
    let missing = |before, after| {
        Err(format!(
            "file {after} does not go on where file {before} ends: a file between them is missing, \
             or one is given twice"
        ))
    };
    assert!(join(&files, &[1, 2]).is_ok());
    assert_eq!(join(&files, &[0, 2]), missing(0, 2));
    assert_eq!(join(&files, &[1, 1]), missing(1, 1));
    files.push(
        Writer::new(
            Vec::new(),
            &Start { start_ns: Nanos(SECOND), ctrace: "3".into(), ..Start::default() },
        )
        .and_then(|writer| writer.finish(&End::default()))
        .expect("memory takes all"),
    );
    let unrelated = join(&files, &[0, 3]).expect_err("it is another");
    assert!(unrelated.contains("file 3 is not of the same recording as file 0"), "{unrelated}");
    // The end of the second file is missing, and with it its chunk.
    let cut = files[1].len() / 2;
    files[1].truncate(cut);
    let report = join(&files, &[0, 1, 2]).expect("what there is");
    assert!(report.contains("unreadable_bytes"), "{report}");
}

#[test]
fn files_of_several_recordings_are_put_together() {
    let (of_one, of_another) = (rotated(&[2, 1]).1, rotated_by("2", &[1, 1]).1);
    let of_three = rotated(&[1, 1, 1]).1;
    let open = |(name, bytes): (&str, &Vec<u8>)| {
        (name.to_owned(), Recording::open(bytes.clone()).expect("a recording"))
    };
    let files =
        [("b2", &of_another[1]), ("a1", &of_one[0]), ("a2", &of_one[1]), ("b1", &of_another[0])];
    let all = Recording::join_each(files.into_iter().map(open).collect()).expect("two recordings");
    let names: Vec<_> = all.iter().map(|whole| whole.files.concat()).collect();
    assert_eq!(names, ["b2b1", "a1a2"]);
    let twice = [("a1", &of_one[0]), ("c", &of_one[0])].into_iter().map(open).collect();
    assert_eq!(Recording::join_each(twice).expect("two recordings").len(), 2);
    let apart = [("a1", &of_three[0]), ("a3", &of_three[2])].into_iter().map(open).collect();
    assert_eq!(Recording::join_each(apart).expect("two recordings").len(), 2);
}

#[test]
fn a_file_that_breaks_off_before_the_next_begins_is_refused() {
    let (_, mut files) = rotated(&[2, 2]);
    let whole = std::mem::take(&mut files[0]);
    files[0] = cut_before_chunk(&whole, 1);
    assert_eq!(Recording::open(files[0].clone()).expect("sound").unreadable(), 0);
    let refused = join(&files, &[0, 1]).expect_err("a chunk is missing");
    assert!(refused.contains("file 0 was not ended and breaks off before file 1"), "{refused}");
    // The file up to its last chunk.
    let end = whole.windows(6).position(|bytes| bytes == b"CTRB\x05\0").expect("an end");
    files[0] = whole[..end].to_vec();
    assert!(join(&files, &[0, 1]).is_ok());
}
