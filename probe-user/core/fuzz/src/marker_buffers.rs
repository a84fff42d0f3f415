//! Any bytes in the marker buffers of a target, read in any order and between any changes of its
//! processes, give a report with no more calls than there were slots. The input is a list of steps;
//! buffers have a valid mark and plausible slots, or hardly any input would come far, and then bytes
//! written over.

use ctrace_core::engine::{Engine, EngineConfig, ReportMeta};
use ctrace_core::function::{ExitSeen, FunctionInfo, FunctionKind};
use ctrace_core::marker::{
    BUFFER_LEN, BufferId, Carried, ClockSample, MarkerObject, MarkerPlace, MarkerRuntime, ObjectId,
    Passed, Reading, Ticks,
};
use ctrace_core::units::{FuncId, Nanos, Pid, Tid};

const SECTION: u64 = 0x5555_5555_4000;
const STACK: u64 = 0x7ffd_0000_8000;
const FIRST_PID: u32 = 70;

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn number<const LENGTH: usize>(&mut self) -> u64 {
        self.bytes(LENGTH).iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn pid(&mut self) -> Pid {
        Pid(FIRST_PID + self.number::<1>() as u32 % 3)
    }

    fn buffer(&mut self) -> BufferId {
        BufferId { pid: self.pid(), address: 0x7000_0000_0000 + 0x1000 * (self.number::<1>() % 3) }
    }

    fn contents(&mut self) -> Box<[u8; BUFFER_LEN]> {
        let mut bytes = Box::new([0; BUFFER_LEN]);
        bytes[..8].copy_from_slice(b"ctraceb\x01");
        bytes[20..24].copy_from_slice(&(self.number::<2>() as u32).to_le_bytes());
        bytes[32..40].copy_from_slice(&self.number::<2>().to_le_bytes());
        bytes[40] = 1 + self.number::<1>() as u8 % 2;
        bytes[48..56].copy_from_slice(&self.number::<1>().to_le_bytes());
        bytes[56..].as_chunks_mut().0[0] = STACK.to_le_bytes();
        let slots = self.number::<1>() as usize;
        for slot in bytes[64..].as_chunks_mut::<16>().0.iter_mut().take(slots) {
            let (time, sp) = (self.number::<2>(), STACK - 16 * self.number::<1>());
            let what = self.number::<1>();
            // Its scope, whether it is the exit, and whether it is a whole call.
            let (site, ends, whole) = (SECTION + 32 * (what % 5), what >> 3 & 1, what >> 4 & 1);
            slot[..8].copy_from_slice(&(time | sp >> 4 << 48).to_le_bytes());
            let high = if whole == 1 { what >> 5 } else { sp >> 20 };
            slot[8..].copy_from_slice(&(site | ends | whole << 1 | high << 47).to_le_bytes());
        }
        for _ in 0..self.number::<1>() % 16 {
            bytes[self.number::<2>() as usize % BUFFER_LEN] = self.number::<1>() as u8;
        }
        bytes
    }

    fn reading(&mut self) -> Reading {
        let (buffer, flags) = (self.buffer(), self.number::<1>());
        let runtime = flags as u32 >> 6;
        Reading {
            buffer,
            tid: Tid(buffer.pid.0 + flags as u32 % 3),
            time: Nanos(self.number::<2>()),
            passed: (flags & 4 != 0)
                .then(|| Passed { runtime, address: SECTION + self.number::<2>() }),
            before: (flags & 8 != 0).then(|| self.contents()),
            bytes: self.contents(),
        }
    }
}

fn traced() -> (Engine, ObjectId) {
    let config = EngineConfig { spool_bytes: 4096, max_paths: 20, ..EngineConfig::default() };
    let mut engine = Engine::new(config);
    for _ in 0..2 {
        let (kind, exit) = (FunctionKind::Marker, ExitSeen::ByExitSites);
        engine.add_function(FunctionInfo { kind, exit, ..FunctionInfo::new("f", "app") });
    }
    // One of three scopes is not chosen, and one of two has a second place.
    let places = [Some((0, 0)), None, Some((1, 0)), Some((0, 1))];
    // A number and a text come with the entries of the first, and the other one is a point.
    let place = |(function, number)| MarkerPlace {
        is_named_late: number & 1 == 1,
        is_point: function == 1,
        carried: Carried { numbers: 1, has_text: number & 1 == 0 },
        ..MarkerPlace::new(FuncId(function), number)
    };
    let functions = places.map(|at| at.map(place)).into();
    let object = engine.markers().add_object(MarkerObject { section: SECTION, functions });
    engine.markers().add_runtime(MarkerRuntime { object, flush: SECTION, register: SECTION });
    (engine, object)
}

/// Slots with anything in them.
fn written(bytes: &[u8; BUFFER_LEN]) -> u64 {
    bytes[64..].as_chunks::<16>().0.iter().filter(|slot| **slot != [0; 16]).count() as u64
}

/// Kinds of records that tell of processes, threads and buffers.
const CHANGES: std::ops::RangeInclusive<u8> = 16..=21;

/// Says how many calls it can add at most.
fn step(engine: &mut Engine, object: ObjectId, input: &mut Input) -> u64 {
    match input.number::<1>() % 9 {
        0..=2 => {
            let reading = input.reading();
            let slots = written(&reading.bytes) + reading.before.as_deref().map_or(0, written);
            engine.markers().read(reading);
            return slots;
        }
        3 => {
            let time = Nanos(input.number::<2>());
            let sample = ClockSample { ticks: Ticks(input.number::<3>()), time };
            engine.sample_clocks(sample, time);
        }
        4 => engine.advance(Nanos(input.number::<2>())),
        5 => {
            let (pid, bias) = (input.pid(), input.number::<1>() << 12);
            engine.markers().map_object(pid, object, bias, Nanos(input.number::<2>()));
        }
        6 => {
            let lost = (input.buffer(), input.number::<3>());
            engine.markers().set_cut_off([lost], Nanos::ZERO);
        }
        7 => {
            let (buffer, bytes) = (input.buffer(), input.contents());
            engine.markers().adopt(buffer, &bytes, Nanos(input.number::<2>()));
        }
        _ => {
            let mut record = [0; 64];
            record[..8].copy_from_slice(&input.number::<2>().to_le_bytes());
            let pid = input.pid().0;
            record[16..20].copy_from_slice(&pid.to_le_bytes());
            record[20..24].copy_from_slice(&(pid + input.number::<1>() as u32 % 3).to_le_bytes());
            let kinds = CHANGES.len() as u64;
            record[28] = CHANGES.start() + (input.number::<1>() % kinds) as u8;
            // What does not belong to the kind stays 0, or the record would not be taken at all.
            let (child, site) = (input.pid().0.to_le_bytes(), SECTION + input.number::<2>());
            match record[28] {
                16 | 17 => record[48..52].copy_from_slice(&child),
                21 => record[56..].copy_from_slice(&site.to_le_bytes()),
                _ => {}
            }
            engine.push(0, &record);
        }
    }
    0
}

pub fn check(bytes: &[u8]) {
    let (mut engine, object) = traced();
    let mut input = Input(bytes);
    let mut slots = 0;
    while !input.0.is_empty() {
        slots += step(&mut engine, object, &mut input);
    }
    engine.sample_clocks(ClockSample { ticks: Ticks(1 << 40), time: Nanos(1 << 40) }, Nanos::MAX);
    engine.advance(Nanos::MAX);
    engine.settle();
    let report = engine.report(Nanos::MAX, ReportMeta::default());
    let calls: u64 = report.functions.iter().map(|function| function.calls).sum();
    assert!(calls <= slots, "{calls} calls in {slots} slots");
}
