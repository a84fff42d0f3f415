//! A trace in ring bytes: two threads on two CPUs, four functions, nested three deep.
#![allow(dead_code, reason = "each program uses its own part")]

use ctrace_common::{Kind, RECORD_LEN};
use ctrace_core::engine::{Engine, EngineConfig, ReportMeta};
use ctrace_core::function::FunctionInfo;
use ctrace_core::recording::{End, Host, Start, Writer};
use ctrace_core::report::Report;
use ctrace_core::units::{Nanos, Pid, Tid};

/// Records between two calls of `advance`, per ring: 10 ms at a million events a second.
const BATCH: usize = 10_000;
const HOLD_NS: u64 = 100_000_000;

pub(crate) struct Trace {
    rings: [Vec<u8>; 2],
    end: u64,
    pub(crate) calls: usize,
}

impl Trace {
    /// `handle` calls `parse` and `work`, and `work` calls `step` thrice: six calls a turn.
    pub(crate) fn new(calls: usize) -> Self {
        let turns = calls / 12;
        let mut rings = [Vec::new(), Vec::new()];
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
                ring.extend_from_slice(&ts.to_le_bytes());
                ring.extend_from_slice(&(sp - depth * 96).to_le_bytes());
                ring.extend_from_slice(&4_000_u32.to_le_bytes());
                ring.extend_from_slice(&(4_000 + cpu as u32).to_le_bytes());
                ring.extend_from_slice(&probe.to_le_bytes());
                ring.extend_from_slice(&[kind as u8, 0, 0, 0]);
            };
            for _ in 0..turns {
                event(0, Kind::Enter, 0);
                event(1, Kind::Enter, 1);
                event(1, Kind::Return, 1);
                event(2, Kind::Enter, 1);
                for _ in 0..3 {
                    event(3, Kind::Enter, 2);
                    event(3, Kind::Return, 2);
                }
                event(2, Kind::Return, 1);
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
        for name in ["handle", "parse", "work", "step"] {
            engine.add_function(FunctionInfo::new(name, "server"));
        }
        engine
    }

    pub(crate) fn feed(&self, engine: &mut Engine) {
        self.feed_with(engine, |_| {});
    }

    /// The same; `advanced` is called every 10 ms of the trace.
    pub(crate) fn feed_with(&self, engine: &mut Engine, mut advanced: impl FnMut(&mut Engine)) {
        let mut batches = self.rings.each_ref().map(|ring| ring.chunks(BATCH * RECORD_LEN));
        let mut more = true;
        while more {
            more = false;
            let mut newest = 0;
            for (ring, batches) in batches.iter_mut().enumerate() {
                for record in batches.next().into_iter().flat_map(|b| b.chunks_exact(RECORD_LEN)) {
                    engine.push(ring, record);
                    newest = u64::from_le_bytes(record[..8].try_into().unwrap_or_default());
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
        for tid in [4_000, 4_001] {
            engine.name_thread(Pid(4_000), Tid(tid), "worker");
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
}
