//! The columns of numbers of the first screen, and which of them a table of some width has.

use crate::ui::output::style::Tone;
use crate::ui::table::grid::Cell;
use crate::ui::table::net;
use crate::ui::table::number::cell;
use crate::ui::text::units::{ABSENT, Digits};
use crate::ui::views::Context;
use ctrace_core::report::numbers::{Number, NumberId, number};
use ctrace_core::report::{FunctionReport, Net};
use std::borrow::Cow;

use Numbered::{All, Few, More, Most};

/// The numbers that only a report with waits has.
pub(super) const PARTS: [&str; 3] = ["running_ns", "runnable_ns", "blocked_ns"];

/// A column of numbers.
#[derive(Clone, Copy)]
pub(in crate::ui::views) struct Numbers {
    heading: &'static str,
    number: &'static Number,
    /// The narrowest table that has it.
    pub(in crate::ui::views) least: Numbered,
    /// True if it is shown without the cost of probes in a table of times as seen.
    is_less: bool,
}

/// The share of the numbers that a table has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::ui::views) enum Numbered {
    Few,
    Most,
    /// Only tables with waits have more than these two and all.
    More,
    All,
}

pub(in crate::ui::views) const fn numbers(
    heading: &'static str,
    key: &'static str,
    least: Numbered,
) -> Numbers {
    Numbers { heading, number: number(key), least, is_less: false }
}

impl Numbers {
    pub(in crate::ui::views) fn heading(&self) -> Cow<'static, str> {
        match self.is_less {
            true => format!("net {}", self.heading).into(),
            false => self.heading.into(),
        }
    }

    /// Returns the same number without the cost of probes, if it has that. Narrow tables have those of the
    /// numbers by which functions are compared.
    fn without_probes(self) -> Option<Self> {
        self.number.less?;
        let is_compared =
            ["total_ns", "running_ns", "self_ns", "p50_ns"].contains(&self.number.key);
        let least = if is_compared { self.least } else { All };
        Some(Self { least, is_less: true, ..self })
    }

    /// Formats it for a row; `net`: without the cost of probes.
    pub(in crate::ui::views) fn cell(&self, row: &FunctionReport, net: bool) -> Cell {
        match net::shown(self.number, row, net || self.is_less) {
            net::Shown::Absent => Cell::toned(ABSENT.to_owned(), Tone::Dim),
            net::Shown::Less(less) => net::cell(less),
            net::Shown::AsSeen => cell(self.number, row, Digits::Short),
        }
    }

    /// Returns it without the cost of probes, if it is such a time.
    pub(in crate::ui::views) fn less(&self, row: &FunctionReport) -> Option<Net> {
        self.number.less?(row)
    }
}

/// These are the numbers of a report without waits.
static NUMBERS: [Numbers; 7] = [
    numbers("calls", "calls", Few),
    numbers("total", "total_ns", Few),
    numbers("self", "self_ns", Most),
    numbers("mean", "mean_ns", All),
    numbers("p50", "p50_ns", Most),
    numbers("p99", "p99_ns", Few),
    numbers("max", "max_ns", All),
];

/// These are the numbers of a report with waits. The parts of the total follow it.
static WITH_WAITS: [Numbers; 10] = [
    numbers("calls", "calls", Few),
    numbers("total", "total_ns", Few),
    numbers("running", "running_ns", Few),
    numbers("runnable", "runnable_ns", Few),
    numbers("blocked", "blocked_ns", Few),
    numbers("self", "self_ns", Most),
    numbers("mean", "mean_ns", More),
    numbers("p50", "p50_ns", More),
    numbers("p99", "p99_ns", Most),
    numbers("max", "max_ns", All),
];

/// Returns the numbers of the widest table. Where times are shown as seen although the cost of probes is known,
/// each has the time without that cost beside it.
pub(super) fn numbers_of(context: &Context<'_>) -> Vec<Numbers> {
    let numbers: &[Numbers] = if has_waits(context) { &WITH_WAITS } else { &NUMBERS };
    let has_both = has_both(context);
    let both = |it: &Numbers| [Some(*it), it.without_probes().filter(|_| has_both)];
    numbers.iter().flat_map(both).flatten().collect()
}

/// Returns whether times are shown both as seen and without the cost of probes.
pub(super) fn has_both(context: &Context<'_>) -> bool {
    context.options.raw && context.report.functions.iter().any(net::is_net)
}

/// Returns whether waits are told apart.
pub(super) fn has_waits(context: &Context<'_>) -> bool {
    context.report.functions.iter().any(|row| row.split.is_known())
}

/// Returns the number by which rows are sorted unasked.
pub(super) fn usual_order(context: &Context<'_>) -> &'static str {
    if has_waits(context) { "running" } else { "self" }
}

/// Returns the numbers that a table of this kind has. The number by which its rows are sorted is always one
/// of them.
pub(super) fn shown(context: &Context<'_>, numbered: Numbered) -> Vec<Numbers> {
    let asked = context.selection.sort.as_deref();
    let sorted = NumberId::named(asked.unwrap_or(usual_order(context))).map(NumberId::number);
    let is_sorted = |it: &Numbers| {
        sorted.is_some_and(|number| number.key == it.number.key || number.heading == it.heading())
    };
    let mut shown = numbers_of(context);
    shown.retain(|it| it.least <= numbered || is_sorted(it));
    let other = sorted.filter(|_| !shown.iter().any(is_sorted));
    let column = |number: &'static Number| Numbers {
        heading: number.heading,
        number,
        least: Few,
        is_less: false,
    };
    let other = other.map(column);
    shown.extend(other);
    shown.extend(other.and_then(Numbers::without_probes).filter(|_| has_both(context)));
    shown
}

/// Names the numbers that a table with waits has no room for.
pub(super) fn left_out_for_width(context: &Context<'_>, drawn: Numbered) -> Option<String> {
    let shown = shown(context, drawn);
    let is_missing = |heading: &Cow<'_, str>| shown.iter().all(|it| it.heading() != *heading);
    let all = numbers_of(context).into_iter().map(|it| it.heading());
    let missing: Vec<_> = all.filter(is_missing).collect();
    (!missing.is_empty()).then(|| {
        let names = missing.join(", ");
        let elsewhere = if has_both(context) { "" } else { " or --view detail" };
        format!("No room for {names}: COLUMNS=200{elsewhere} shows them.")
    })
}
