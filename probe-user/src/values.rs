//! Parses values of the command line and of files: `10us`, `1.5s`, `256MiB`, `20%`.

use crate::session::budget::slowdown::SlowdownPolicy;
use ctrace_core::units::Nanos;
use std::{ops::Range, str::FromStr, time::Duration};

const TIMES: [(&str, f64); 6] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9)];

const SIZES: [(&str, u64); 10] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("KB", 1 << 10),
    ("MB", 1 << 20),
    ("GB", 1 << 30),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("B", 1),
];

/// Parses a time with its unit.
pub(crate) fn nanos(text: &str) -> Result<Nanos, String> {
    time(text, None).map(|ns| Nanos(ns as u64))
}

/// The part of frames that may take longer than a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FramesLimit {
    pub time: Nanos,
    pub percent: f64,
}

/// Parses `16.6ms:1%`. Without a percentage, no frame may take longer.
pub(crate) fn frames_limit(text: &str) -> Result<FramesLimit, String> {
    let (time, part) = text.split_once(':').unwrap_or((text, "0%"));
    Ok(FramesLimit { time: nanos(time)?, percent: percent(part)? })
}

/// Parses a time. A bare number is seconds.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let ns = time(text, Some(1e9))?;
    if ns < 1e6 {
        return Err("at least 1ms is needed".into());
    }
    Ok(Duration::from_nanos(ns as u64))
}

fn time(text: &str, bare: Option<f64>) -> Result<f64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic());
    let unit = &text[digits.len()..];
    let scale =
        if unit.is_empty() { bare } else { TIMES.iter().find(|t| t.0 == unit).map(|t| t.1) };
    let scale = scale.ok_or("give a number and a unit, such as 500ns, 10us, 1.5ms, 2s")?;
    let number: f64 = digits.parse().map_err(|_| format!("'{digits}' is not a number"))?;
    let ns = number * scale;
    if !(0.0..=9e18).contains(&ns) {
        return Err("out of range".into());
    }
    Ok(ns)
}

/// Parses a stretch of time that may be open at either end.
pub(crate) fn window(text: &str) -> Result<Range<Nanos>, String> {
    let (from, to) = text.split_once("..").ok_or("give two times, such as 10s..20s or 1m..")?;
    let at = |text: &str, or| match text.trim() {
        "" => Ok(or),
        text => time(text, Some(1e9)).map(|ns| Nanos(ns as u64)),
    };
    let window = at(from, Nanos::ZERO)?..at(to, Nanos::MAX)?;
    if window.is_empty() {
        Err("the first time must be before the second".into())
    } else {
        Ok(window)
    }
}

/// Parses a size in bytes.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_alphabetic());
    let unit = &text[digits.len()..];
    let scale =
        if unit.is_empty() { Some(1) } else { SIZES.iter().find(|s| s.0 == unit).map(|s| s.1) };
    let scale = scale.ok_or("give a size such as 64K, 16MiB, 1G")?;
    let number: u64 = digits.parse().map_err(|_| format!("'{digits}' is not a whole number"))?;
    number.checked_mul(scale).filter(|n| *n <= 1 << 40).ok_or_else(|| "out of range".into())
}

/// Parses the size of a ring.
pub(crate) fn ring_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        size if (4 << 10..=1 << 30).contains(&size) => Ok(size),
        _ => Err("give a size from 4KiB to 1GiB".into()),
    }
}

/// Parses the size limit of a recording. A smaller one would hardly hold a chunk.
pub(crate) fn recording_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        size if size >= 1 << 20 => Ok(size),
        _ => Err("give at least 1MiB".into()),
    }
}

/// Parses a count of at least one.
pub(crate) fn at_least_one<T: FromStr + PartialOrd + From<u8>>(text: &str) -> Result<T, String> {
    let number = text.parse().ok().filter(|number| *number >= T::from(1));
    number.ok_or("give a whole number, 1 or more".into())
}

/// Parses a percentage to cut off at each end.
pub(crate) fn center(text: &str) -> Result<f64, String> {
    let value: f64 = text.trim_end_matches('%').parse().map_err(|_| "give a percent such as 1")?;
    if (0.0..50.0).contains(&value) { Ok(value) } else { Err("must be from 0 to below 50".into()) }
}

/// Parses a percentage, with or without its sign.
pub(crate) fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(value) if (0.0..=1e6).contains(&value) => Ok(value),
        _ => Err("give a percent such as 5%".into()),
    }
}

/// Parses a percentage above 0. At 100 the target still gets as much time as its probes.
pub(crate) fn budget(text: &str) -> Result<f64, String> {
    let value = percent(text).ok().filter(|value| *value > 0.0 && *value <= 100.0);
    value.ok_or("give a percent above 0% and up to 100%, such as 1%".into())
}

/// Parses `warn`, `off` or a percentage.
pub(crate) fn slowdown(text: &str) -> Result<SlowdownPolicy, String> {
    match text {
        "warn" => Ok(SlowdownPolicy::Warn),
        "off" => Ok(SlowdownPolicy::Off),
        _ => match percent(text) {
            Ok(percent) if percent > 0.0 => Ok(SlowdownPolicy::StopBeyond(percent)),
            _ => Err("give warn, off or a percent such as 20%".into()),
        },
    }
}

/// Parses FUNCTION: ARG, the calls of a function by one of their values.
pub(crate) fn by_value(text: &str) -> Option<(&str, &str)> {
    let (function, argument) = text.rsplit_once(':')?;
    let (function, argument) = (function.trim(), argument.trim());
    let is_one = !function.is_empty() && !function.ends_with(':') && !argument.is_empty();
    is_one.then_some((function, argument))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<T: PartialEq + std::fmt::Debug>(got: Result<T, String>, want: Option<T>) {
        assert_eq!(got.ok(), want);
    }

    #[test]
    fn limits_of_frames_have_a_time_and_a_part() {
        let limit = |time, percent| Some(FramesLimit { time: Nanos(time), percent });
        check(frames_limit("16.6ms:1%"), limit(16_600_000, 1.0));
        check(frames_limit("2s"), limit(2_000_000_000, 0.0));
        check(frames_limit("16:1%"), None);
        check(frames_limit("1ms:many"), None);
    }

    #[test]
    fn times_carry_units() {
        check(nanos("10us"), Some(Nanos(10_000)));
        check(nanos("1.5ms"), Some(Nanos(1_500_000)));
        check(nanos("7ns"), Some(Nanos(7)));
        check(nanos("10"), None);
        check(nanos("10parsec"), None);
        check(nanos("-1s"), None);
        check(seconds("2"), Some(Duration::from_secs(2)));
        check(seconds("500ms"), Some(Duration::from_millis(500)));
        check(seconds("0"), None);
        check(seconds("abc"), None);
        check(window("1s..1500ms"), Some(Nanos(1_000_000_000)..Nanos(1_500_000_000)));
        check(window("..2"), Some(Nanos::ZERO..Nanos(2_000_000_000)));
        check(window("1m.."), Some(Nanos(60_000_000_000)..Nanos::MAX));
        check(window("2s..1s"), None);
        check(window("2s"), None);
    }

    #[test]
    fn sizes_are_powers_of_1024() {
        check(size("16MiB"), Some(16 << 20));
        check(size("4K"), Some(4096));
        check(size("77"), Some(77));
        check(size("1.5G"), None);
        check(size("99999G"), None);
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        check(ring_size("4KiB"), Some(4096));
        check(ring_size("1GiB"), Some(1 << 30));
        check(ring_size("5"), None);
        check(ring_size("2GiB"), None);
        check(recording_size("1MiB"), Some(1 << 20));
        check(recording_size("1"), None);
        check(at_least_one::<usize>("1"), Some(1));
        check(at_least_one::<usize>("0"), None);
        check(at_least_one::<u32>("4294967296"), None);
        check(budget("100%"), Some(100.0));
        check(budget("0"), None);
        check(budget("500%"), None);
        check(slowdown("inf"), None);
    }

    #[test]
    fn slowdown_is_a_word_or_a_percent() {
        check(slowdown("warn"), Some(SlowdownPolicy::Warn));
        check(slowdown("20%"), Some(SlowdownPolicy::StopBeyond(20.0)));
        check(slowdown("-3"), None);
        check(percent("5%"), Some(5.0));
        check(percent("2.5"), Some(2.5));
        check(percent("-1"), None);
        check(percent("NaN"), None);
        check(slowdown("maybe"), None);
        check(center("1"), Some(1.0));
        check(center("50"), None);
    }
}
