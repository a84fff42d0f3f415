//! Times of calls that were ended by the same event, as floating-point microseconds.
//!
//! An exception ends several calls at once, and a tail call ends at the same event as its caller. So a callee ends when
//! its caller does. Viewers add the
//! duration to the beginning in floating-point numbers, or cut both to nanoseconds first. Of two
//! equal ends, either sum could come out as the later one. Then a callee would end after its caller,
//! which viewers take for a mistake: they drop calls, or draw the rest of the thread wrongly. So
//! the sum for an end is a little more than the end, by much less than a nanosecond. All calls that
//! end there have the same sum, and a call that begins or returns there is within.

/// The distance of that sum from the end, in steps between neighbouring numbers. The rounding of a
/// sum and of its parts is at most three. One more makes it even: a sum half-way between two numbers
/// is rounded to the even one, so it might never be an odd one.
const STEPS: usize = 4;

/// Returns the beginning and the duration in microseconds.
pub(super) fn enclosing(start: u64, end: u64) -> (f64, f64) {
    let from = at_least(start);
    if end <= start {
        return (from, 0.0);
    }
    let to = (0..STEPS).fold(at_least(end), |to, _| to.next_up());
    let to = f64::from_bits(to.to_bits() + (to.to_bits() & 1));
    let mut duration = to - from;
    while from + duration < to {
        duration = duration.next_up();
    }
    (from, duration)
}

/// Returns the time in microseconds, which is not cut to the nanosecond before.
fn at_least(nanos: u64) -> f64 {
    let micros = nanos as f64 / 1e3;
    if micros * 1e3 < nanos as f64 { micros.next_up() } else { micros }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns where viewers see the ends, in each way of adding up.
    fn ends((from, duration): (f64, f64)) -> (f64, u64) {
        (from + duration, (from * 1e3) as u64 + (duration * 1e3) as u64)
    }

    /// As numbers with three decimals.
    fn plain(start: u64, end: u64) -> (f64, f64) {
        (start as f64 / 1e3, (end - start) as f64 / 1e3)
    }

    fn check(start: u64, before: u64, length: u64) -> Result<(), TestCaseError> {
        let (inner, end) = (start + before, start + before + length);
        let caller = ends(enclosing(start, end));
        prop_assert_eq!(caller.1, end);
        for callee in [enclosing(inner, end), enclosing(end, end), plain(inner, end)] {
            let callee = ends(callee);
            prop_assert!(callee.0 <= caller.0 || start == end, "{callee:?} {caller:?}");
            prop_assert!(callee.1 <= caller.1);
        }
        // The next call is not within it, in three days of tracing. Later numbers are coarser.
        prop_assert!(caller.0 < (end + 1) as f64 / 1e3);
        Ok(())
    }

    /// The sum of the caller's times lies half-way between two numbers.
    #[test]
    fn an_odd_sum_is_not_missed() {
        check(320_927_379_299, 27_569_330_182, 537_013_486_257).unwrap();
    }

    proptest! {
        #[test]
        fn no_callee_ends_after_its_caller(
            start in 0_u64..1 << 48,
            before in 0_u64..1 << 40,
            length in 0_u64..1 << 40,
        ) {
            check(start, before, length)?;
        }
    }
}
