//! The fuzzer's first inputs are recordings that can be read; with CTRACE_WRITE_CORPUS they are
//! written anew.

mod support;

use ctrace_core::engine::{Engine, EngineConfig};
use ctrace_core::record::{End, Recording, Start, Writer};
use ctrace_core::units::Nanos;
use std::path::Path;
use support::{enter, function, point, ret};

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

#[test]
fn the_corpus_can_be_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/recording");
    for (name, turns, ended) in
        [("empty", 0, true), ("small", 1, true), ("killed", 3, false), ("large", 20, true)]
    {
        let (path, bytes) = (folder.join(name), recording(turns, ended));
        if std::env::var_os("CTRACE_WRITE_CORPUS").is_some() {
            std::fs::write(&path, &bytes).expect("written");
        }
        let stored = std::fs::read(&path).expect("it is in the repository");
        let recording = Recording::open(stored).expect("it can be read");
        assert_eq!(recording.chunks().len() as u64, turns, "{name}");
        for chunk in recording.chunks() {
            recording.chunk(chunk).expect("its calls can be read");
        }
    }
}
