//! Tests that the fuzzer's first inputs are readable recordings. With CTRACE_WRITE_CORPUS they are
//! written anew.

use crate::payloads::typed;
use crate::support::{enter, function, point, ret};
use ctrace_core::diff::{FactsError, ReportFacts};
use ctrace_core::engine::{Engine, EngineConfig};
use ctrace_core::recording::replay::{Query, report};
use ctrace_core::recording::{End, Recording, Start, Writer};
use ctrace_core::report::render::json;
use ctrace_core::units::Nanos;
use std::path::Path;

fn recording(turns: u64, ended: bool) -> Vec<u8> {
    let mut engine = Engine::new(EngineConfig { record: true, ..EngineConfig::default() });
    for name in ["outer", "inner", "mark"] {
        engine.add_function(function(name));
    }
    engine.begin(Nanos::ZERO);
    let mut writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
    for turn in 0..turns {
        let at = turn * 1_000;
        let events = [
            enter(0, 900, at + 10),
            enter(1, 800, at + 20),
            point(2, 700, at + 30),
            ret(1, 800, at + 100 + turn),
            enter(1, 800, at + 200).on(7),
            ret(0, 900, at + 900),
        ];
        events.iter().for_each(|event| engine.push(0, &event.bytes()));
        engine.advance(Nanos(at + 950));
        engine.end_chunk(Nanos(at + 950));
        for block in engine.take_blocks() {
            writer.write(&block).expect("memory takes all");
        }
    }
    match ended {
        true => writer.finish(&End::default()).expect("memory takes all"),
        false => writer.into_inner(),
    }
}

/// Returns the repository's file of this name. It is replaced by `made` if the corpus is written
/// anew.
fn stored(target: &str, name: &str, made: &[u8]) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    if std::env::var_os("CTRACE_WRITE_CORPUS").is_some() {
        std::fs::create_dir_all(&folder).expect("made");
        std::fs::write(folder.join(name), made).expect("written");
    }
    std::fs::read(folder.join(name)).expect("it is in the repository")
}

#[test]
fn the_recordings_can_be_read() {
    for (name, turns, ended) in
        [("empty", 0, true), ("small", 1, true), ("killed", 3, false), ("large", 20, true)]
    {
        let stored = stored("recording", name, &recording(turns, ended));
        let recording = Recording::open(stored).expect("it can be read");
        assert_eq!(recording.chunks().len() as u64, turns, "{name}");
        for chunk in recording.chunks() {
            recording.chunk(chunk).expect("its calls can be read");
        }
    }
}

#[test]
fn a_recording_has_values_of_every_type() {
    for target in ["recording", "exports"] {
        let stored = stored(target, "values", &typed::recording());
        let recording = Recording::open(stored).expect("it can be read");
        let payloads = recording.payloads(&recording.chunks()[0]).expect("they are whole");
        assert_eq!(payloads.each.len(), 3, "{target}");
    }
}

#[test]
fn the_reports_can_be_compared() {
    let recording = Recording::open(recording(3, true)).expect("it was just made");
    let text = json::to_line(&report(&recording, &Query::default(), 1.0));
    let facts = ReportFacts::parse(&stored("report_facts", "report", text.as_bytes()));
    assert_eq!(facts.expect("a report").functions().len(), 3);
    let several = ReportFacts::parse(text.repeat(2).as_bytes());
    assert_eq!(several.err(), Some(FactsError::Several));
}
