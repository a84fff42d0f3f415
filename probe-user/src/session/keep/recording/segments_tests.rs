//! Tests of the sizes of a recording's files.

use super::{
    files::Replace,
    progress::RecordingProgress,
    segments::{Limit, RecordingSummary, Segments},
};
use crate::files::{Owner, Place};
use ctrace_common::{Kind, RECORD_LEN};
use ctrace_core::engine::{Engine, EngineConfig};
use ctrace_core::function::FunctionInfo;
use ctrace_core::recording::{CHUNK_CALLS, End, Recording, Start, Writer};
use ctrace_core::units::Nanos;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

const MIB: u64 = 1 << 20;
/// The time between chunks: far longer than usual, so that files are full soon.
const STEP: u64 = 1 << 40;

fn event(kind: Kind, time: u64) -> [u8; RECORD_LEN] {
    let mut record = [0; RECORD_LEN];
    record[..8].copy_from_slice(&time.to_le_bytes());
    record[8..16].copy_from_slice(&900_u64.to_le_bytes());
    record[16..20].copy_from_slice(&7_u32.to_le_bytes());
    record[20..24].copy_from_slice(&7_u32.to_le_bytes());
    record[28] = kind as u8;
    record
}

fn next(random: &mut u64) -> u64 {
    *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
    *random >> 16
}

fn noise(random: &mut u64, length: usize) -> String {
    (0..length).map(|_| char::from(b'a' + (next(random) % 26) as u8)).collect()
}

/// A recording in progress.
struct Making {
    segments: Segments,
    progress: Arc<RecordingProgress>,
    engine: Engine,
    random: u64,
    end: u64,
}

fn started(path: &Path, limit: Limit) -> Making {
    let place = Place::find(path, Owner::Ours).expect("a place");
    let progress = Arc::new(RecordingProgress::default());
    let mut segments =
        Segments::create(place, Replace::Nothing, limit, Arc::clone(&progress)).expect("a file");
    segments.begin(Start::default()).expect("written");
    let mut engine = Engine::new(EngineConfig { record: true, ..EngineConfig::default() });
    engine.begin(Nanos(0));
    Making { segments, progress, engine, random: 1, end: 0 }
}

impl Making {
    /// Adds chunks with these numbers of calls, each call of another duration, and a new function
    /// before each chunk.
    fn chunks(&mut self, chunks: &[u64]) {
        let Self { segments, engine, random, end, .. } = self;
        for calls in chunks {
            // The name in the last chunk is long, to take more room than a chunk with some calls.
            let number = *end / STEP;
            let name = if *calls == 0 { noise(random, 2_000) } else { format!("f{number}") };
            engine.add_function(FunctionInfo::new(name, "a"));
            for call in 0..*calls {
                let begin = *end + 1 + call * 10_000_000;
                engine.push(0, &event(Kind::Enter, begin));
                engine.push(0, &event(Kind::Return, begin + next(random) % 9_999_999));
            }
            *end += STEP;
            engine.advance(Nanos(*end));
            engine.end_chunk(Nanos(*end));
            for block in engine.take_blocks() {
                segments.write(block).expect("written");
            }
        }
    }

    fn finish(self) -> RecordingSummary {
        let end = End { end_ns: Nanos(self.end), ..End::default() };
        self.segments.finish(end).expect("written")
    }
}

fn record(path: &Path, limit: Limit, chunks: &[u64]) -> RecordingSummary {
    let mut making = started(path, limit);
    making.chunks(chunks);
    making.finish()
}

/// Checks the calls in each of the files, which must be sound and no larger than this.
#[track_caller]
fn check(limit: Limit, largest: u64, chunks: &[u64], expected: &[&[u64]]) -> RecordingSummary {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = record(&folder.path().join("trace.ctrace"), limit, chunks);
    let calls = |path: &std::path::PathBuf| -> Vec<u64> {
        let file = File::open(path).expect("there");
        let size = file.metadata().expect("known").len();
        assert!(size <= largest, "{}: {size} bytes", path.display());
        let recording = Recording::open(file).expect("sound");
        assert!(recording.end().is_some() && recording.unreadable() == 0);
        let chunks = recording.chunks().iter();
        chunks.map(|entry| recording.chunk(entry).expect("sound").len() as u64).collect()
    };
    let calls: Vec<_> = kept.files.iter().map(calls).collect();
    assert_eq!(calls, expected);
    let there = std::fs::read_dir(&folder).expect("there").count();
    assert_eq!(there, expected.len(), "no other files");
    kept
}

/// This many calls take about 300 KiB.
const SOME: u64 = 50_000;

#[test]
fn a_file_ends_before_the_chunk_that_would_be_too_much() {
    let all = Limit::Rotate { at: MIB, keep: None };
    check(all, MIB, &[SOME; 2], &[&[SOME; 2]]);
    check(all, MIB, &[SOME; 7], &[&[SOME; 3], &[SOME; 3], &[SOME]]);
    let last = Limit::Rotate { at: MIB, keep: Some(1) };
    let kept = check(last, MIB, &[SOME; 7], &[&[SOME]]);
    assert_eq!(kept.newest_from, Some(Nanos(6 * STEP)));
}

#[test]
fn a_chunk_without_calls_begins_no_file() {
    let all = Limit::Rotate { at: MIB, keep: None };
    let chunks = |few: usize| [&[SOME; 3][..], &vec![50; few]].concat();
    let files = |few: usize| {
        let folder = tempfile::tempdir().expect("a folder");
        record(&folder.path().join("trace.ctrace"), all, &chunks(few)).files.len()
    };
    // The most calls that fit into the first file, found by halving.
    let (mut fit, mut too_many) = (0, 1_000);
    while too_many - fit > 1 {
        let few = (fit + too_many) / 2;
        *(if files(few) == 1 { &mut fit } else { &mut too_many }) = few;
    }
    assert!(fit > 0 && too_many < 1_000, "{fit}");
    let full = [chunks(fit), vec![0]].concat();
    check(all, MIB, &full, &[&full]);
    check(all, MIB, &chunks(too_many), &[&chunks(fit), &[50]]);
}

#[test]
fn the_newest_calls_fit_into_what_they_may_take() {
    check(Limit::Newest(MIB), MIB, &[SOME; 3], &[&[SOME; 3]]);
    check(Limit::Newest(MIB), MIB, &[SOME; 4], &[&[SOME; 3]]);
    // With one more call the chunk would end by itself.
    let most = CHUNK_CALLS as u64 - 1;
    for count in [3, 4, 5] {
        let kept = check(Limit::Newest(MIB), MIB, &vec![most; count], &[&[most; 2]]);
        assert_eq!(kept.newest_from, Some(Nanos((count as u64 - 2) * STEP)));
    }
}

#[test]
fn nothing_was_dropped_before_the_first_chunk() {
    let kept = check(Limit::Newest(MIB), MIB, &[SOME; 3], &[&[SOME; 3]]);
    assert_eq!(kept.newest_from, None);
}

#[test]
fn a_file_that_was_moved_away_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.ctrace");
    let mut segments = started(&path, Limit::Rotate { at: MIB, keep: Some(2) });
    segments.chunks(&[SOME; 4]);
    std::fs::remove_file(&path).expect("the first file");
    segments.chunks(&[SOME; 3]);
    let kept = segments.finish();
    let names: Vec<_> = kept.files.iter().filter_map(|file| file.file_name()).collect();
    assert_eq!(names, ["trace.1.ctrace", "trace.2.ctrace"]);
}

#[test]
fn names_that_are_taken_are_stepped_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let first = path("trace.ctrace");
    let mut making = started(&first, Limit::Rotate { at: MIB, keep: Some(2) });
    // These appear after the start: at the start they would be refused.
    std::fs::write(path("trace.1.ctrace"), "mine").expect("written");
    std::os::unix::fs::symlink("/etc/passwd", path("trace.2.ctrace")).expect("made");
    std::fs::create_dir(path("trace.3.ctrace")).expect("made");
    let other = Writer::new(Vec::new(), &Start::default()).expect("a recording").into_inner();
    std::fs::write(path("trace.5.ctrace"), other).expect("written");
    making.chunks(&[SOME; 4]);
    let remarks = making.progress.take_remarks();
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    assert!(remarks[0].contains("trace.1.ctrace is there already"), "{remarks:?}");
    assert!(remarks[0].ends_with("trace.4.ctrace"), "{remarks:?}");
    making.chunks(&[SOME; 6]);
    let kept = making.finish();
    let names: Vec<_> = kept.files.iter().filter_map(|file| file.file_name()).collect();
    assert_eq!(names, ["trace.6.ctrace", "trace.7.ctrace"]);
    assert!(
        kept.files.iter().all(|file| Recording::open(File::open(file).expect("there")).is_ok())
    );
    assert!(!first.exists() && !path("trace.4.ctrace").exists(), "the oldest went");
    assert_eq!(std::fs::read_to_string(path("trace.1.ctrace")).expect("text"), "mine");
    assert!(path("trace.2.ctrace").is_symlink() && path("trace.3.ctrace").is_dir());
    assert!(path("trace.5.ctrace").exists(), "it was nobody's of ours");
}

/// A file that was there before, such as one of mktemp(1), is its owner's.
#[test]
fn only_a_new_file_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (of_before, new) = (folder.path().join("before"), folder.path().join("new"));
    File::create(&of_before).expect("made");
    for path in [&of_before, &new] {
        let mut making = started(path, Limit::None);
        making.chunks(&[3]);
        making.segments.discard().expect("discarded");
    }
    assert_eq!(std::fs::metadata(&of_before).expect("it is left").len(), 0);
    assert!(!new.exists());
}
