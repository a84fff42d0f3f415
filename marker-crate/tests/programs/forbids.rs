//! A program that forbids unsafe code, and every warning.
#![forbid(unsafe_code)]
#![deny(warnings)]

use ctrace_marker::{frame, frame_scope, marker_fn, message, plot, scope, thread_name, usdt, usdt_enabled};

marker_fn! {
    pub extern "C" fn exported(a: u64) -> u64 {
        a + 1
    }
}

fn main() {
    let _named = scope!("named");
    let _grouped = scope!(group = "g");
    let (used, by_message) = (1_u8, "text");
    let _valued = scope!("valued", used = used, is = true, group = "g");
    let _blue = scope!("blue", colour = 0x33aaff);
    let _coloured = scope!(group = "g", color = 0);
    let _all = scope!("all", colour = 1, used = used, group = "g");
    let _physics = frame_scope!("physics", group = "g", colour = 0x33aaff);
    frame_scope!().end();
    frame_scope!(group = "g").end();
    frame_scope!(color = 7, group = "g",).end();
    message!("plain");
    message!(level = Debug, group = "g", "{} {by_message}", used);
    message!(colour = 7, level = Debug, "{} {}", used, by_message);
    plot!("plot", used, unit = "ms", group = "g");
    plot!("blue plot", used, color = 7,);
    frame!("blue", colour = 7, group = "g");
    frame!();
    frame!("named", group = "g");
    frame!(group = "g");
    thread_name("forbids");
    thread_name!("forbids {}", used);
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
