//! A program that forbids unsafe code, and every warning.
#![forbid(unsafe_code)]
#![deny(warnings)]

use ctrace_marker::{marker_fn, scope, usdt, usdt_enabled};

marker_fn! {
    pub extern "C" fn exported(a: u64) -> u64 {
        a + 1
    }
}

fn main() {
    let _named = scope!("named");
    let _grouped = scope!(group = "g");
    usdt!(forbids, place, 1, 2_u8);
    assert!(!usdt_enabled!(forbids, place));
    let sum: u64 = (0..3)
        .map(|n| {
            let _in_a_closure = scope!("closure");
            exported(n)
        })
        .sum();
    println!("{sum}");
}
