//! A trace in ring bytes: two threads on two CPUs, four functions, nested three deep.
#![allow(dead_code, reason = "each program uses its own part")]

use ctrace_common::{Kind, RECORD_LEN, payload_slots};
use ctrace_core::engine::{Engine, EngineConfig, ReportMeta};
use ctrace_core::function::{FunctionInfo, ValueInfo, ValueKind};
use ctrace_core::recording::{End, Host, Start, Writer};
use ctrace_core::report::{Extras, Report};
use ctrace_core::units::{Nanos, Pid, Tid};

/// Records between two calls of `advance`, per ring: 10 ms at a million events a second.
const BATCH: usize = 10_000;
const HOLD_NS: u64 = 100_000_000;
/// Turns in which `load` is called once.
const SELDOM: usize = 1_000;
/// As many values as `load` has.
const VALUES: usize = 2;
/// The process of all threads.
pub(crate) const PID: u32 = 4_000;
const FUNCTIONS: [&str; 5] = ["handle", "parse", "work", "step", "load"];

pub(crate) struct Trace {
    rings: [Ring; 2],
    end: u64,
    pub(crate) calls: usize,
}

impl Trace {
    /// `handle` calls `parse` and `work`, and `work` calls `step` thrice: six calls a turn.
    pub(crate) fn new(calls: usize) -> Self {
        Self::with(calls, None)
    }

    /// The same, and every 1,000 turns a call of `load`, with values beside it or without.
    pub(crate) fn with_loads(calls: usize, with_values: bool) -> Self {
        Self::with(calls, Some(with_values))
    }

    fn with(calls: usize, loads: Option<bool>) -> Self {
        let turns = calls / 12;
        let mut rings = [Ring::default(), Ring::default()];
        let mut end = 0;
        for (cpu, ring) in rings.iter_mut().enumerate() {
            let mut random = 0x2545_f491_4f6c_dd1d_u64 + cpu as u64;
            let (mut ts, sp) =
                (1_000 + cpu as u64 * 37, 0x7fff_0000_0000_u64 + ((cpu as u64) << 32));
            let mut event = |probe: u32, kind: Kind, depth: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                ts += 300 + (random & 511);
                let record = event_of(ts, sp - depth * 96, PID + cpu as u32, probe, kind);
                ring.push(&record);
                if kind == Kind::Enter && FUNCTIONS[probe as usize] == "load" && loads == Some(true)
                {
                    ring.push(&payload_of(&record));
                }
            };
            for turn in 0..turns {
                event(0, Kind::Enter, 0);
                event(1, Kind::Enter, 1);
                event(1, Kind::Return, 1);
                event(2, Kind::Enter, 1);
                for _ in 0..3 {
                    event(3, Kind::Enter, 2);
                    event(3, Kind::Return, 2);
                }
                event(2, Kind::Return, 1);
                if loads.is_some() && turn % SELDOM == 0 {
                    event(4, Kind::Enter, 1);
                    event(4, Kind::Return, 1);
                }
                event(0, Kind::Return, 0);
            }
            end = end.max(ts);
        }
        Self { rings, end, calls: turns * 12 }
    }

    pub(crate) fn engine(&self) -> Engine {
        Self::engine_with(EngineConfig::default())
    }

    pub(crate) fn engine_with(config: EngineConfig) -> Engine {
        let mut engine = Engine::new(EngineConfig { rings: 2, ..config });
        let value = |name: &str| ValueInfo::new(name, ValueKind::Unsigned);
        for name in FUNCTIONS {
            let values =
                if name == "load" { ["key", "size"].map(value).into() } else { Vec::new() };
            engine.add_function(FunctionInfo { values, ..FunctionInfo::new(name, "server") });
        }
        engine
    }

    pub(crate) fn feed(&self, engine: &mut Engine) {
        self.feed_with(engine, |_| {});
    }

    /// The same; `advanced` is called every 10 ms of the trace.
    pub(crate) fn feed_with(&self, engine: &mut Engine, mut advanced: impl FnMut(&mut Engine)) {
        let mut rings = self.rings.each_ref().map(|ring| ring.batches.iter());
        let mut more = true;
        while more {
            more = false;
            let mut newest = 0;
            for (ring, batches) in rings.iter_mut().enumerate() {
                for run in batches.next().into_iter().flatten() {
                    for record in run.bytes.chunks_exact(run.length) {
                        engine.push(ring, record);
                        newest = u64::from_le_bytes(record[..8].try_into().unwrap_or_default());
                    }
                    more = true;
                }
            }
            engine.advance(Nanos(newest.saturating_sub(HOLD_NS)));
            advanced(engine);
        }
        engine.advance(Nanos(self.end));
        engine.end_chunk(Nanos(self.end));
        advanced(engine);
    }

    /// The trace as the bytes of a recording.
    pub(crate) fn record(&self) -> Vec<u8> {
        let mut engine =
            Self::engine_with(EngineConfig { record: true, ..EngineConfig::default() });
        for tid in [PID, PID + 1] {
            engine.name_thread(Pid(PID), Tid(tid), "worker");
        }
        let host = Host { name: "machine".to_owned(), ..Host::default() };
        let start = Start { host, ..Start::default() };
        let mut writer = Writer::new(Vec::new(), &start).expect("memory takes all");
        self.feed_with(&mut engine, |engine| {
            for block in engine.take_blocks() {
                writer.write(&block).expect("memory takes all");
            }
        });
        let end = End { end_ns: Nanos(self.end), ..End::default() };
        writer.finish(&end).expect("memory takes all")
    }

    pub(crate) fn report(&self, engine: &Engine) -> Report {
        engine.report(Nanos(self.end), ReportMeta { center_cut: 1.0, ..ReportMeta::default() })
    }

    /// The report of an interval, as daemons make it for tables.
    pub(crate) fn interval(&self, engine: &mut Engine) -> Report {
        let extras = Extras { latencies: true, path_latencies: true, ..Extras::default() };
        engine.report_interval(Nanos(self.end), ReportMeta { extras, ..ReportMeta::default() })
    }
}

/// Records of one length, one after the other.
struct Run {
    length: usize,
    bytes: Vec<u8>,
}

/// The records of a ring in batches, and each batch in runs. So a reader finds records at no cost,
/// whether some have values or not.
#[derive(Default)]
struct Ring {
    batches: Vec<Vec<Run>>,
    /// The number of records in the last batch.
    filled: usize,
}

impl Ring {
    fn push(&mut self, record: &[u8]) {
        if self.filled == BATCH || self.batches.is_empty() {
            self.batches.push(Vec::new());
            self.filled = 0;
        }
        self.filled += 1;
        let batch = self.batches.last_mut().expect("there is one");
        match batch.last_mut() {
            Some(run) if run.length == record.len() => run.bytes.extend_from_slice(record),
            _ => batch.push(Run { length: record.len(), bytes: record.to_vec() }),
        }
    }
}

/// Returns the record of an event, as an eBPF program writes it.
pub(crate) fn event_of(ts: u64, sp: u64, tid: u32, probe: u32, kind: Kind) -> [u8; RECORD_LEN] {
    let mut record = [0; RECORD_LEN];
    record[..8].copy_from_slice(&ts.to_le_bytes());
    record[8..16].copy_from_slice(&sp.to_le_bytes());
    record[16..20].copy_from_slice(&PID.to_le_bytes());
    record[20..24].copy_from_slice(&tid.to_le_bytes());
    record[24..28].copy_from_slice(&probe.to_le_bytes());
    record[28] = kind as u8;
    record
}

/// The record of an event's values, as an eBPF program writes it behind the event.
fn payload_of(event: &[u8; RECORD_LEN]) -> Vec<u8> {
    let mut record = event.to_vec();
    let slots = payload_slots(VALUES, 0) as u16;
    // No value is unread.
    record[8..16].fill(0);
    record[28] = Kind::Payload as u8;
    record[30..].copy_from_slice(&slots.to_le_bytes());
    (0..VALUES as u64).for_each(|value| record.extend(value.to_le_bytes()));
    record.resize(usize::from(slots) * RECORD_LEN, 0);
    record
}
