//! Measures the cost of a scope on this machine: `cargo run --release --example cost`.
//!
//! It raises the scope's semaphore itself, so the flush site is three nops. The numbers lack a
//! tracer's cost at the flush site, once in 252 calls.

#![allow(unsafe_code, reason = "raises semaphores, reads the time-stamp counter")]

use ctrace_marker::scope;
use std::{arch::asm, hint::black_box, time::Instant};

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

fn main() {
    let mut times: [Vec<f64>; 5] = Default::default();
    for _ in 0..ROUNDS {
        times[0].push(round(bare));
        times[1].push(round(scoped));
        times[2].push(round(two_rdtsc));
        times[4].push(bare_rdtsc());
        switch(1);
        times[3].push(round(scoped));
        switch(-1);
    }
    let [bare, dormant, rdtsc, active, two] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    });
    println!("a call                   {bare:6.2} ns");
    println!("  with a dormant scope   {dormant:6.2} ns   {:+.2} ns", dormant - bare);
    println!("  with two rdtsc         {rdtsc:6.2} ns   {:+.2} ns", rdtsc - bare);
    println!("  with an active scope   {active:6.2} ns   {:+.2} ns", active - bare);
    println!("two rdtsc alone          {two:6.2} ns");
    println!("active scope, without the call, / two rdtsc alone: {:.2}", (active - bare) / two);
}
