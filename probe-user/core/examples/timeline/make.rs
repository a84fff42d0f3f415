//! A recording of any size: eight threads that run at the same time, five calls deep.
//!
//! Events are made, ordered and written bit by bit, so memory does not grow with the calls. Another thread
//! packs and writes.

use crate::trace::{PID, event_of};
use ctrace_common::Kind;
use ctrace_core::engine::{Engine, EngineConfig};
use ctrace_core::function::FunctionInfo;
use ctrace_core::recording::{Block, End, Host, Start, Writer};
use ctrace_core::units::{Nanos, Pid, Tid};
use std::error::Error;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};

const THREADS: u32 = 8;
/// The names of the functions at each depth.
const FUNCTIONS: [[&str; 4]; 5] = [
    ["handle_request", "handle_upload", "run_job", "flush_queue"],
    ["parse_header", "authorize", "route", "render_page"],
    ["lookup", "compress_block", "Cache::get", "Cache::insert"],
    ["hash", "compare_keys", "read_row", "write_row"],
    ["copy", "checksum", "allocate", "release"],
];
/// The time between two turns to order events and to write what is finished.
const TURN_NS: u64 = 1_000_000;
/// Blocks that wait until they are written.
const WAITING: usize = 16;

struct Thread {
    number: u32,
    random: u64,
    ts: u64,
    calls: u64,
}

impl Thread {
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn event(&mut self, engine: &mut Engine, kind: Kind, depth: usize, function: u32) {
        let random = self.random();
        self.ts += 100 + (random & 1_023);
        // Few events come much later, as if the thread had waited.
        if random >> 50 == 0 {
            self.ts += random & 0xf_ffff;
        }
        let sp = 0x7fff_0000_0000 + (u64::from(self.number) << 32) - depth as u64 * 96;
        let record = event_of(self.ts, sp, PID + self.number, function, kind);
        engine.push(self.number as usize, &record);
    }

    /// Makes a call with all calls inside it.
    fn call(&mut self, engine: &mut Engine, depth: usize) {
        let random = self.random() >> 32;
        let of_depth = FUNCTIONS[depth].len() as u32;
        let function = depth as u32 * of_depth + random as u32 % of_depth;
        self.event(engine, Kind::Enter, depth, function);
        if depth + 1 < FUNCTIONS.len() {
            (0..=(random >> 8) % 3).for_each(|_| self.call(engine, depth + 1));
        }
        self.event(engine, Kind::Return, depth, function);
        self.calls += 1;
    }
}

/// Makes a recording of this many calls, or a few more.
pub(crate) fn recording(path: &Path, calls: u64) -> Result<(), Box<dyn Error>> {
    let host = Host { name: "machine".to_owned(), ..Host::default() };
    let file = BufWriter::new(File::create(path)?);
    let writer = Writer::new(file, &Start { host, ..Start::default() })?;
    let (send, blocks) = sync_channel(WAITING);
    let (made, end) = std::thread::scope(|scope| {
        let writing = scope.spawn(|| write(writer, blocks));
        let (made, end) = make(calls, |block| {
            // The writer has failed if nobody takes it, and says why.
            let _ = send.send(block);
        });
        drop(send);
        let writer = writing.join().map_err(|_| "the writer panicked")??;
        Ok::<_, Box<dyn Error>>((made, (writer, end)))
    })?;
    let (writer, end_ns) = end;
    writer.finish(&End { end_ns, ..End::default() })?;
    let bytes = std::fs::metadata(path)?.len();
    let each = bytes as f64 / made as f64;
    println!("made: {made} calls, {each:.2} bytes a call, {} ns long", end_ns.0);
    Ok(())
}

type Out = Writer<BufWriter<File>>;

fn write(mut writer: Out, blocks: Receiver<Block>) -> io::Result<Out> {
    blocks.iter().try_for_each(|block| writer.write(&block))?;
    Ok(writer)
}

/// Shows the blocks of a recording, and returns the number of its calls and its end.
fn make(calls: u64, mut show: impl FnMut(Block)) -> (u64, Nanos) {
    let rings = THREADS as usize;
    let mut engine = Engine::new(EngineConfig { rings, record: true, ..EngineConfig::default() });
    for name in FUNCTIONS.iter().flatten() {
        engine.add_function(FunctionInfo::new(*name, "server"));
    }
    let of = |number: u32| {
        let random = 0x2545_f491_4f6c_dd1d_u64 + u64::from(number);
        Thread { number, random, ts: 1_000, calls: 0 }
    };
    let mut threads: Vec<Thread> = (0..THREADS).map(of).collect();
    for number in 0..THREADS {
        engine.name_thread(Pid(PID), Tid(PID + number), &format!("worker {number}"));
    }
    let made = |threads: &[Thread]| threads.iter().map(|thread| thread.calls).sum::<u64>();
    let mut now = 0;
    while made(&threads) < calls {
        now += TURN_NS;
        for thread in &mut threads {
            while thread.ts < now {
                thread.call(&mut engine, 0);
            }
        }
        engine.advance(Nanos(now));
        engine.take_blocks().into_iter().for_each(&mut show);
    }
    let end = Nanos(threads.iter().map(|thread| thread.ts).max().unwrap_or(now));
    engine.advance(end);
    engine.end_chunk(end);
    engine.take_blocks().into_iter().for_each(show);
    (made(&threads), end)
}
