//! USDT probes and functions that other tools can probe. Usage: marks_probed CALLS, or marks_probed
//! serve: makes as many calls as each line of its input says, and answers with its counts.
//!
//! `order` is in two functions, with 12 arguments; `computed` counts how often these were needed.
//! With `--cfg=bare` there are only the USDT probes, which need nothing of the crate to be linked.

use ctrace_marker::{usdt, usdt_enabled};
use std::cell::Cell;
use std::hint::black_box;
use std::io::BufRead;

thread_local!(static COMPUTED: Cell<u64> = const { Cell::new(0) });

fn computed(n: u64) -> u64 {
    COMPUTED.set(COMPUTED.get() + 1);
    black_box(n)
}

#[cfg(not(bare))]
mod named {
    use ctrace_marker::marker_fn;
    pub use ctrace_marker::{ctrace_enter, ctrace_exit};
    use std::hint::black_box;

    marker_fn! {
        pub extern "C" fn ctrace_probed(a: u64, b: u32) -> u64 {
            black_box(a) + u64::from(b)
        }
    }
}

#[cfg(bare)]
mod named {
    use std::ffi::CStr;

    pub fn ctrace_enter(_: &CStr) {}
    pub fn ctrace_exit(_: &CStr) {}
    pub fn ctrace_probed(_: u64, _: u32) {}
}

use named::{ctrace_enter, ctrace_exit, ctrace_probed};

#[inline(always)]
fn order(n: u64) {
    usdt!(
        ctdemo,
        order,
        computed(n),
        -3_i32,
        7_u8,
        true,
        c"text".as_ptr(),
        u64::MAX,
        i64::MIN,
        8_usize,
        -9_i8,
        10_u16,
        11,
        black_box(n) * 2,
    );
}

#[inline(never)]
fn even(n: u64) {
    order(n);
    ctrace_enter(c"even");
    ctrace_exit(c"even");
}

#[inline(never)]
fn odd(n: u64) {
    ctrace_enter(c"odd");
    order(n);
}

fn calls(count: u64) {
    for n in 0..count {
        if n % 2 == 0 { even(n) } else { odd(n) }
        usdt!(ctdemo, plain);
        let _ = black_box(ctrace_probed(n, 5));
    }
    let enabled = usdt_enabled!(ctdemo, order);
    println!("calls {count} computed {} enabled {enabled}", COMPUTED.get());
}

fn main() {
    let what = std::env::args().nth(1).unwrap_or_default();
    if what != "serve" {
        return calls(what.parse().expect("a number of calls"));
    }
    for line in std::io::stdin().lock().lines() {
        calls(line.expect("input").parse().expect("a number of calls"));
    }
}
