//! Messages, plots, frames and scopes with values. Prints each as it writes it, in its order: the
//! kind, the name, and the values. Texts are in hexadecimal digits. Usage: marks_points [TIMES]

use ctrace_marker::{frame, message, plot, scope};
use std::hint::black_box;

/// Drives a terminal, ends strings and cells of most formats, and is longer than arguments of
/// functions may be.
const HOSTILE: &str = "\x1b[31m<b>&\"quoted\"</b>\u{202e}\r\n,;'$(id)`\t\u{9b}2J \u{1f600} and then some more of it";

fn told(kind: &str, name: &str, text: &str) {
    let digits: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    println!("{kind} {name} {digits}");
}

#[inline(never)]
fn handle(number: u64) {
    let (bytes, ratio) = (number * 7, -0.25 * number as f64);
    println!("scope handle bytes={bytes} ratio={ratio:?} is_odd={}", number % 2 == 1);
    let _scope = scope!("handle", bytes = bytes, ratio = ratio, is_odd = number % 2 == 1);
    let text = format!("miss for {number}");
    told("warn", "cache/miss for {number}", &text);
    message!(level = Warn, group = "cache", "miss for {number}");
    println!("plot queue {}", number * 3);
    plot!("queue", number * 3, unit = "jobs");
    println!("plot load {:?}", 0.1 * number as f64);
    plot!("load", 0.1 * number as f64);
    println!("plot balance -{number}");
    plot!("balance", -(number as i64), group = "money");
    black_box(number);
}

fn main() {
    let times = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(3);
    told("none", "it begins", "it begins");
    message!("it begins");
    for number in 0..times {
        handle(number);
        println!("frame frame");
        frame!();
    }
    told("error", "{HOSTILE}", HOSTILE);
    message!(level = Error, "{HOSTILE}");
    let long = "long ".repeat(500);
    let cut = format!("{}…", &long[..1008 - '…'.len_utf8()]);
    told("info", "{long}", &cut);
    message!(level = Info, "{long}");
}
