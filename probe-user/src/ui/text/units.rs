//! Formats numbers for people: `100.11 ms`, `1,234,567`, `99.90%`.
//!
//! Each number has one spelling everywhere, so that it can be compared by eye across tables and
//! runs. All arithmetic is on integers, so no value can panic or show as `1000.00 µs`.

pub(crate) use ctrace_core::report::render::human::{Digits, count, time};
use ctrace_core::units::Nanos;

/// The text for an absent value.
pub(crate) const ABSENT: &str = "–";

pub(crate) fn maybe_time(ns: Option<Nanos>, digits: Digits) -> String {
    ns.map_or_else(|| ABSENT.to_owned(), |ns| time(ns, digits))
}

/// Formats a size in bytes, in powers of 1024.
pub(crate) fn bytes(n: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (n as f64, 0);
    while value >= 999.5 && unit + 1 < units.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    match unit {
        0 => format!("{n} B"),
        _ if value < 9.95 => format!("{value:.1} {}", units[unit]),
        _ => format!("{value:.0} {}", units[unit]),
    }
}

/// Formats a count with its noun: `1 call`, `1,234 calls`.
pub(crate) fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(n), if n == 1 { one } else { many })
}

/// Formats two decimals. A positive value too small for them shows as `<0.01%`.
pub(crate) fn percent(value: f64) -> String {
    if !value.is_finite() {
        ABSENT.to_owned()
    } else if value > 0.0 && value < 0.005 {
        "<0.01%".to_owned()
    } else if value.abs() >= 1e9 {
        format!("{value:.1e}%")
    } else {
        format!("{value:.2}%")
    }
}

pub(crate) fn maybe_percent(value: Option<f64>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), percent)
}

/// Formats a ratio such as cv.
pub(crate) fn ratio(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_finite() && value.abs() < 1e6 => format!("{value:.2}"),
        Some(value) if value.is_finite() => format!("{value:.1e}"),
        _ => ABSENT.to_owned(),
    }
}

/// Formats a rate per second in at most six columns.
pub(crate) fn rate(value: f64) -> String {
    match value {
        _ if value == 0.0 => "0".to_owned(),
        _ if value < 10.0 => format!("{value:.2}"),
        _ if value < 9_999.5 => count(value.round() as u64),
        _ if value < 99_950.0 => format!("{:.1} k", value / 1e3),
        _ if value < 999_500.0 => format!("{:.0} k", value / 1e3),
        _ if value < 99_950_000.0 => format!("{:.2} M", value / 1e6),
        _ => format!("{:.0} M", value / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn full(ns: u64) -> String {
        time(Nanos(ns), Digits::Full)
    }

    fn short(ns: u64) -> String {
        time(Nanos(ns), Digits::Short)
    }

    #[test]
    fn times_have_two_decimals() {
        assert_eq!(full(0), "0 ns");
        assert_eq!(full(812), "812 ns");
        assert_eq!(full(1_000), "1.00 µs");
        assert_eq!(full(100_110_000), "100.11 ms");
        assert_eq!(full(1_010_000_000), "1.01 s");
        assert_eq!(full(599_990_000_000), "599.99 s");
    }

    #[test]
    fn rounding_up_goes_to_the_next_unit() {
        assert_eq!(full(999_994), "999.99 µs");
        assert_eq!(full(999_995), "1.00 ms");
        assert_eq!(full(999_999_999), "1.00 s");
        assert_eq!(short(9_995), "10.0 µs");
        assert_eq!(short(99_950), "100 µs");
        assert_eq!(short(999_500), "1.00 ms");
    }

    #[test]
    fn short_times_have_three_digits() {
        assert_eq!(short(1_234), "1.23 µs");
        assert_eq!(short(12_345_678), "12.3 ms");
        assert_eq!(short(123_456_789_012), "123 s");
    }

    #[test]
    fn long_times_are_in_minutes_hours_days() {
        assert_eq!(full(605 * SECOND), "10 min 05 s");
        assert_eq!(full(12_060 * SECOND), "3 h 21 min");
        assert_eq!(full(u64::MAX), "213,503 d 23 h");
        assert_eq!(short(u64::MAX), "213,503 d 23 h");
    }

    #[test]
    fn counts_have_commas() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(counted(1, "call", "calls"), "1 call");
    }

    #[test]
    fn percents_and_ratios() {
        assert_eq!(percent(99.9), "99.90%");
        assert_eq!(percent(0.0), "0.00%");
        assert_eq!(percent(0.001), "<0.01%");
        assert_eq!(percent(f64::NAN), ABSENT);
        assert_eq!(percent(f64::MAX), "1.8e308%");
        assert_eq!(ratio(Some(2.68174)), "2.68");
        assert_eq!(ratio(Some(f64::MAX)), "1.8e308");
        assert_eq!(ratio(None), ABSENT);
    }

    #[test]
    fn rates_are_short() {
        let cases = [
            (0.0, "0"),
            (0.25, "0.25"),
            (1_234.4, "1,234"),
            (9_999.6, "10.0 k"),
            (123_456.0, "123 k"),
            (1_234_567.0, "1.23 M"),
            (123_456_789.0, "123 M"),
        ];
        for (value, text) in cases {
            assert_eq!(rate(value), text);
        }
    }

    proptest::proptest! {
        /// A shown time is short, and never a thousand of a unit that has a larger one.
        #[test]
        fn any_time_is_short(ns: u64, shift in 0_u32..64) {
            for text in [full(ns >> shift), short(ns >> shift)] {
                assert!(text.chars().count() <= 14, "{text}");
                assert!(!text.starts_with("1000"), "{text}");
            }
        }
    }
}
