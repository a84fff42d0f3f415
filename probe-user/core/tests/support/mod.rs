//! Records and functions for tests of the engine as a session uses it.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod recorded;

use ctrace_common::{CONTROL_LEN, Kind, RECORD_LEN};
use ctrace_core::engine::{Engine, EngineConfig, ReportMeta};
use ctrace_core::function::{ExitSeen, FunctionInfo};
use ctrace_core::report::{FunctionReport, Report};
use ctrace_core::units::Nanos;

pub(crate) const PID: u32 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) kind: Kind,
    pub(crate) func: u32,
    pub(crate) sp: u64,
    pub(crate) ts: u64,
    pub(crate) tid: u32,
    pub(crate) lost: u16,
}

impl Event {
    pub(crate) fn bytes(&self) -> [u8; RECORD_LEN] {
        let mut bytes = [0; RECORD_LEN];
        bytes[..8].copy_from_slice(&self.ts.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.sp.to_le_bytes());
        bytes[16..20].copy_from_slice(&PID.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.tid.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.func.to_le_bytes());
        bytes[28] = self.kind as u8;
        bytes[30..].copy_from_slice(&self.lost.to_le_bytes());
        bytes
    }

    pub(crate) fn on(self, tid: u32) -> Self {
        Self { tid, ..self }
    }

    pub(crate) fn lost(self, lost: u16) -> Self {
        Self { lost, ..self }
    }
}

fn event(kind: Kind, func: u32, sp: u64, ts: u64) -> Event {
    Event { kind, func, sp, ts, tid: PID, lost: 0 }
}

pub(crate) fn enter(func: u32, sp: u64, ts: u64) -> Event {
    event(Kind::Enter, func, sp, ts)
}

pub(crate) fn ret(func: u32, sp: u64, ts: u64) -> Event {
    event(Kind::Return, func, sp, ts)
}

pub(crate) fn jump(func: u32, sp: u64, ts: u64) -> Event {
    event(Kind::ExitJump, func, sp, ts)
}

pub(crate) fn at_ret(func: u32, sp: u64, ts: u64) -> Event {
    event(Kind::ExitRet, func, sp, ts)
}

pub(crate) fn point(func: u32, sp: u64, ts: u64) -> Event {
    event(Kind::Point, func, sp, ts)
}

pub(crate) fn control(kind: Kind, ts: u64, tid: u32, name: &str, args: [u64; 2]) -> Vec<u8> {
    let mut bytes = vec![0; CONTROL_LEN];
    bytes[..RECORD_LEN].copy_from_slice(&Event { tid, ..event(kind, 0, 0, ts) }.bytes());
    bytes[RECORD_LEN..RECORD_LEN + name.len()].copy_from_slice(name.as_bytes());
    bytes[48..56].copy_from_slice(&args[0].to_le_bytes());
    bytes[56..].copy_from_slice(&args[1].to_le_bytes());
    bytes
}

pub(crate) fn function(name: &str) -> FunctionInfo {
    FunctionInfo::new(name, "app")
}

pub(crate) fn tail_caller(name: &str) -> FunctionInfo {
    FunctionInfo { may_tail_jump: true, ..function(name) }
}

/// A function whose ways out are probed, and whose jumps lead to traced functions.
pub(crate) fn passes_on(name: &str) -> FunctionInfo {
    FunctionInfo { exit: ExitSeen::ByExitSites, ends_with_successor: true, ..tail_caller(name) }
}

pub(crate) fn engine(functions: &[FunctionInfo], config: EngineConfig) -> Engine {
    let mut engine = Engine::new(config);
    for info in functions {
        engine.add_function(info.clone());
    }
    engine
}

pub(crate) fn meta(center_cut: f64) -> ReportMeta {
    ReportMeta { center_cut, ..ReportMeta::default() }
}

/// Returns the metadata with optional parts of a report.
pub(crate) fn meta_with(extras: ctrace_core::report::Extras) -> ReportMeta {
    ReportMeta { extras, ..meta(10.0) }
}

/// Returns one line per function with calls, with the numbers that a user would check first.
pub(crate) fn lines(report: &Report) -> Vec<String> {
    let hit = report.functions.iter().filter(|f| f.calls + f.headless > 0);
    hit.map(|f: &FunctionReport| {
        let mut line = format!("{}: {} calls, {} timed", f.name, f.calls, f.timed);
        for (count, what) in [(f.untimed, "untimed"), (f.open, "open"), (f.headless, "headless")] {
            if count > 0 {
                line += &format!(", {count} {what}");
            }
        }
        line + &format!(", total {} self {}", f.total_ns.0, f.self_ns.0)
    })
    .collect()
}

pub(crate) fn path_lines(report: &Report) -> Vec<String> {
    let line = |p: &ctrace_core::report::PathReport| format!("{} {}", p.path.join(">"), p.calls);
    report.paths.iter().map(line).collect()
}

pub(crate) fn end(ts: u64) -> Nanos {
    Nanos(ts)
}
