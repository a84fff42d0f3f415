//! Recordings that the engine made from events.

use super::{Event, PID};
use ctrace_core::engine::{Engine, EngineConfig};
use ctrace_core::function::FunctionInfo;
use ctrace_core::recording::{End, Start, Writer};
use ctrace_core::units::{Nanos, Pid, Tid};

/// The name of the thread that has the process's id.
pub(crate) const MAIN: &str = "main";

/// Records the events with a chunk after each group of them.
pub(crate) fn record(
    functions: &[FunctionInfo],
    start: &Start,
    groups: &[&[Event]],
    end: bool,
) -> Vec<u8> {
    let mut engine = Engine::new(EngineConfig { record: true, ..EngineConfig::default() });
    for info in functions {
        engine.add_function(info.clone());
    }
    engine.begin(Nanos(0));
    engine.name_thread(Pid(PID), Tid(PID), MAIN);
    let mut writer = Writer::new(Vec::new(), start).expect("memory takes all");
    let mut to = Nanos::ZERO;
    for group in groups {
        for event in *group {
            engine.push(0, &event.bytes());
            to = to.max(Nanos(event.ts));
        }
        engine.advance(to);
        engine.end_chunk(to);
        for block in engine.take_blocks() {
            writer.write(&block).expect("memory takes all");
        }
    }
    match end {
        true => writer.finish(&End { end_ns: to, ..End::default() }).expect("memory takes all"),
        false => writer.into_inner(),
    }
}
