//! Measures the cost of a scope for its thread, for ctrace and for comparable crates.
//!
//! `peers CONTENDER` times calls of two functions in turns. The functions differ only in the scope.
//! It prints `bare_ns` and `scope_ns`: the CPU time of a call, as the median over stretches. Each
//! contender records and delivers in its documented way, and its own threads do not count. Each one
//! groups several calls into a frame, trace or similar, as it expects.

mod contenders;

use rustix::time::{ClockId, clock_gettime};
use std::{hint::black_box, process::ExitCode};

/// The number of calls in an outer scope, like a request or a frame. fastrace's limit is 10,000.
const CALLS: u64 = 1_000;
/// The number of outer scopes between two readings of the clock.
const STRETCH: u64 = 10;
const ROUNDS: usize = 101;

/// A way to mark a function.
struct Contender {
    name: &'static str,
    start: fn(),
    /// Runs the calls in an outer scope, and delivers the results.
    within: fn(&mut dyn FnMut()),
    scoped: fn(u64) -> u64,
}

#[inline(never)]
fn bare(x: u64) -> u64 {
    black_box(x) + 1
}

fn on_processor() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Returns the time of a call in nanoseconds.
fn stretch(contender: &Contender, function: fn(u64) -> u64) -> f64 {
    let start = on_processor();
    for _ in 0..STRETCH {
        (contender.within)(&mut || {
            let mut sum = 0;
            for _ in 0..CALLS {
                sum = black_box(function)(sum);
            }
            black_box(sum);
        });
    }
    (on_processor() - start) / (STRETCH * CALLS) as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some(contender) = contenders::ALL.iter().find(|contender| contender.name == name) else {
        eprintln!("usage: peers {}", contenders::ALL.map(|contender| contender.name).join("|"));
        return ExitCode::FAILURE;
    };
    (contender.start)();
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        without.push(stretch(contender, bare));
        with.push(stretch(contender, contender.scoped));
    }
    println!("bare_ns {:.3}\nscope_ns {:.3}", median(without), median(with));
    println!("calls {}", ROUNDS as u64 * STRETCH * CALLS);
    ExitCode::SUCCESS
}
