//! Scopes of the crate: panics, threads, recursion, early ends, and a C library with its own
//! runtime, if it is linked to one. Built with rustc alone. Usage: marks_rust [CALLS]

use ctrace_marker::scope;
use std::hint::black_box;
use std::panic::{catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static THROWER: AtomicU64 = AtomicU64::new(0);
static PASSER: AtomicU64 = AtomicU64::new(0);
static CATCHER: AtomicU64 = AtomicU64::new(0);
static EARLY: AtomicU64 = AtomicU64::new(0);
static BRIEF: AtomicU64 = AtomicU64::new(0);

#[inline(never)]
fn thrower(x: u64) -> u64 {
    let _scope = scope!("thrower", group = "panics");
    THROWER.fetch_add(1, Relaxed);
    match x % 3 {
        0 => resume_unwind(Box::new(x)),
        1 => panic!("number {x}"),
        _ => x,
    }
}

#[inline(never)]
fn passer(depth: u32, x: u64) -> u64 {
    let _scope = scope!("passer", group = "panics");
    PASSER.fetch_add(1, Relaxed);
    if depth == 0 { thrower(x) } else { passer(depth - 1, x) + 1 }
}

#[inline(never)]
fn catcher(x: u64) -> u64 {
    let _scope = scope!("catcher", group = "panics");
    CATCHER.fetch_add(1, Relaxed);
    catch_unwind(|| passer(5, black_box(x))).unwrap_or(1)
}

#[inline(never)]
fn early(x: u64) -> u64 {
    let scope = scope!("early");
    EARLY.fetch_add(1, Relaxed);
    scope.end();
    black_box(x)
}

#[inline(never)]
fn brief(x: u64) -> u64 {
    let _scope = scope!("brief");
    BRIEF.fetch_add(1, Relaxed);
    black_box(x)
}

#[cfg(linked)]
mod library {
    unsafe extern "C" {
        safe fn marked_work();
    }

    pub fn work(calls: u64) {
        (0..calls).for_each(|_| marked_work());
        println!("calls marked_work {calls}\ncalls marked_inner {calls}");
    }
}

#[cfg(not(linked))]
mod library {
    pub fn work(_: u64) {}
}

fn main() {
    std::panic::set_hook(Box::new(|_| ()));
    let calls = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(300);
    let sum: u64 = (0..calls).map(|x| early(catcher(x))).sum();
    for _ in 0..20 {
        let threads: Vec<_> =
            (0..4).map(|_| std::thread::spawn(move || (0..calls).map(brief).sum::<u64>())).collect();
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }
    println!("sum {sum}");
    for (name, counter) in [
        ("thrower", &THROWER),
        ("passer", &PASSER),
        ("catcher", &CATCHER),
        ("early", &EARLY),
        ("brief", &BRIEF),
    ] {
        println!("calls {name} {}", counter.load(Relaxed));
    }
    library::work(calls);
}
