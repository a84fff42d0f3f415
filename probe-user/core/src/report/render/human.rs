//! Times and counts for people: `100.11 ms`, `1,234,567`.
//!
//! Each number has one spelling everywhere, in tables and in exports, so that it can be compared by
//! eye. All arithmetic is on integers, so no value can panic or show as `1000.00 µs`.

use crate::units::Nanos;

/// The number of digits of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// Two decimals: `100.11 ms`.
    Full,
    /// Three digits in all: `100 ms`, `1.01 s`. For narrow tables.
    Short,
}

/// The units below a minute: name, and length in nanoseconds.
const UNITS: [(&str, u64); 3] = [("µs", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];

const SECOND: u64 = 1_000_000_000;
/// The limit from which minutes read better than seconds.
const SECONDS_END: u64 = 600 * SECOND;

/// Formats a time in the unit that suits it.
pub fn time(ns: Nanos, digits: Digits) -> String {
    if ns.0 < 1_000 {
        return format!("{} ns", ns.0);
    }
    if ns.0 >= SECONDS_END {
        return long(ns.0 / SECOND);
    }
    for (i, (unit, size)) in UNITS.iter().enumerate() {
        let limit = if i + 1 < UNITS.len() { 1_000 } else { u64::MAX };
        for decimals in decimals(digits) {
            let scale = 10_u64.pow(*decimals);
            let value = divide_rounded(ns.0 * scale, *size);
            let fits = match digits {
                Digits::Full => value < limit.saturating_mul(scale),
                Digits::Short => value < if *decimals == 0 { limit } else { 1_000 },
            };
            if fits {
                let (whole, part) = (value / scale, value % scale);
                return match decimals {
                    0 => format!("{whole} {unit}"),
                    n => format!("{whole}.{part:0n$} {unit}", n = *n as usize),
                };
            }
        }
    }
    long(ns.0 / SECOND)
}

/// Returns the numbers of decimals to try, most first.
fn decimals(digits: Digits) -> &'static [u32] {
    match digits {
        Digits::Full => &[2],
        Digits::Short => &[2, 1, 0],
    }
}

fn divide_rounded(value: u64, by: u64) -> u64 {
    (value + by / 2) / by
}

/// Formats ten minutes and more.
fn long(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    if hours == 0 {
        format!("{minutes} min {:02} s", seconds % 60)
    } else if days == 0 {
        format!("{hours} h {:02} min", minutes % 60)
    } else {
        format!("{} d {:02} h", count(days), hours % 24)
    }
}

/// Formats a number with a comma between thousands.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}
