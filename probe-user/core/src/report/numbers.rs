//! The registry of a function's numbers: names, unit, meaning and value of each.
//!
//! JSON, CSV, the sortable columns, the screen of `top` and the metrics of comparisons are derived
//! from this list. Tables and the daemon's metrics choose from it by key, and a test compares the
//! schema of JSON with it. A new number is one entry at the end, so that the columns of CSV stay in
//! place.

use super::key::Key;
use super::{FunctionReport, Net};
use crate::units::Nanos;
use std::fmt;

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

/// The way a number follows from calls and time. It decides where else the number can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A sum over calls. Call paths have it too, and so has any stretch of time.
    OfCalls,
    /// The time in which something held. Any stretch has it, call paths do not.
    OfTime,
    /// A count that adds up, but nobody knows when in a recording it grew.
    Undated,
    /// The mean duration of calls.
    Mean,
    /// The duration that this part of 1,000 of the calls does not exceed.
    Percentile(u64),
    /// The shortest or the longest of some calls.
    Extreme,
    /// Made from other numbers of the row, or from what only single calls tell.
    Other,
}

/// See the module. The rows of functions have [`NUMBERS`], those of CTRACK's tables
/// [`super::ctrack::NUMBERS`].
#[derive(Debug)]
pub struct Number<T: 'static = FunctionReport> {
    /// The heading in CSV and the key in JSON. In nested objects, JSON leaves out the parent's
    /// name.
    pub key: &'static str,
    /// The object in JSON that has this number, if it is nested in that of the function.
    pub parent: Option<&'static str>,
    /// The name in options such as `--sort`: the key without its unit, or a shorter one.
    pub name: &'static str,
    /// The heading on a screen: the name, or what reads better.
    pub heading: &'static str,
    /// Other spellings of the name, as in other tools.
    pub aliases: &'static [&'static str],
    pub unit: Unit,
    pub kind: Kind,
    /// One sentence of explanation.
    pub help: &'static str,
    pub of: for<'a> fn(&'a T) -> Key<'a>,
    /// A time without the cost of probes, for those in which that is a part.
    pub less: Option<fn(&T) -> Option<Net>>,
}

impl<T: 'static> Clone for Number<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: 'static> Copy for Number<T> {}

impl Number {
    const fn new(
        key: &'static str,
        unit: Unit,
        kind: Kind,
        help: &'static str,
        of: for<'a> fn(&'a FunctionReport) -> Key<'a>,
    ) -> Self {
        Self::of_rows(key, unit, kind, help, of)
    }
}

impl<T: 'static> Number<T> {
    pub(super) const fn of_rows(
        key: &'static str,
        unit: Unit,
        kind: Kind,
        help: &'static str,
        of: for<'a> fn(&'a T) -> Key<'a>,
    ) -> Self {
        let name = without_unit(key);
        Self {
            key,
            parent: None,
            name,
            heading: name,
            aliases: &[],
            unit,
            kind,
            help,
            of,
            less: None,
        }
    }

    pub(super) const fn named(self, name: &'static str, aliases: &'static [&'static str]) -> Self {
        Self { name, heading: name, aliases, ..self }
    }

    const fn headed(self, heading: &'static str) -> Self {
        Self { heading, ..self }
    }

    const fn less(self, less: fn(&T) -> Option<Net>) -> Self {
        Self { less: Some(less), ..self }
    }

    const fn within(self, parent: &'static str) -> Self {
        Self { parent: Some(parent), ..self }
    }

    /// Returns whether the number of two stretches of time together is the sum of both. Only a call
    /// that is running between them is among the `calls` of both, and `open` in the first.
    pub const fn is_additive(&self) -> bool {
        matches!(self.kind, Kind::OfCalls | Kind::OfTime | Kind::Undated)
    }

    /// Returns whether only the times of single calls tell it: it is not known where calls are counted
    /// without an event of each.
    pub fn takes_single_calls(&self) -> bool {
        self.parent.is_some()
            || matches!(
                self.key,
                "threads" | "active_ns" | "active_exclusive_ns" | "active_exclusive_percent"
            )
    }

    /// Returns its key within its object in JSON.
    pub fn json_key(&self) -> &'static str {
        let nested =
            self.parent.and_then(|parent| self.key.strip_prefix(parent)?.strip_prefix('_'));
        nested.unwrap_or(self.key)
    }

    /// Returns its help as the rest of a line.
    pub fn phrase(&self) -> String {
        phrase(self.help)
    }
}

/// Turns a sentence into the rest of a line.
pub fn phrase(sentence: &str) -> String {
    let sentence = sentence.trim_end_matches('.');
    let (first, rest) = sentence.split_at(sentence.len().min(1));
    first.to_lowercase() + rest
}

/// A number by its place in [`NUMBERS`]: small, and easy to compare.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct NumberId(usize);

impl NumberId {
    /// Returns the number with this key. An unknown key in a constant fails the build.
    pub const fn of(key: &str) -> Self {
        Self(place(NUMBERS, key))
    }

    /// Returns the number with this name, or with this other spelling of it.
    pub fn named(name: &str) -> Option<Self> {
        let name = plain(name);
        Self::all().find(|id| id.number().name == name || id.number().aliases.contains(&&*name))
    }

    /// Returns all of them in the order of [`NUMBERS`].
    pub fn all() -> impl Iterator<Item = Self> {
        (0..NUMBERS.len()).map(Self)
    }

    pub const fn number(self) -> &'static Number {
        &NUMBERS[self.0]
    }

    /// Returns its place in [`NUMBERS`].
    pub const fn index(self) -> usize {
        self.0
    }
}

impl fmt::Debug for NumberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.number().key)
    }
}

/// Returns the number with this key. An unknown key in a constant fails the build.
pub const fn number(key: &str) -> &'static Number {
    NumberId::of(key).number()
}

/// Returns the place of the number with this key.
pub(super) const fn place<T: 'static>(numbers: &[Number<T>], key: &str) -> usize {
    let mut at = 0;
    while at < numbers.len() {
        if is_same(numbers[at].key.as_bytes(), key.as_bytes()) {
            return at;
        }
        at += 1;
    }
    panic!("no number has this key")
}

/// Returns a given name in the spelling of the lists: case is ignored, and `-` equals `_`.
pub(crate) fn plain(name: &str) -> String {
    name.to_ascii_lowercase().replace('-', "_")
}

/// Returns a key as people write it.
const fn without_unit(key: &'static str) -> &'static str {
    match key.as_bytes() {
        [name @ .., b'_', b'n', b's'] => match std::str::from_utf8(name) {
            Ok(name) => name,
            Err(_) => key,
        },
        _ => key,
    }
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

/// Returns a number that takes the times of single calls.
fn of_single_calls<'a>(row: &FunctionReport, number: u64) -> Key<'a> {
    Key::Count((!row.counted).then_some(number))
}

fn maybe<'a>(ns: Option<Nanos>) -> Key<'a> {
    Key::Count(ns.map(|ns| ns.0))
}

fn net<'a>(net: Option<Net>) -> Key<'a> {
    maybe(net.and_then(Net::known))
}

/// Returns `n` per second of the row's stretch.
fn rate<'a>(row: &FunctionReport, n: u64) -> Key<'a> {
    let seconds = row.stretch_ns.0 as f64 / 1e9;
    Key::Real((seconds > 0.0).then(|| n as f64 / seconds))
}

use Kind::{Extreme, Mean, OfCalls, OfTime, Other, Percentile, Undated};
use Unit::{Count, Percent, Rate, Ratio, Time};

/// All numbers, in the order of JSON and CSV.
#[rustfmt::skip]
pub const NUMBERS: &[Number] = &[
    Number::new("calls", Count, OfCalls, "Times it was entered: timed + untimed + open.", |f| count(f.calls)),
    Number::new("timed", Count, OfCalls, "Calls whose end was seen.", |f| count(f.timed)),
    Number::new("untimed", Count, OfCalls, "Calls known to be over whose end was not seen.", |f| count(f.untimed)).headed("ended unseen"),
    Number::new("open", Count, Other, "Calls still running at the end.", |f| count(f.open)).headed("still running"),
    Number::new("headless", Count, Undated, "Ends of calls that began before tracing; not in calls.", |f| count(f.headless)).headed("began before"),
    Number::new("threads", Count, Other, "Threads that entered it.", |f| of_single_calls(f, f.threads)),
    Number::new("total_ns", Time, OfCalls, "Sum of all durations.", |f| time(f.total_ns)).named("total", &["acc", "time_acc"]).less(FunctionReport::net_total),
    Number::new("self_ns", Time, OfCalls, "Durations less those of the direct traced callees.", |f| time(f.self_ns)).less(FunctionReport::net_self),
    Number::new("active_ns", Time, OfTime, "Time in which it is on the stack of any thread.", |f| of_single_calls(f, f.active_ns.0)).named("a", &["active", "time_a"]),
    Number::new("active_exclusive_ns", Time, OfTime, "Time in which it is the innermost traced function of any thread.", |f| of_single_calls(f, f.active_exclusive_ns.0)).named("innermost", &["ae", "active_exclusive", "time_ae"]),
    Number::new("active_exclusive_percent", Percent, Other, "Share of the time in which it was innermost on any thread.", |f| Key::Real((!f.counted).then_some(f.active_exclusive_percent))).named("innermost_percent", &["ae_percent"]).headed("inner %"),
    Number::new("min_ns", Time, Extreme, "The shortest call.", |f| maybe(f.durations.min_ns)),
    Number::new("mean_ns", Time, Mean, "The mean duration.", |f| maybe(f.durations.mean_ns)).named("mean", &["avg"]).less(FunctionReport::net_mean),
    Number::new("p50_ns", Time, Percentile(500), "Half of the calls took no longer.", |f| maybe(f.durations.p50_ns)).named("p50", &["median", "med"]).less(FunctionReport::net_p50),
    Number::new("p90_ns", Time, Percentile(900), "Nine tenths took no longer.", |f| maybe(f.durations.p90_ns)).less(FunctionReport::net_p90),
    Number::new("p95_ns", Time, Percentile(950), "All but one in twenty took no longer.", |f| maybe(f.durations.p95_ns)).less(FunctionReport::net_p95),
    Number::new("p99_ns", Time, Percentile(990), "All but one in a hundred took no longer.", |f| maybe(f.durations.p99_ns)).less(FunctionReport::net_p99),
    Number::new("p999_ns", Time, Percentile(999), "All but one in a thousand took no longer.", |f| maybe(f.durations.p999_ns)).named("p999", &["p99.9"]).headed("p99.9").less(FunctionReport::net_p999),
    Number::new("max_ns", Time, Extreme, "The longest call.", |f| maybe(f.durations.max_ns)).less(FunctionReport::net_max),
    Number::new("sd_ns", Time, Other, "Standard deviation of the durations.", |f| maybe(f.durations.sd_ns)),
    Number::new("cv", Ratio, Other, "Standard deviation divided by the mean.", |f| Key::Real(f.durations.cv)),
    Number::new("fastest_min_ns", Time, Other, "The shortest of the fastest calls.", |f| maybe(f.fastest.min_ns)).headed("fastest min").within("fastest"),
    Number::new("fastest_mean_ns", Time, Other, "Mean duration of the fastest calls.", |f| maybe(f.fastest.mean_ns)).headed("fastest mean").within("fastest"),
    Number::new("center_min_ns", Time, Other, "The shortest call of the center.", |f| maybe(f.center.min_ns)).headed("center min").within("center"),
    Number::new("center_mean_ns", Time, Other, "Mean duration of the center.", |f| maybe(f.center.mean_ns)).headed("center mean").within("center"),
    Number::new("center_median_ns", Time, Other, "Half of the center's calls took no longer.", |f| maybe(f.center.median_ns)).headed("center median").within("center"),
    Number::new("center_max_ns", Time, Other, "The longest call of the center.", |f| maybe(f.center.max_ns)).headed("center max").within("center"),
    Number::new("center_active_ns", Time, Other, "Active time of the center's calls alone.", |f| maybe(f.center.active_ns)).named("a_center", &["center_a"]).headed("center a").within("center"),
    Number::new("center_active_exclusive_ns", Time, Other, "Innermost time of the center's calls alone.", |f| maybe(f.center.active_exclusive_ns)).named("innermost_center", &["ae_center", "center_ae"]).headed("center innermost").within("center"),
    Number::new("center_active_exclusive_percent", Percent, Other, "The same in percent of the duration.", |f| Key::Real(f.center.active_exclusive_percent)).named("innermost_center_percent", &["ae_center_percent"]).headed("center inner %").within("center"),
    Number::new("slowest_mean_ns", Time, Other, "Mean duration of the slowest calls.", |f| maybe(f.slowest.mean_ns)).headed("slowest mean").within("slowest"),
    Number::new("slowest_max_ns", Time, Other, "The longest of the slowest calls.", |f| maybe(f.slowest.max_ns)).headed("slowest max").within("slowest"),
    Number::new("p75_ns", Time, Percentile(750), "Three quarters of the calls took no longer.", |f| maybe(f.durations.p75_ns)).less(FunctionReport::net_p75),
    Number::new("calls_per_second", Rate, Other, "Calls that ended, for each second.", |f| rate(f, f.ended())).headed("calls/s"),
    Number::new("net_total_ns", Time, Other, "The total without the cost of probes, if that was measured here.", |f| net(f.net_total())).headed("net total"),
    Number::new("net_self_ns", Time, Other, "The self time without the cost of probes, if that was measured here.", |f| net(f.net_self())).headed("net self"),
    Number::new("net_mean_ns", Time, Other, "The mean duration without the cost of probes, if that was measured here.", |f| net(f.net_mean())).headed("net mean"),
    Number::new("net_p50_ns", Time, Other, "The median less the mean cost of probes in a call, if that was measured here.", |f| net(f.net_p50())).headed("net p50"),
    Number::new("net_p99_ns", Time, Other, "The 99th percentile less the same.", |f| net(f.net_p99())).headed("net p99"),
    Number::new("net_max_ns", Time, Other, "The longest call less the same.", |f| net(f.net_max())).headed("net max"),
    Number::new("running_ns", Time, Other, "Part of the total in which the thread had a processor, if waits were asked for.", |f| maybe(f.split.running_ns)).less(FunctionReport::net_running),
    Number::new("runnable_ns", Time, Other, "Part of the total in which it waited for a processor.", |f| maybe(f.split.runnable_ns)),
    Number::new("blocked_ns", Time, Other, "Part of the total in which it waited for something else.", |f| maybe(f.split.blocked_ns)),
    Number::new("armed_percent", Percent, Other, "Share of the time in which it was armed, if a budget armed it for a part.", |f| Key::Real(f.sampled.map(|sampled| sampled.armed_percent))).named("armed", &[]).headed("armed %"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// It would be with the cost of probes beside others without.
    #[test]
    fn times_of_calls_are_known_without_the_cost_of_probes() {
        // The shortest call has hardly more than that cost.
        let is_of_calls = |number: &&Number| {
            let kinds = matches!(number.kind, Percentile(_) | Mean | Extreme | OfCalls);
            kinds && number.unit == Time && number.key != "min_ns"
        };
        for number in NUMBERS.iter().filter(is_of_calls) {
            assert!(number.less.is_some(), "{}", number.key);
        }
    }
    use crate::report::SampledReport;
    use crate::report::percentiles::PERMILLE;
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
        for number in NUMBERS.iter().filter(|number| number.is_additive()) {
            let [a, b, sum] = [&one, &other, &both].map(|row| match (number.of)(row) {
                Key::Count(Some(n)) => n,
                key => panic!("{} is {key:?}", number.key),
            });
            assert_eq!(a + b, sum, "{}", number.key);
            assert!(a > 0 && b > 0 && a != b, "{} tells nothing here", number.key);
        }
    }

    #[test]
    fn what_takes_single_calls_is_absent_where_they_are_counted() {
        let mut counted = row(Summary::of(&[3, 11].map(Nanos)), Nanos(1_000));
        counted.counted = true;
        for number in NUMBERS.iter().filter(|number| number.takes_single_calls()) {
            let key = (number.of)(&counted);
            assert!(matches!(key, Key::Count(None) | Key::Real(None)), "{} is there", number.key);
        }
        let known = |key| matches!((number(key).of)(&counted), Key::Count(Some(_)));
        assert!(["calls", "total_ns", "self_ns", "min_ns", "max_ns"].into_iter().all(known));
    }

    #[test]
    fn a_function_that_was_armed_throughout_has_no_share() {
        let mut row = row(Summary::default(), Nanos(1_000));
        let share = number("armed_percent").of;
        assert!(matches!(share(&row), Key::Real(None)));
        let sampled = SampledReport {
            armed_ns: Nanos(193),
            armed_percent: 19.3,
            windows: 7,
            calls: None,
            calls_error: None,
            total_ns: None,
            active_ns: None,
        };
        row.sampled = Some(sampled);
        assert!(matches!(share(&row), Key::Real(Some(percent)) if percent == 19.3));
        assert_eq!(NumberId::named("armed"), Some(NumberId::of("armed_percent")));
    }

    #[test]
    fn every_name_means_one_number() {
        let names = |number: &Number| [&[number.name], number.aliases].concat();
        let mut all: Vec<_> = NUMBERS.iter().flat_map(names).collect();
        for id in NumberId::all() {
            for name in names(id.number()) {
                assert_eq!(NumberId::named(&name.to_uppercase()), Some(id), "{name}");
            }
        }
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
        assert_eq!(NumberId::named("center-active-exclusive-PERCENT"), None);
        assert_eq!(NumberId::named("p50_ns"), None);
        assert_eq!(number("center_mean_ns").name, "center_mean");
    }

    /// Names of options have underscores; headings are for people.
    #[test]
    fn every_number_has_a_heading_of_its_own() {
        let mut all: Vec<_> = NUMBERS.iter().map(|number| number.heading).collect();
        assert!(all.iter().all(|heading| !heading.is_empty() && !heading.contains('_')), "{all:?}");
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{all:?}");
    }

    /// Each is read from the field that the list of percentiles fills.
    #[test]
    fn percentiles_are_of_the_part_that_they_say() {
        let mut row = row(Summary::default(), Nanos(1));
        row.durations.set_percentiles(|permille| Some(Nanos(permille)));
        let mut parts = Vec::new();
        for number in NUMBERS {
            if let Kind::Percentile(permille) = number.kind {
                assert_eq!((number.of)(&row).whole(), Some(permille), "{}", number.key);
                parts.push(permille);
            }
        }
        parts.sort_unstable();
        assert_eq!(parts, PERMILLE);
    }
}
