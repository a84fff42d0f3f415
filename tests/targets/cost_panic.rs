//! A program with panics, for benchmarks: what cost_throw.cpp does, in Rust. Built with rustc alone.

use std::hint::black_box;
use std::io::{BufRead, Read, stdin};
use std::panic::{catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

static THROWER: AtomicU64 = AtomicU64::new(0);
static PASSER: AtomicU64 = AtomicU64::new(0);
static CATCHER: AtomicU64 = AtomicU64::new(0);
static PLAIN: AtomicU64 = AtomicU64::new(0);

/// Not atomic as a whole: the kernel refuses probes on instructions with a `lock` prefix.
fn count(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

/// Returns the nanoseconds of a call.
fn timed(calls: u64, stretch: u64, mut function: impl FnMut(u64)) -> f64 {
    let mut took = Vec::new();
    let mut next = 0;
    while next < calls {
        let begun = Instant::now();
        let end = calls.min(next + stretch);
        (next..end).for_each(&mut function);
        took.push(begun.elapsed().as_nanos() as f64 / (end - next) as f64);
        next = end;
    }
    took.sort_by(f64::total_cmp);
    took[took.len() / 2]
}

#[inline(never)]
#[unsafe(no_mangle)]
fn thrower(x: u64) -> u64 {
    count(&THROWER);
    resume_unwind(Box::new(x % 2))
}

#[inline(never)]
#[unsafe(no_mangle)]
fn passer(depth: u32, x: u64) -> u64 {
    count(&PASSER);
    black_box(if depth == 0 { thrower(x) } else { passer(depth - 1, x) }) + 1
}

#[inline(never)]
#[unsafe(no_mangle)]
fn catcher(x: u64) -> u64 {
    count(&CATCHER);
    match catch_unwind(|| passer(1, black_box(x))) {
        Ok(value) => value,
        Err(payload) => payload.downcast_ref::<u64>().map_or(100, |odd| 101 + 10 * odd),
    }
}

#[inline(never)]
#[unsafe(no_mangle)]
fn inner(x: u64) -> u64 {
    black_box(x).wrapping_mul(7)
}

/// It calls another function and so begins with a push, as most functions do.
#[inline(never)]
#[unsafe(no_mangle)]
fn plain(x: u64) -> u64 {
    count(&PLAIN);
    black_box(inner(x)) + 1
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let (calls, throws) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(1));
    println!("ready");
    stdin().lock().read_line(&mut String::new()).expect("a line");
    let mut sum: u64 = 0;
    let throwing = timed(throws, 1, |i| sum += catcher(i));
    let calling = timed(calls, 256, |i| sum ^= plain(i));
    println!("ns_per_call {calling:.1}\nns_per_throw {throwing:.1}");
    println!("sum {sum}");
    for (name, counter) in
        [("thrower", &THROWER), ("passer", &PASSER), ("catcher", &CATCHER), ("plain", &PLAIN)]
    {
        println!("calls {name} {}", counter.load(Relaxed));
    }
    println!("done");
    stdin().lock().read_to_end(&mut Vec::new()).expect("the end of the input");
}
