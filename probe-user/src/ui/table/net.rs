//! Times without the cost of probes, in tables. A time that may be wrong says so: `~2.5 ms` may be
//! wrong by up to half of it, and `<2.5 ms` tells no more than the most that it can be.

use crate::ui::output::style::Tone;
use crate::ui::table::grid::Cell;
use crate::ui::text::units::{Digits, time};
use ctrace_core::report::numbers::{Number, Unit};
use ctrace_core::report::{FunctionReport, Net};
use ctrace_core::units::Nanos;

/// A number of a row as tables show it.
pub(crate) enum Shown {
    Absent,
    /// A time without the cost of probes.
    Less(Net),
    AsSeen,
}

/// Returns how a number of a row is shown; `net`: without the cost of probes.
pub(crate) fn shown(number: &Number, row: &FunctionReport, net: bool) -> Shown {
    match (row.ended(), number.less.filter(|_| net)) {
        // Calls that have not ended have no time yet.
        (0, _) if number.unit == Unit::Time => Shown::Absent,
        // A wait has no probe.
        (_, Some(_)) if row.wait.is_some() => Shown::AsSeen,
        (_, Some(_)) if is_unknown(row) => Shown::Absent,
        (_, Some(less)) => less(row).map_or(Shown::Absent, Shown::Less),
        (_, None) => Shown::AsSeen,
    }
}

/// Returns the number that [`shown`] tells of: rows are ordered by it.
pub(crate) fn value(number: &Number, row: &FunctionReport, net: bool) -> Option<f64> {
    match shown(number, row, net) {
        Shown::Absent => None,
        Shown::Less(less) => Some(less.ns.0 as f64),
        Shown::AsSeen => (number.of)(row).real(),
    }
}

/// The legend of `~`.
const ROUGH: &str = "~: may be off by up to half: part of it is the cost of probes, or waiting for processors on \
                     which probes ran";
macro_rules! at_most {
    () => {
        "<: at most that: nearly all of it may be the cost of probes, or waiting for processors on which probes \
         ran"
    };
}

/// The legend of `<`.
const AT_MOST: &str = at_most!();
/// The same where rows are in the order of such times.
const AT_MOST_IN_ORDER: &str = concat!(
    at_most!(),
    ". Its place and its bar follow what is left after the usual cost, which is too uncertain to print"
);

/// The legend of both where return addresses were put back.
const RESTORED: &str = "Return addresses were put back within calls (exceptions, backtraces): how long that took is not \
                        known, so no time loses it. ~ and < count it as an error";

/// Returns whether the times of a row are known without the cost of probes.
pub(crate) fn is_net(row: &FunctionReport) -> bool {
    row.calls > 0 && row.measured_probes().is_some()
}

/// Returns whether nothing is known of a function's times: no end of a call was seen, and no event inside one.
pub(crate) fn is_unknown(row: &FunctionReport) -> bool {
    row.timed == 0 && row.total_ns == Nanos::ZERO
}

/// Formats a time of a function.
pub(crate) fn cell(net: Net) -> Cell {
    let tone = if net.known().is_some() { Tone::Plain } else { Tone::Warm };
    Cell::toned(text(net, false), tone)
}

/// Returns its text; `about`: it has the sign `~` at least.
pub(crate) fn text(net: Net, about: bool) -> String {
    match net.known() {
        // Clocks tell no less than a nanosecond.
        None => format!("<{}", time(net.most.max(Nanos(1)), Digits::Short)),
        Some(ns) => {
            let sign = if about || net.is_rough() { "~" } else { "" };
            format!("{sign}{}", time(ns, Digits::Short))
        }
    }
}

/// Returns what the table's rows are ordered by, and how long their bars are: what is left without the usual cost
/// of probes, also where no more is told than the most that it can be. Functions that do little would lead
/// otherwise, and those that sleep if what is certainly no work counted. `net`: without the cost of probes.
pub(crate) fn own(row: &FunctionReport, net: bool) -> Nanos {
    let own = row.net_self().filter(|_| net).map_or(row.self_ns, |less| less.ns);
    own.since(row.idle_ns)
}

/// Returns the same of the time with a processor.
pub(crate) fn running(row: &FunctionReport, net: bool) -> Nanos {
    let seen = row.split.running_ns.unwrap_or_default();
    row.net_running().filter(|_| net).map_or(seen, |less| less.ns)
}

/// Says what else may be in times of these rows.
pub(crate) fn unsubtracted(rows: &[&FunctionReport]) -> Option<&'static str> {
    let is_doubted = |row: &&FunctionReport| {
        row.restored.total_ns > Nanos::ZERO && row.measured_probes().is_some()
    };
    rows.iter().any(is_doubted).then_some(RESTORED)
}

/// Explains the signs in front of these times; `orders`: rows are in the order of such times.
pub(crate) fn legend(times: impl Iterator<Item = Net>, orders: bool) -> Vec<&'static str> {
    let (mut rough, mut at_most) = (false, false);
    for net in times {
        match net.known() {
            None => at_most = true,
            Some(_) => rough |= net.is_rough(),
        }
    }
    let bound = if orders { AT_MOST_IN_ORDER } else { AT_MOST };
    [(rough, ROUGH), (at_most, bound)].into_iter().filter(|it| it.0).map(|it| it.1).collect()
}
