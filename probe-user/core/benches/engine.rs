//! From ring bytes in memory to reports.

mod trace;

use ctrace_core::engine::EngineConfig;
use ctrace_core::report::SlowAsked;
use ctrace_core::units::Nanos;
use divan::Bencher;
use divan::counter::ItemsCount;
use trace::Trace;

const CALLS: usize = 1_200_000;

fn main() {
    divan::main();
}

/// Decode, order, stacks, spool and the final report.
#[divan::bench(sample_count = 10)]
fn everything(bencher: Bencher) {
    let trace = Trace::new(CALLS);
    bencher.counter(ItemsCount::new(trace.calls)).with_inputs(|| trace.engine()).bench_values(
        |mut engine| {
            trace.feed(&mut engine);
            trace.report(&engine)
        },
    );
}

/// The same without the report.
#[divan::bench(sample_count = 10)]
fn processing(bencher: Bencher) {
    let trace = Trace::new(CALLS);
    bencher.counter(ItemsCount::new(trace.calls)).with_inputs(|| trace.engine()).bench_values(
        |mut engine| {
            trace.feed(&mut engine);
            engine
        },
    );
}

/// The report alone.
#[divan::bench(sample_count = 10)]
fn report(bencher: Bencher) {
    let trace = Trace::new(CALLS);
    let mut engine = trace.engine();
    trace.feed(&mut engine);
    bencher.counter(ItemsCount::new(trace.calls)).bench(|| trace.report(&engine));
}

/// The report of an interval, with its slowest calls: none, those from 5 µs, or of any duration.
#[divan::bench(args = [None, Some(5_000), Some(0)], sample_count = 10)]
fn interval(bencher: Bencher, from: Option<u64>) {
    let trace = Trace::new(CALLS);
    let engine = || {
        let mut engine = trace.engine();
        if let Some(from) = from {
            engine.keep_slow_calls(SlowAsked { most: 3, from: Nanos(from) });
        }
        trace.feed(&mut engine);
        engine
    };
    bencher
        .counter(ItemsCount::new(trace.calls))
        .with_inputs(engine)
        .bench_values(|mut engine| trace.interval(&mut engine));
}

/// Into a recording. Few calls have values beside them, or none: the others cost the same.
#[divan::bench(args = [false, true], sample_count = 10)]
fn recording(bencher: Bencher, with_values: bool) {
    let trace = Trace::with_loads(CALLS, with_values);
    let config = || EngineConfig { record: true, ..EngineConfig::default() };
    bencher
        .counter(ItemsCount::new(trace.calls))
        .with_inputs(|| Trace::engine_with(config()))
        .bench_values(|mut engine| {
            trace.feed_with(&mut engine, |engine| drop(engine.take_blocks()));
            engine
        });
}
