//! The registry of a function's numbers: names, unit, meaning and value of each.
//!
//! JSON, CSV and the sortable columns are derived from this list. Tables, the screen of `top`,
//! comparisons and metrics choose from it by key, and a test compares the schema of JSON with it. A
//! new number is one entry at the end, so that the columns of CSV stay in place.

use super::FunctionReport;
use super::key::Key;
use super::percentiles::permille_of;
use crate::units::Nanos;

/// The unit of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Count,
    /// Nanoseconds.
    Time,
    Percent,
    Ratio,
    /// A count per second.
    Rate,
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// The heading in CSV and the key in JSON. In nested objects, JSON leaves out the parent's
    /// name.
    pub key: &'static str,
    /// The object in JSON that has this number, if it is nested in that of the function.
    pub parent: Option<&'static str>,
    /// The name for `--sort`; `None` if rows cannot be sorted by it.
    pub name: Option<&'static str>,
    /// Other spellings of the name, as in other tools.
    pub aliases: &'static [&'static str],
    pub unit: Unit,
    /// The number of two stretches of time together is the sum of both. Only a call that is running
    /// between them is among the `calls` of both, and `open` in the first.
    pub additive: bool,
    /// One sentence of explanation.
    pub help: &'static str,
    pub of: for<'a> fn(&'a FunctionReport) -> Key<'a>,
}

impl Number {
    /// Makes a number that has to be rendered anew for two stretches together.
    const fn new(
        key: &'static str,
        unit: Unit,
        help: &'static str,
        of: for<'a> fn(&'a FunctionReport) -> Key<'a>,
    ) -> Self {
        Self { key, parent: None, name: None, aliases: &[], unit, additive: false, help, of }
    }

    /// Makes an additive number.
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

    const fn within(self, parent: &'static str) -> Self {
        Self { parent: Some(parent), ..self }
    }

    /// Returns the percentile's part of 1,000, if it is one.
    pub fn permille(&self) -> Option<u64> {
        permille_of(self.key)
    }

    /// Returns its key within its object in JSON.
    pub fn json_key(&self) -> &'static str {
        let nested =
            self.parent.and_then(|parent| self.key.strip_prefix(parent)?.strip_prefix('_'));
        nested.unwrap_or(self.key)
    }
}

/// Returns the number with this key. An unknown key in a constant fails the build.
pub const fn number(key: &str) -> &'static Number {
    let mut at = 0;
    while at < NUMBERS.len() {
        if is_same(NUMBERS[at].key.as_bytes(), key.as_bytes()) {
            return &NUMBERS[at];
        }
        at += 1;
    }
    panic!("no number has this key")
}

const fn is_same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
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

/// Returns `n` per second of the row's stretch.
fn rate<'a>(row: &FunctionReport, n: u64) -> Key<'a> {
    let seconds = row.stretch_ns.0 as f64 / 1e9;
    Key::Real((seconds > 0.0).then(|| n as f64 / seconds))
}

use Unit::{Count, Percent, Rate, Ratio, Time};

/// All numbers, in the order of JSON and CSV.
#[rustfmt::skip]
pub const NUMBERS: &[Number] = &[
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
    Number::new("active_exclusive_percent", Percent, "Share of the time in which it was innermost on any thread.", |f| Key::Real(Some(f.active_exclusive_percent))),
    Number::new("min_ns", Time, "The shortest call.", |f| maybe(f.durations.min_ns)).sorted("min", &[]),
    Number::new("mean_ns", Time, "The mean duration.", |f| maybe(f.durations.mean_ns)).sorted("mean", &["avg"]),
    Number::new("p50_ns", Time, "Half of the calls took no longer.", |f| maybe(f.durations.p50_ns)).sorted("p50", &["median", "med"]),
    Number::new("p90_ns", Time, "Nine tenths took no longer.", |f| maybe(f.durations.p90_ns)).sorted("p90", &[]),
    Number::new("p95_ns", Time, "All but one in twenty took no longer.", |f| maybe(f.durations.p95_ns)).sorted("p95", &[]),
    Number::new("p99_ns", Time, "All but one in a hundred took no longer.", |f| maybe(f.durations.p99_ns)).sorted("p99", &[]),
    Number::new("p999_ns", Time, "All but one in a thousand took no longer.", |f| maybe(f.durations.p999_ns)).sorted("p999", &["p99.9"]),
    Number::new("max_ns", Time, "The longest call.", |f| maybe(f.durations.max_ns)).sorted("max", &[]),
    Number::new("sd_ns", Time, "Standard deviation of the durations.", |f| maybe(f.durations.sd_ns)).sorted("sd", &[]),
    Number::new("cv", Ratio, "Standard deviation divided by the mean.", |f| Key::Real(f.durations.cv)).sorted("cv", &[]),
    Number::new("fastest_min_ns", Time, "The shortest of the fastest calls.", |f| maybe(f.fastest.min_ns)).within("fastest"),
    Number::new("fastest_mean_ns", Time, "Mean duration of the fastest calls.", |f| maybe(f.fastest.mean_ns)).within("fastest"),
    Number::new("center_min_ns", Time, "The shortest call of the center.", |f| maybe(f.center.min_ns)).within("center"),
    Number::new("center_mean_ns", Time, "Mean duration of the center.", |f| maybe(f.center.mean_ns)).within("center"),
    Number::new("center_median_ns", Time, "Half of the center's calls took no longer.", |f| maybe(f.center.median_ns)).within("center"),
    Number::new("center_max_ns", Time, "The longest call of the center.", |f| maybe(f.center.max_ns)).within("center"),
    Number::new("center_active_ns", Time, "Active time of the center's calls alone.", |f| maybe(f.center.active_ns)).sorted("a_center", &["center_a"]).within("center"),
    Number::new("center_active_exclusive_ns", Time, "Active-exclusive time of the center's calls alone.", |f| maybe(f.center.active_exclusive_ns)).sorted("ae_center", &["center_ae"]).within("center"),
    Number::new("center_active_exclusive_percent", Percent, "The same in percent of the duration.", |f| Key::Real(f.center.active_exclusive_percent)).within("center"),
    Number::new("slowest_mean_ns", Time, "Mean duration of the slowest calls.", |f| maybe(f.slowest.mean_ns)).within("slowest"),
    Number::new("slowest_max_ns", Time, "The longest of the slowest calls.", |f| maybe(f.slowest.max_ns)).within("slowest"),
    Number::new("p75_ns", Time, "Three quarters of the calls took no longer.", |f| maybe(f.durations.p75_ns)).sorted("p75", &[]),
    Number::new("calls_per_second", Rate, "Calls that ended, for each second.", |f| rate(f, f.ended())).sorted("calls_per_second", &[]),
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
