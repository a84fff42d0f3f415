//! The numbers of CTRACK's tables, by its own definitions: see "CTRACK's numbers" in
//! docs/statistics.md. They are apart from the others, because two of them have the names of numbers
//! that ctrace defines in another way.

use super::FunctionReport;
use super::key::Key;
use super::numbers::{Kind, Number, Unit};
use crate::stats::events::FunctionEvents;
use crate::stats::rank::Center;
use crate::stats::tally::Tally;
use crate::stats::unions::FunctionUnions;
use crate::units::Nanos;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// CTRACK's tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CtrackReport {
    /// The time in which any thread was in a call that ended.
    pub tracked_ns: Nanos,
    pub tracked_percent: f64,
    /// The functions with a call that ended, in order.
    pub functions: Vec<CtrackRow>,
}

/// CTRACK's numbers of one function. They are of its timed calls alone, which CTRACK calls events.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CtrackRow {
    /// Index in `functions` of the report.
    pub function: usize,
    pub calls: u64,
    pub threads: u64,
    pub time_acc_ns: Nanos,
    pub sd_ns: Nanos,
    pub cv: Option<f64>,
    pub active_ns: Nanos,
    pub active_exclusive_ns: Nanos,
    pub active_exclusive_percent: f64,
    pub fastest_min_ns: Option<Nanos>,
    pub fastest_mean_ns: Option<Nanos>,
    /// The center's numbers are absent if all calls are in the tails.
    pub center: Option<CtrackCenter>,
    pub slowest_mean_ns: Option<Nanos>,
    pub slowest_max_ns: Option<Nanos>,
}

/// CTRACK's numbers of the calls between the two tails.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CtrackCenter {
    pub min_ns: Nanos,
    pub mean_ns: Nanos,
    pub median_ns: Nanos,
    pub active_ns: Nanos,
    pub active_exclusive_ns: Nanos,
    pub active_exclusive_percent: f64,
    pub max_ns: Nanos,
}

impl CtrackRow {
    /// Makes the row of the function at this index, which has timed calls.
    pub(crate) fn new(
        function: usize,
        threads: u64,
        tally: &Tally,
        ranked: &Center,
        (unions, events): (FunctionUnions, FunctionEvents),
        duration: Nanos,
    ) -> Self {
        let spread = tally.deviation();
        let active_exclusive_ns = Nanos(events.active.saturating_sub(events.callees));
        // Means, deviations and medians of CTRACK are rounded down.
        let [low, high] = ranked.tails_ns.map(|sum| sum.checked_div(ranked.cut).map(Nanos));
        let center = ranked.center.min_ns.zip(ranked.center.max_ns).map(|(min_ns, max_ns)| {
            let [low_ns, high_ns] = ranked.tails_ns;
            let sum = tally.timed_ns.saturating_sub(low_ns).saturating_sub(high_ns);
            let calls = tally.timed.saturating_sub(ranked.cut.saturating_mul(2));
            let lower = ranked.center.median_ns.unwrap_or_default().0;
            let exclusive = unions.center_active.saturating_sub(events.center_callees);
            CtrackCenter {
                min_ns,
                mean_ns: Nanos(sum.checked_div(calls).unwrap_or(0)),
                median_ns: Nanos(lower.midpoint(ranked.upper_median)),
                active_ns: Nanos(unions.center_active),
                active_exclusive_ns: Nanos(exclusive),
                active_exclusive_percent: Nanos(exclusive).percent_of(duration),
                max_ns,
            }
        });
        Self {
            function,
            calls: tally.timed,
            threads,
            time_acc_ns: Nanos(tally.timed_ns),
            sd_ns: Nanos(spread.map_or(0, |(sd, _)| sd as u64)),
            cv: spread.and_then(|(_, cv)| cv),
            active_ns: Nanos(events.active),
            active_exclusive_ns,
            active_exclusive_percent: active_exclusive_ns.percent_of(duration),
            fastest_min_ns: ranked.fastest.min_ns,
            fastest_mean_ns: low,
            center,
            slowest_mean_ns: high,
            slowest_max_ns: ranked.slowest.max_ns,
        }
    }

    /// Returns the function's row in `functions` of the report.
    pub fn of<'a>(&self, functions: &'a [FunctionReport]) -> Option<&'a FunctionReport> {
        functions.get(self.function)
    }
}

impl Serialize for CtrackRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1 + NUMBERS.len()))?;
        map.serialize_entry("function", &self.function)?;
        NUMBERS.iter().try_for_each(|number| (number.of)(self).entry(number.key, &mut map))?;
        map.end()
    }
}

/// None of them can be had for parts of the time.
const fn new(
    key: &'static str,
    unit: Unit,
    help: &'static str,
    of: for<'a> fn(&'a CtrackRow) -> Key<'a>,
) -> Number<CtrackRow> {
    Number::of_rows(key, unit, Kind::Other, help, of)
}

fn count<'a>(n: u64) -> Key<'a> {
    Key::Count(Some(n))
}

fn maybe<'a>(ns: Option<Nanos>) -> Key<'a> {
    Key::Count(ns.map(|ns| ns.0))
}

fn center<'a>(row: &CtrackRow, ns: fn(&CtrackCenter) -> Nanos) -> Key<'a> {
    maybe(row.center.as_ref().map(ns))
}

use Unit::{Count, Percent, Ratio, Time};

/// All numbers, in the order of JSON and CSV.
#[rustfmt::skip]
pub const NUMBERS: &[Number<CtrackRow>] = &[
    new("calls", Count, "Calls that ended.", |r| count(r.calls)),
    new("threads", Count, "Threads in which it was called.", |r| count(r.threads)),
    new("time_acc_ns", Time, "Sum of the durations.", |r| count(r.time_acc_ns.0)).named("total", &["acc", "time_acc"]),
    new("sd_ns", Time, "Standard deviation of the durations, rounded down.", |r| count(r.sd_ns.0)),
    new("cv", Ratio, "Standard deviation divided by the mean.", |r| Key::Real(r.cv)),
    new("active_ns", Time, "Union of the calls over all threads.", |r| count(r.active_ns.0)).named("a", &["active", "time_a"]),
    new("active_exclusive_ns", Time, "Union of the calls less the union of the calls they made.", |r| count(r.active_exclusive_ns.0)).named("ae", &["active_exclusive", "time_ae"]),
    new("active_exclusive_percent", Percent, "The same in percent of the duration.", |r| Key::Real(Some(r.active_exclusive_percent))).named("ae_percent", &[]),
    new("fastest_min_ns", Time, "The shortest of the fastest calls.", |r| maybe(r.fastest_min_ns)),
    new("fastest_mean_ns", Time, "Mean duration of the fastest calls, rounded down.", |r| maybe(r.fastest_mean_ns)),
    new("center_min_ns", Time, "The shortest call of the center.", |r| center(r, |c| c.min_ns)),
    new("center_mean_ns", Time, "Mean duration of the center, rounded down.", |r| center(r, |c| c.mean_ns)),
    new("center_median_ns", Time, "The middle duration of the center, or the mean of the two.", |r| center(r, |c| c.median_ns)),
    new("center_active_ns", Time, "Union of the center's calls.", |r| center(r, |c| c.active_ns)).named("a_center", &["center_a"]),
    new("center_active_exclusive_ns", Time, "The same less the union of the calls they made.", |r| center(r, |c| c.active_exclusive_ns)).named("ae_center", &["center_ae"]),
    new("center_active_exclusive_percent", Percent, "The same in percent of the duration.", |r| Key::Real(r.center.map(|c| c.active_exclusive_percent))).named("ae_center_percent", &[]),
    new("center_max_ns", Time, "The longest call of the center.", |r| center(r, |c| c.max_ns)),
    new("slowest_mean_ns", Time, "Mean duration of the slowest calls, rounded down.", |r| maybe(r.slowest_mean_ns)),
    new("slowest_max_ns", Time, "The longest of the slowest calls.", |r| maybe(r.slowest_max_ns)),
];

/// Returns the number with this key. An unknown key in a constant fails the build.
pub const fn number(key: &str) -> &'static Number<CtrackRow> {
    &NUMBERS[super::numbers::place(NUMBERS, key)]
}
