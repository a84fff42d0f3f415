//! Formats clock times from days since 1970. This needs no clock and no time zone.

use ctrace_core::{calendar::civil, units::Nanos};

/// The smallest unit of a clock time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    Millis,
    Seconds,
}

/// Formats a monotonic time plus an offset, as in `2025-09-13 11:40:51.123`.
pub(crate) fn date_time(at: Nanos, epoch_offset_ns: i64, precision: Precision) -> String {
    let ns = i128::from(at.0) + i128::from(epoch_offset_ns);
    let millis = ns.div_euclid(1_000_000);
    let seconds = millis.div_euclid(1_000);
    let (year, month, day) = civil(seconds.div_euclid(86_400) as i64);
    let second = seconds.rem_euclid(86_400);
    let mut out = format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}",
        second / 3_600,
        second / 60 % 60,
        second % 60,
    );
    if precision == Precision::Millis {
        out += &format!(".{:03}", millis.rem_euclid(1_000));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date_time(at: Nanos, epoch_offset_ns: i64) -> String {
        super::date_time(at, epoch_offset_ns, Precision::Millis)
    }

    #[test]
    fn dates() {
        assert_eq!(date_time(Nanos(0), 0), "1970-01-01 00:00:00.000");
        assert_eq!(date_time(Nanos(1_757_763_651_123_456_789), 0), "2025-09-13 11:40:51.123");
        assert_eq!(date_time(Nanos(951_782_400_000_000_000), 0), "2000-02-29 00:00:00.000");
        assert_eq!(date_time(Nanos(0), -1), "1969-12-31 23:59:59.999");
    }

    #[test]
    fn extremes_do_not_panic() {
        assert_eq!(date_time(Nanos::MAX, i64::MAX), "2846-10-30 23:21:50.564");
        assert!(date_time(Nanos(0), i64::MIN).starts_with("1677-"));
    }
}
