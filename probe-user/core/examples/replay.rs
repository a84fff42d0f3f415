//! Prints how fast a trace goes into a recording in memory, how large that is, and how fast a
//! report comes out of it.
//!
//! `cargo run --release -p ctrace-core --example replay [MILLION CALLS]`; RAYON_NUM_THREADS=1 for one
//! core.

#[path = "../benches/trace/mod.rs"]
mod trace;

use ctrace_core::engine::{EngineConfig, ReportMeta};
use ctrace_core::recording::replay::{Query, meta_of, report_with};
use ctrace_core::recording::{End, Recording, Start, Writer};
use ctrace_core::report::Extras;
use std::time::{Duration, Instant};

/// Time that this process spent on CPUs, in ticks of 10 ms: what others do on the machine is no
/// part of a report's speed.
fn on_cpu(since: Instant) -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split(' ').skip(11).take(2);
    let ticks: Option<u64> = fields.map(|field| field.parse::<u64>().ok()).sum();
    ticks.map_or_else(|| since.elapsed(), |ticks| Duration::from_millis(ticks * 10))
}

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
    let everything = Extras {
        histograms: true,
        path_histograms: true,
        ctrack: true,
        slowest_calls: Some(10),
        timeline_lanes: Some(8),
        ..Extras::default()
    };
    for (round, extras) in [
        ("round 1", Extras::default()),
        ("round 2", Extras::default()),
        ("round 3", Extras::default()),
        ("with what all views need", everything),
    ] {
        let (begin, begun) = (Instant::now(), on_cpu(begin));
        let meta = ReportMeta { extras, ..meta_of(&recording, 1.0) };
        let report = report_with(&recording, &Query::default(), meta);
        let seen: u64 = report.functions.iter().map(|function| function.calls).sum();
        assert_eq!(seen, trace.calls as u64);
        let rate = |time: Duration| 2.0 * calls / time.as_secs_f64() / 1e6;
        let cpu = on_cpu(begin).saturating_sub(begun);
        println!(
            "{round}: {:.1} M events/s, {:.1} M events/s and core",
            rate(begin.elapsed()),
            rate(cpu)
        );
    }
}
