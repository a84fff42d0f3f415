//! What a scope costs its thread: ctrace's, and those of the crates it is compared to.
//!
//! `peers CONTENDER` times calls of two functions in turns, which differ in the scope only, and prints
//! `bare_ns` and `scope_ns`: processor time of a call, the median over stretches. Each contender records
//! and hands over what it records in the way its documentation shows; what its own threads do
//! with it is not counted. Of several calls every contender makes a frame, a trace or the like,
//! as those want it.

mod contenders;

use rustix::time::{ClockId, clock_gettime};
use std::{hint::black_box, process::ExitCode};

/// Calls in an outer scope, as a request or a frame would have: 10,000 are fastrace's limit.
const CALLS: u64 = 1_000;
/// Outer scopes between two looks at the clock.
const STRETCH: u64 = 10;
const ROUNDS: usize = 101;

/// A way to mark a function.
struct Contender {
    name: &'static str,
    start: fn(),
    /// Runs the calls in an outer scope, and hands over what came of them.
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

/// Nanoseconds of a call.
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
