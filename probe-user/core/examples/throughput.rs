//! Prints how many calls a second go from ring bytes in memory to a final report, on one core.
//!
//! `cargo run --release -p ctrace-core --example throughput [MILLION CALLS]`

#[path = "../benches/trace.rs"]
mod trace;

use std::time::Instant;

fn main() {
    let millions = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(10.0);
    let trace = trace::Trace::new((millions * 1e6) as usize);
    for round in 1..=3 {
        let mut engine = trace.engine();
        let begin = Instant::now();
        trace.feed(&mut engine);
        let fed = begin.elapsed();
        let report = trace.report(&engine);
        let all = begin.elapsed();
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
