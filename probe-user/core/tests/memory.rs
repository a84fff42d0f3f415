//! Tests that the engine's memory outside the spool stays small. It is the only test here, because
//! memory is measured for the process.

mod support;

use ctrace_common::Kind;
use ctrace_core::engine::{Engine, EngineConfig};
use support::*;

const FUNCTIONS: u32 = 5_000;
const SPOOL: usize = 4 << 20;

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

/// Calls each function from the first one, with widely spread durations.
fn call_all(engine: &mut Engine, now: &mut u64) {
    engine.push(0, &enter(0, 9_000, *now).bytes());
    for func in 1..FUNCTIONS {
        let wait = 100 + u64::from(func).wrapping_mul(*now) % 100_000;
        engine.push(0, &enter(func, 8_000, *now + 1).bytes());
        engine.push(0, &ret(func, 8_000, *now + wait).bytes());
        *now += wait + 1;
    }
    engine.push(0, &ret(0, 9_000, *now).bytes());
    *now += 1;
    engine.advance(end(*now));
}

#[test]
fn thousands_of_functions_and_threads_need_little_memory() {
    let before = resident();
    let names = (0..FUNCTIONS).map(|i| function(&format!("f{i}"))).collect::<Vec<_>>();
    let mut engine = engine(&names, EngineConfig { spool_bytes: SPOOL, ..EngineConfig::default() });
    let mut now = 1;
    for _ in 0..120 {
        call_all(&mut engine, &mut now);
    }
    for tid in 1_000..11_000 {
        engine.push(0, &enter(1, 9_000, now).on(tid).bytes());
        engine.push(0, &ret(1, 9_000, now + 5).on(tid).bytes());
        engine.push(0, &control(Kind::ThreadExit, now + 6, tid, "short", [0, 0]));
        now += 10;
        if tid % 100 == 0 {
            engine.advance(end(now));
        }
    }
    engine.advance(end(now));
    let used = resident().saturating_sub(before);
    let report = engine.report(end(now), meta(1.0));
    assert!(report.approximate, "the spool was to be folded");
    assert_eq!(report.threads.len(), 10_001);
    assert!(used < SPOOL + (25 << 20), "{} KiB", used >> 10);
    println!("{} KiB, with {} KiB of spool", used >> 10, SPOOL >> 10);
}
