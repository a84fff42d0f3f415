//! A file that begins in the middle of a trace knows what its ids stand for.

mod support;

use ctrace_common::Kind;
use ctrace_core::engine::EngineConfig;
use ctrace_core::record::{Definitions, Recording, Start, Writer};
use ctrace_core::units::Nanos;
use support::*;

/// Threads that call something in each second, and when they end.
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
        engine.take_blocks().into_iter().for_each(|block| definitions.note(block));
    }
    definitions
}

/// The ids that threads of the trace have in the system, of those a new file knows.
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
fn what_is_kept_is_no_less_than_was_asked_for() {
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
    let kept = |bytes| writer.newest_chunks(bytes).iter().map(|c| c.from.0).collect::<Vec<_>>();
    let last = writer.written() - begins.last().expect("blocks");
    assert_eq!(kept(1), [4_000], "at least one");
    assert_eq!(kept(last), [4_000]);
    assert_eq!(kept(last + 1), [3_000, 4_000]);
    assert_eq!(kept(u64::MAX), [0, 1_000, 2_000, 3_000, 4_000]);
}
