//! Prints how many calls a second go from ring bytes in memory to a final report, on one core.
//!
//! `cargo run --release -p ctrace-core --example throughput [MILLION CALLS]`

#[path = "../benches/trace/mod.rs"]
mod trace;

use std::time::{Duration, Instant};

/// Time this thread spent on a CPU: what others do on the machine is no part of the engine's speed.
fn on_cpu(since: Instant) -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = stat.and_then(|stat| stat.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

fn main() {
    let millions = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(10.0);
    let trace = trace::Trace::new((millions * 1e6) as usize);
    let start = Instant::now();
    for round in 1..=3 {
        let mut engine = trace.engine();
        let begin = on_cpu(start);
        trace.feed(&mut engine);
        let fed = on_cpu(start) - begin;
        let report = trace.report(&engine);
        let all = on_cpu(start) - begin;
        let calls: u64 = report.functions.iter().map(|function| function.calls).sum();
        assert_eq!(calls, trace.calls as u64);
        println!(
            "round {round}: {calls} calls, {:.1} M calls/s (processing {:.1} ns, report {:.1} ns a call){}",
            calls as f64 / all.as_secs_f64() / 1e6,
            fed.as_nanos() as f64 / calls as f64,
            (all - fed).as_nanos() as f64 / calls as f64,
            if report.approximate { ", approximate" } else { "" },
        );
    }
}
