//! Recordings for tests of the command line, made by the engine from events.

use ctrace_common::{Kind, RECORD_LEN};
use ctrace_core::engine::{Engine, EngineConfig};
use ctrace_core::function::{FunctionInfo, FunctionKind};
use ctrace_core::recording::{End, Start, Writer};
use ctrace_core::report::TargetReport;
use ctrace_core::units::{Nanos, Pid, Tid};
use std::path::Path;
use std::process::{Command, Output};

/// An event of the only thread; functions lie deeper on the stack the later they were added.
pub(crate) struct Event {
    pub(crate) kind: Kind,
    pub(crate) function: u32,
    pub(crate) time: u64,
}

impl Event {
    fn bytes(&self) -> [u8; RECORD_LEN] {
        let mut record = [0; RECORD_LEN];
        let sp = 0x7fff_0000_u64 - u64::from(self.function) * 64;
        record[..8].copy_from_slice(&self.time.to_le_bytes());
        record[8..16].copy_from_slice(&sp.to_le_bytes());
        record[16..20].copy_from_slice(&7_u32.to_le_bytes());
        record[20..24].copy_from_slice(&7_u32.to_le_bytes());
        record[24..28].copy_from_slice(&self.function.to_le_bytes());
        record[28] = self.kind as u8;
        record
    }
}

/// `group/name` is a scope.
fn function(name: &str, object: &str) -> FunctionInfo {
    match name.split_once('/') {
        Some((group, name)) => FunctionInfo {
            kind: FunctionKind::Marker,
            group: Some(group.into()),
            ..FunctionInfo::new(name, object)
        },
        None => FunctionInfo::new(name, object),
    }
}

/// Returns the recording of a program that ran from 0 to `end`.
pub(crate) fn record(
    exe: &str,
    functions: &[&str],
    events: impl IntoIterator<Item = Event>,
    end: u64,
) -> Vec<u8> {
    let object = exe.rsplit('/').next().unwrap_or_default();
    let mut engine = Engine::new(EngineConfig { record: true, ..EngineConfig::default() });
    for name in functions {
        engine.add_function(function(name, object));
    }
    engine.begin(Nanos(0));
    engine.name_thread(Pid(7), Tid(7), "main");
    events.into_iter().for_each(|event| engine.push(0, &event.bytes()));
    let end_ns = Nanos(end);
    engine.advance(end_ns);
    engine.end_chunk(end_ns);
    let target = TargetReport { exe: Some(exe.to_owned()), ..TargetReport::default() };
    let start = Start { target: target.clone(), ..Start::default() };
    let mut writer = Writer::new(Vec::new(), &start).unwrap();
    engine.take_blocks().iter().for_each(|block| writer.write(block).unwrap());
    writer.finish(&End { end_ns, target, ..End::default() }).unwrap()
}

/// ctrace with these arguments, in a folder.
pub(crate) fn ctrace(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ctrace"));
    command.args(arguments).current_dir(folder).output().unwrap()
}
