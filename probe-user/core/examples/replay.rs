//! Prints how fast a trace goes into a recording in memory, how large that is, and how fast a
//! report comes out of it.
//!
//! `cargo run --release -p ctrace-core --example replay [MILLION CALLS]`; RAYON_NUM_THREADS=1 for one
//! core.

#[path = "../benches/trace/mod.rs"]
mod trace;

use ctrace_core::engine::EngineConfig;
use ctrace_core::record::{End, Recording, Start, Writer};
use ctrace_core::replay::{Query, report};
use std::time::Instant;

fn main() {
    let millions = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(10.0);
    let trace = trace::Trace::new((millions * 1e6) as usize);
    let begin = Instant::now();
    let mut engine =
        trace::Trace::engine_with(EngineConfig { record: true, ..EngineConfig::default() });
    let mut writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
    trace.feed_with(&mut engine, |engine| {
        for block in engine.take_blocks() {
            writer.write(&block).expect("memory takes all");
        }
    });
    let bytes = writer.finish(&End::default()).expect("memory takes all");
    let calls = trace.calls as f64;
    println!(
        "recorded: {:.1} M calls/s, {:.2} bytes an event",
        calls / begin.elapsed().as_secs_f64() / 1e6,
        bytes.len() as f64 / calls / 2.0,
    );
    let recording = Recording::open(bytes).expect("it was just written");
    for round in 1..=3 {
        let begin = Instant::now();
        let report = report(&recording, &Query::default(), 1.0);
        let seen: u64 = report.functions.iter().map(|function| function.calls).sum();
        assert_eq!(seen, trace.calls as u64);
        let rate = 2.0 * calls / begin.elapsed().as_secs_f64() / 1e6;
        println!("round {round}: {rate:.1} M events/s");
    }
}
