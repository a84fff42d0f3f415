//! Measures the cost of a scope, a message or a plot for its thread, for ctrace and for comparable crates.
//!
//! `peers CONTENDER [scope|message|plot]` times calls of two functions in turns. The functions differ only
//! in the marker. It prints `bare_ns` and `scope_ns`: the CPU time of a call, as the median over stretches. Each
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
    scoped: Marked,
    /// A message of 32 bytes with a number, if it has messages.
    messaged: Option<Marked>,
    plotted: Option<Marked>,
}

/// A function with a marker.
type Marked = fn(u64) -> u64;

impl Contender {
    fn marked(&self, marker: Option<&str>) -> Option<Marked> {
        match marker {
            None | Some("scope") => Some(self.scoped),
            Some("message") => self.messaged,
            Some("plot") => self.plotted,
            Some(_) => None,
        }
    }
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
fn stretch(contender: &Contender, function: Marked) -> f64 {
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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let named = |contender: &&Contender| Some(contender.name) == arguments.first().map(|it| &**it);
    let contender = contenders::ALL.iter().find(named);
    let marked = contender.and_then(|it| it.marked(arguments.get(1).map(|it| &**it)));
    let (Some(contender), Some(marked)) = (contender, marked) else {
        let names = contenders::ALL.map(|contender| contender.name).join("|");
        eprintln!("usage: peers {names} [scope|message|plot]; not all have messages and plots");
        return ExitCode::FAILURE;
    };
    (contender.start)();
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        without.push(stretch(contender, bare));
        with.push(stretch(contender, marked));
    }
    println!("bare_ns {:.3}\nscope_ns {:.3}", median(without), median(with));
    println!("calls {}", ROUNDS as u64 * STRETCH * CALLS);
    ExitCode::SUCCESS
}
