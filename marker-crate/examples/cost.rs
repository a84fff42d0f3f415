//! Measures the cost of markers on this machine: `cargo run --release --example cost`.
//!
//! It raises their semaphores itself, so the flush site is three nops. The numbers lack a tracer's
//! cost at the flush site, once in 252 slots.

#![allow(unsafe_code, reason = "raises semaphores, reads the time-stamp counter")]

use ctrace_marker::{Mutex, async_scope, frame, message, plot, scope};
use std::{
    arch::asm,
    future::{Future, poll_fn},
    hint::black_box,
    pin::pin,
    task::{Context, Poll, Waker},
    time::Instant,
};

/// Small enough that a round is seldom interrupted.
const CALLS: u64 = 20_000;
const ROUNDS: usize = 1001;

#[inline(never)]
fn bare(x: u64) -> u64 {
    black_box(x) + 1
}

#[inline(never)]
fn scoped(x: u64) -> u64 {
    let _scope = scope!("cost");
    black_box(x) + 1
}

#[inline(never)]
fn valued(x: u64) -> u64 {
    let _scope = scope!("cost with a value", x = x);
    black_box(x) + 1
}

/// The text has 32 bytes.
#[inline(never)]
fn formatted(x: u64) -> u64 {
    message!("connection {} took too long", 1_000_000 + x % 1000);
    black_box(x) + 1
}

#[inline(never)]
fn plain(x: u64) -> u64 {
    message!("a connection took much too long.");
    black_box(x) + 1
}

#[inline(never)]
fn plotted(x: u64) -> u64 {
    plot!("cost", x);
    black_box(x) + 1
}

#[inline(never)]
fn framed(x: u64) -> u64 {
    frame!();
    black_box(x) + 1
}

#[inline(never)]
fn locked(x: u64) -> u64 {
    static LOCK: std::sync::Mutex<u64> = std::sync::Mutex::new(0);
    *LOCK.lock().unwrap() = x;
    black_box(x) + 1
}

/// A lock as before, with markers.
#[inline(never)]
fn marked_locked(x: u64) -> u64 {
    static LOCK: Mutex<u64> = Mutex::named("cost", 0);
    *LOCK.lock().unwrap() = x;
    black_box(x) + 1
}

/// Polls a future to its end: once, and once more where it waits.
#[inline(always)]
fn run(future: impl Future<Output = u64>) -> u64 {
    let (mut future, mut context) = (pin!(future), Context::from_waker(Waker::noop()));
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
    }
}

/// Is ready at the poll after so many.
#[inline(always)]
fn waits(times: u64, x: u64) -> impl Future<Output = u64> {
    let mut left = times;
    poll_fn(move |_| {
        left = left.wrapping_sub(1);
        if left == u64::MAX { Poll::Ready(black_box(x) + 1) } else { Poll::Pending }
    })
}

#[inline(never)]
fn unmarked_async(x: u64) -> u64 {
    run(waits(black_box(0), x))
}

#[inline(never)]
fn unmarked_ten(x: u64) -> u64 {
    run(waits(black_box(9), x))
}

#[inline(never)]
fn one_poll(x: u64) -> u64 {
    run(async_scope!("cost of a call with one poll", waits(black_box(0), x)))
}

#[inline(never)]
fn ten_polls(x: u64) -> u64 {
    run(async_scope!("cost of a call with ten polls", waits(black_box(9), x)))
}

type Marked = (&'static str, fn(u64) -> u64);

const MARKERS: [Marked; 12] = [
    ("scope", scoped),
    ("scope with a value", valued),
    ("plot", plotted),
    ("frame", framed),
    ("message, literal", plain),
    ("message, formatted", formatted),
    ("lock of std, without markers", locked),
    ("lock with markers", marked_locked),
    ("async call, without markers", unmarked_async),
    ("async call with one poll", one_poll),
    ("ten polls, without markers", unmarked_ten),
    ("async call with ten polls", ten_polls),
];

#[inline(never)]
fn two_rdtsc(x: u64) -> u64 {
    let mut low: u64;
    // SAFETY: reads the time-stamp counter, twice.
    unsafe {
        asm!("rdtsc", out("rax") low, out("rdx") _, options(nomem, nostack));
        black_box(low);
        asm!("rdtsc", out("rax") low, out("rdx") _, options(nomem, nostack));
    }
    black_box(low);
    black_box(x) + 1
}

/// Returns nanoseconds for two rdtsc and nothing else.
fn bare_rdtsc() -> f64 {
    let start = Instant::now();
    let mut sum = 0_u64;
    for _ in 0..2 * CALLS {
        let (low, high): (u64, u64);
        // SAFETY: reads the time-stamp counter.
        unsafe { asm!("rdtsc", out("rax") low, out("rdx") high, options(nomem, nostack)) };
        sum ^= high << 32 | low;
    }
    black_box(sum);
    start.elapsed().as_nanos() as f64 / CALLS as f64
}

/// Returns nanoseconds per call in one round.
fn round(function: fn(u64) -> u64) -> f64 {
    let start = Instant::now();
    let mut sum = 0;
    for call in 0..CALLS {
        sum = black_box(function)(sum ^ call);
    }
    black_box(sum);
    start.elapsed().as_nanos() as f64 / CALLS as f64
}

/// Adds to all semaphores of this program, those of the entries in its `ctrace_sites`.
fn switch(by: i16) {
    unsafe extern "C" {
        #[link_name = "__start_ctrace_sites"]
        static START: [u8; 0];
        #[link_name = "__stop_ctrace_sites"]
        static STOP: [u8; 0];
    }
    let (mut entry, stop) = (&raw const START as usize, &raw const STOP as usize);
    while entry < stop {
        // SAFETY: the linker's bounds of the section; field and meaning as in the format.
        unsafe {
            let field = (entry + 20) as *const i32;
            let semaphore = (field as usize).wrapping_add_signed(field.read() as isize) as *mut i16;
            semaphore.write_volatile(semaphore.read_volatile() + by);
        }
        entry += 32;
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let (mut without, mut with_rdtsc, mut two) = (Vec::new(), Vec::new(), Vec::new());
    let mut dormant: [Vec<f64>; MARKERS.len()] = Default::default();
    let mut active = dormant.clone();
    for _ in 0..ROUNDS {
        without.push(round(bare));
        with_rdtsc.push(round(two_rdtsc));
        two.push(bare_rdtsc());
        for (times, (_, marked)) in dormant.iter_mut().zip(MARKERS) {
            times.push(round(marked));
        }
        switch(1);
        for (times, (_, marked)) in active.iter_mut().zip(MARKERS) {
            times.push(round(marked));
        }
        switch(-1);
    }
    let (bare, two) = (median(without), median(two));
    let line = |what: &str, time: f64| {
        println!("  {what:<29} {time:6.2} ns   {:+.2} ns", time - bare);
    };
    println!("a call                          {bare:6.2} ns");
    line("with two rdtsc", median(with_rdtsc));
    for (times, (name, _)) in dormant.into_iter().zip(MARKERS) {
        line(&format!("dormant {name}"), median(times));
    }
    let mut scope = None;
    for (times, (name, _)) in active.into_iter().zip(MARKERS) {
        let time = median(times);
        line(&format!("active {name}"), time);
        scope.get_or_insert(time - bare);
    }
    println!("two rdtsc alone                 {two:6.2} ns");
    println!(
        "active scope, without the call, / two rdtsc alone: {:.2}",
        scope.unwrap_or(0.0) / two
    );
}
