//! The numbers of a function, each once: its names, its unit, its meaning and where a row has it.
//!
//! Columns to sort by and CSV derive from this list, and tests hold the schema of JSON against it. A
//! new number is one entry, at the end, so that columns stay where readers of CSV know them.

use super::FunctionReport;
use super::render::columns::Key;
use crate::units::Nanos;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Count,
    /// Nanoseconds.
    Time,
    Percent,
    Ratio,
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// The heading in CSV, and the key in JSON, where a nested one has its parent's name before it.
    pub key: &'static str,
    /// As `--sort` has it; nothing where no one can sort by it.
    pub name: Option<&'static str>,
    /// Other spellings of the name, as other tools have them.
    pub aliases: &'static [&'static str],
    pub unit: Unit,
    /// Of two stretches of time together it is the sum of both.
    pub additive: bool,
    pub help: &'static str,
    pub of: for<'a> fn(&'a FunctionReport) -> Key<'a>,
}

impl Number {
    /// A number that has to be rendered anew for two stretches together.
    const fn new(
        key: &'static str,
        unit: Unit,
        help: &'static str,
        of: for<'a> fn(&'a FunctionReport) -> Key<'a>,
    ) -> Self {
        Self { key, name: None, aliases: &[], unit, additive: false, help, of }
    }

    /// An additive number.
    const fn sum(
        key: &'static str,
        unit: Unit,
        help: &'static str,
        of: for<'a> fn(&'a FunctionReport) -> Key<'a>,
    ) -> Self {
        Self { additive: true, ..Self::new(key, unit, help, of) }
    }

    const fn sorted(self, name: &'static str, aliases: &'static [&'static str]) -> Self {
        Self { name: Some(name), aliases, ..self }
    }
}

fn count<'a>(n: u64) -> Key<'a> {
    Key::Count(Some(n))
}

fn time<'a>(ns: Nanos) -> Key<'a> {
    Key::Count(Some(ns.0))
}

fn maybe<'a>(ns: Option<Nanos>) -> Key<'a> {
    Key::Count(ns.map(|ns| ns.0))
}

use Unit::{Count, Percent, Ratio, Time};

/// All of them, in the order of JSON.
#[rustfmt::skip]
pub static NUMBERS: &[Number] = &[
    Number::sum("calls", Count, "Times it was entered: timed + untimed + open.", |f| count(f.calls)).sorted("calls", &[]),
    Number::sum("timed", Count, "Calls whose end was seen.", |f| count(f.timed)).sorted("timed", &[]),
    Number::sum("untimed", Count, "Calls known to be over whose end was not seen.", |f| count(f.untimed)).sorted("untimed", &[]),
    Number::new("open", Count, "Calls still running at the end.", |f| count(f.open)).sorted("open", &[]),
    Number::sum("headless", Count, "Ends of calls that began before tracing; not in calls.", |f| count(f.headless)).sorted("headless", &[]),
    Number::new("threads", Count, "Threads that entered it.", |f| count(f.threads)).sorted("threads", &[]),
    Number::sum("total_ns", Time, "Sum of all durations.", |f| time(f.total_ns)).sorted("total", &["acc", "time_acc"]),
    Number::sum("self_ns", Time, "Durations less those of the direct traced callees.", |f| time(f.self_ns)).sorted("self", &[]),
    Number::sum("active_ns", Time, "Time in which it is on the stack of any thread.", |f| time(f.active_ns)).sorted("a", &["active", "time_a"]),
    Number::sum("active_exclusive_ns", Time, "Time in which it is the innermost traced function of any thread.", |f| time(f.active_exclusive_ns)).sorted("ae", &["active_exclusive", "time_ae"]),
    Number::new("active_exclusive_percent", Percent, "Active-exclusive time in percent of the duration.", |f| Key::Real(Some(f.active_exclusive_percent))),
    Number::new("min_ns", Time, "The shortest timed call.", |f| maybe(f.durations.min_ns)).sorted("min", &[]),
    Number::new("mean_ns", Time, "Mean duration of the timed calls.", |f| maybe(f.durations.mean_ns)).sorted("mean", &["avg"]),
    Number::new("p50_ns", Time, "Half of the timed calls took no longer.", |f| maybe(f.durations.p50_ns)).sorted("p50", &["median", "med"]),
    Number::new("p90_ns", Time, "90 % of the timed calls took no longer.", |f| maybe(f.durations.p90_ns)).sorted("p90", &[]),
    Number::new("p95_ns", Time, "95 % of the timed calls took no longer.", |f| maybe(f.durations.p95_ns)).sorted("p95", &[]),
    Number::new("p99_ns", Time, "99 % of the timed calls took no longer.", |f| maybe(f.durations.p99_ns)).sorted("p99", &[]),
    Number::new("p999_ns", Time, "99.9 % of the timed calls took no longer.", |f| maybe(f.durations.p999_ns)).sorted("p999", &["p99.9"]),
    Number::new("max_ns", Time, "The longest timed call.", |f| maybe(f.durations.max_ns)).sorted("max", &[]),
    Number::new("sd_ns", Time, "Standard deviation of the durations.", |f| maybe(f.durations.sd_ns)).sorted("sd", &[]),
    Number::new("cv", Ratio, "Standard deviation divided by the mean.", |f| Key::Real(f.durations.cv)).sorted("cv", &[]),
    Number::new("fastest_min_ns", Time, "The shortest of the fastest calls.", |f| maybe(f.fastest.min_ns)),
    Number::new("fastest_mean_ns", Time, "Mean duration of the fastest calls.", |f| maybe(f.fastest.mean_ns)),
    Number::new("center_min_ns", Time, "The shortest call of the center.", |f| maybe(f.center.min_ns)),
    Number::new("center_mean_ns", Time, "Mean duration of the center.", |f| maybe(f.center.mean_ns)),
    Number::new("center_median_ns", Time, "Half of the center's calls took no longer.", |f| maybe(f.center.median_ns)),
    Number::new("center_max_ns", Time, "The longest call of the center.", |f| maybe(f.center.max_ns)),
    Number::new("center_active_ns", Time, "Active time of the center's calls alone.", |f| maybe(f.center.active_ns)).sorted("a_center", &["center_a"]),
    Number::new("center_active_exclusive_ns", Time, "Active-exclusive time of the center's calls alone.", |f| maybe(f.center.active_exclusive_ns)).sorted("ae_center", &["center_ae"]),
    Number::new("center_active_exclusive_percent", Percent, "The same in percent of the duration.", |f| Key::Real(f.center.active_exclusive_percent)),
    Number::new("slowest_mean_ns", Time, "Mean duration of the slowest calls.", |f| maybe(f.slowest.mean_ns)),
    Number::new("slowest_max_ns", Time, "The longest of the slowest calls.", |f| maybe(f.slowest.max_ns)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::rendered::tests::row;
    use crate::stats::Summary;

    #[test]
    fn additive_numbers_are_the_sums_of_both_stretches() {
        let second = Nanos(1_000);
        let mut one = Summary::of(&[3, 11].map(Nanos));
        (one.tally.untimed, one.tally.untimed_ns, one.headless) = (4, 70, 2);
        let mut other = Summary::of(&[5, 6, 7].map(Nanos));
        (other.tally.untimed, other.headless) = (1, 5);
        let (one, other) = (row(one, second), row(other, second));
        let mut both = one.clone();
        both.add(&other, Nanos(2_000));
        for number in NUMBERS.iter().filter(|number| number.additive) {
            let [a, b, sum] = [&one, &other, &both].map(|row| match (number.of)(row) {
                Key::Count(Some(n)) => n,
                key => panic!("{} is {key:?}", number.key),
            });
            assert_eq!(a + b, sum, "{}", number.key);
            assert!(a > 0 && b > 0 && a != b, "{} tells nothing here", number.key);
        }
    }
}
