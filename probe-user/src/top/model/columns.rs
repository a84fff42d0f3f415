//! The columns of the function table, and the choice of columns for a narrow window.
//!
//! Every number of the registry is a column. Only those of [`TopColumn::BY_NEED`] show unasked.

use crate::top::data::figures::{Figures, FromHistograms};
use crate::ui::table::net::{self, Shown};
use crate::ui::text::{
    names,
    units::{ABSENT, Digits, count, percent, rate, ratio, time},
};
use ctrace_core::{
    report::{
        FunctionReport, Net,
        numbers::{Kind, NUMBERS, NumberId, Unit, number, phrase},
        render::columns::UnknownColumn,
    },
    units::Nanos,
};
use std::{str::FromStr, sync::LazyLock};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopColumn {
    Name,
    Number(NumberId),
    /// The cost of probes, which reports do not have.
    Cost,
}

static ALL: LazyLock<Vec<TopColumn>> = LazyLock::new(|| {
    let others = NumberId::all().map(TopColumn::Number).filter(|c| !TopColumn::FIRST.contains(c));
    TopColumn::FIRST.into_iter().chain(others).collect()
});

impl TopColumn {
    pub(crate) const RATE: Self = Self::Number(NumberId::of("calls_per_second"));
    pub(crate) const CALLS: Self = Self::Number(NumberId::of("calls"));
    pub(crate) const EXCLUSIVE: Self = Self::Number(NumberId::of("active_exclusive_percent"));
    pub(crate) const P50: Self = Self::Number(NumberId::of("p50_ns"));
    pub(crate) const P75: Self = Self::Number(NumberId::of("p75_ns"));
    pub(crate) const P90: Self = Self::Number(NumberId::of("p90_ns"));
    pub(crate) const P99: Self = Self::Number(NumberId::of("p99_ns"));
    pub(crate) const MAX: Self = Self::Number(NumberId::of("max_ns"));
    pub(crate) const MEAN: Self = Self::Number(NumberId::of("mean_ns"));
    pub(crate) const OWN: Self = Self::Number(NumberId::of("self_ns"));
    pub(crate) const TOTAL: Self = Self::Number(NumberId::of("total_ns"));
    pub(crate) const ACTIVE: Self = Self::Number(NumberId::of("active_ns"));
    pub(crate) const ARMED: Self = Self::Number(NumberId::of("armed_percent"));
    pub(crate) const THREADS: Self = Self::Number(NumberId::of("threads"));

    /// The column to sort by unasked.
    pub(crate) const DEFAULT: Self = Self::OWN;

    /// The first columns from left to right. The other numbers follow in the order of the registry.
    pub(crate) const FIRST: [Self; 13] = [
        Self::Name,
        Self::RATE,
        Self::CALLS,
        Self::EXCLUSIVE,
        Self::P50,
        Self::P75,
        Self::P90,
        Self::P99,
        Self::MAX,
        Self::MEAN,
        Self::OWN,
        Self::TOTAL,
        Self::Cost,
    ];

    /// The default columns, the most important first.
    pub(crate) const BY_NEED: [Self; 11] = [
        Self::RATE,
        Self::EXCLUSIVE,
        Self::P50,
        Self::P99,
        Self::TOTAL,
        Self::MAX,
        Self::P90,
        Self::OWN,
        Self::MEAN,
        Self::Cost,
        Self::CALLS,
    ];

    /// The number of columns.
    pub(crate) const COUNT: usize = NUMBERS.len() + 2;

    /// Returns all columns from left to right, the name first.
    pub(crate) fn all() -> &'static [Self] {
        &ALL
    }

    /// Returns its place in a list of [`Self::COUNT`] columns, which is not that on the screen.
    pub(crate) fn place(self) -> usize {
        match self {
            Self::Name => NUMBERS.len(),
            Self::Cost => NUMBERS.len() + 1,
            Self::Number(id) => id.index(),
        }
    }

    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Name => "function",
            Self::Cost => "cost %",
            Self::Number(id) => id.number().heading,
        }
    }

    /// Returns the name in `--sort`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Cost => "cost",
            Self::Number(id) => id.number().name,
        }
    }

    /// Returns one sentence of help, as the rest of a line.
    pub(crate) fn help(self) -> String {
        phrase(match self {
            Self::Name => "The function; a marker with its group, a USDT probe with its provider.",
            Self::Cost => "What its probes cost, of the target's CPU time; an estimate.",
            Self::Number(id) => id.number().help,
        })
    }

    /// Returns the number of a function by its place as it was seen, if there is one. Times are in nanoseconds.
    pub(crate) fn seen(self, figures: &Figures, place: usize) -> Option<f64> {
        let function = figures.report.functions.get(place)?;
        match (self, &function.sampled) {
            (Self::TOTAL, Some(estimate)) => Some(estimate.total_ns?.0 as f64),
            (Self::Number(id), None) => (id.number().of)(function).real(),
            _ => self.value(figures, place),
        }
    }

    /// Returns whether the number is shown without the cost of probes, and is known so.
    pub(crate) fn is_known_less(self, figures: &Figures, place: usize) -> bool {
        self.less(figures, place).is_none_or(|net| net.known().is_some())
    }

    /// Returns the same as it is shown.
    pub(crate) fn value(self, figures: &Figures, place: usize) -> Option<f64> {
        let function = figures.report.functions.get(place)?;
        // A sampled function shows estimates for the whole time.
        match (self, &function.sampled) {
            (Self::RATE, Some(estimate)) => Some(estimate.calls? as f64 / figures.seconds()),
            (Self::CALLS, Some(estimate)) => Some(estimate.calls? as f64),
            (Self::TOTAL, Some(estimate)) => {
                // The part that is no cost of probes is that of the calls that were seen.
                let seen = net::value(number("total_ns"), function, figures.is_net)?;
                Some(scaled(estimate.total_ns?, seen, function))
            }
            (Self::ACTIVE, Some(estimate)) => Some(estimate.active_ns?.0 as f64),
            // A function without a share was armed for the whole time.
            (Self::ARMED, None) => (function.calls > 0).then_some(100.0),
            (Self::Cost, _) => figures.percent_of_cpu(*figures.spent.get(place)?),
            (Self::Number(id), _) => net::value(id.number(), function, figures.is_net),
            (Self::Name, _) => None,
        }
    }

    /// Returns the time without the cost of probes, if it is shown so.
    fn less(self, figures: &Figures, place: usize) -> Option<Net> {
        let Self::Number(id) = self else { return None };
        match net::shown(id.number(), figures.report.functions.get(place)?, figures.is_net) {
            Shown::Less(net) => Some(net),
            Shown::Absent | Shown::AsSeen => None,
        }
    }

    /// Formats the number of a function.
    pub(crate) fn cell(self, figures: &Figures, place: usize) -> String {
        let about = self.is_about(figures, place);
        let row = figures.report.functions.get(place);
        let estimate = row.and_then(|row| row.sampled).filter(|_| self == Self::TOTAL);
        match (self.less(figures, place), row, estimate) {
            (Some(net), _, None) => net::text(net, about),
            (Some(net), Some(row), Some(estimate)) if net.known().is_none() => {
                let most = estimate.total_ns.map(|total| scaled(total, net.most.0 as f64, row));
                most.map_or_else(|| ABSENT.to_owned(), |_| format!("<{}", self.text(most, false)))
            }
            _ => self.text(self.value(figures, place), about),
        }
    }

    /// Returns whether that number is inexact.
    fn is_about(self, figures: &Figures, place: usize) -> bool {
        let functions = &figures.report.functions;
        let estimated = functions.get(place).is_some_and(|function| function.sampled.is_some());
        match self {
            Self::RATE | Self::CALLS | Self::TOTAL | Self::ACTIVE if estimated => true,
            _ => self.is_rough(figures),
        }
    }

    /// Returns whether the number is inexact for every function of this stretch of time.
    pub(crate) fn is_rough(self, figures: &Figures) -> bool {
        let Self::Number(id) = self else { return self == Self::Cost };
        match id.number().kind {
            Kind::Percentile(_) => figures.report.approximate,
            Kind::Extreme => figures.from_histograms == FromHistograms::Extremes,
            // Of several intervals or looks, only a bound is known.
            _ => self == Self::THREADS && figures.from_histograms != FromHistograms::Nothing,
        }
    }

    fn unit(self) -> Option<Unit> {
        match self {
            Self::Name => None,
            Self::Cost => Some(Unit::Percent),
            Self::Number(id) => Some(id.number().unit),
        }
    }

    /// Formats a number.
    fn text(self, value: Option<f64>, about: bool) -> String {
        let Some((value, unit)) = value.zip(self.unit()) else { return ABSENT.to_owned() };
        let text = match unit {
            Unit::Rate => rate(value),
            Unit::Count => count(value as u64),
            Unit::Percent => percent(value),
            Unit::Ratio => ratio(Some(value)),
            Unit::Time => time(Nanos(value as u64), Digits::Short),
        };
        if about { format!("~{text}") } else { text }
    }

    /// Returns whether it grows with time, so that stretches are compared by second.
    pub(crate) fn is_sum(self) -> bool {
        matches!(self, Self::Number(id) if id.number().is_additive())
    }

    /// Returns whether it is a share, which is compared in points.
    pub(crate) fn is_percent(self) -> bool {
        self.unit() == Some(Unit::Percent)
    }

    /// Returns the name by which reports sort.
    pub(crate) fn report_name(self) -> &'static str {
        match self {
            Self::Cost => Self::EXCLUSIVE.name(),
            other => other.name(),
        }
    }

    /// Returns the usual width of it, with the gap before it.
    fn width(self) -> usize {
        const USUAL: usize = 8;
        USUAL.max(names::width(self.heading()) + 1)
    }
}

/// Returns the part of an estimated total that `seen` is of the total of the calls that were seen.
fn scaled(total: Nanos, seen: f64, row: &FunctionReport) -> f64 {
    total.0 as f64 * (seen / row.total_ns.0.max(1) as f64)
}

/// Takes the names that reports sort by, and the cost.
impl FromStr for TopColumn {
    type Err = UnknownColumn;

    fn from_str(name: &str) -> Result<Self, UnknownColumn> {
        let others = [Self::Name, Self::Cost].into_iter();
        let found = others.clone().find(|column| column.name().eq_ignore_ascii_case(name));
        found.or_else(|| NumberId::named(name).map(Self::Number)).ok_or_else(|| {
            let names = Self::all().iter().map(|column| column.name());
            let valid = names.collect::<Vec<_>>().join(", ");
            UnknownColumn::Other { given: name.to_owned(), valid }
        })
    }
}

/// Returns the columns for a table of this width: the sorting column, the armed share if `is_sampled`, and as
/// many others as fit.
pub(crate) fn shown(width: usize, sort: TopColumn, is_sampled: bool) -> Vec<TopColumn> {
    let mut left = width.saturating_sub(name_room(width) + trend_room(width));
    let first = (sort != TopColumn::Name).then_some(sort);
    let armed = is_sampled.then_some(TopColumn::ARMED).into_iter();
    let others = armed.chain(TopColumn::BY_NEED).filter(|column| *column != sort);
    let mut chosen = Vec::new();
    for column in first.into_iter().chain(others) {
        let width = column.width();
        if width > left && !chosen.is_empty() {
            break;
        }
        left = left.saturating_sub(width);
        chosen.push(column);
    }
    TopColumn::all().iter().copied().filter(|column| chosen.contains(column)).collect()
}

/// Returns the least width of a name.
fn name_room(width: usize) -> usize {
    match width {
        ..60 => 14,
        60..110 => 20,
        _ => 32,
    }
}

/// Returns the width of a sparkline with the gap before it.
pub(crate) fn trend_room(width: usize) -> usize {
    match width {
        ..72 => 0,
        72..110 => 9,
        _ => 17,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_sorted_by_is_shown() {
        use TopColumn as C;
        let (rate, ae, p99) = (C::RATE, C::EXCLUSIVE, C::P99);
        assert_eq!(shown(80, ae, false), [rate, ae, C::P50, p99, C::MAX, C::TOTAL]);
        assert_eq!(shown(80, C::MEAN, false), [rate, ae, C::P50, p99, C::MEAN, C::TOTAL]);
        assert_eq!(shown(40, C::Name, false), [rate, ae, C::P50]);
        assert_eq!(shown(0, C::Cost, false), [C::Cost]);
        assert_eq!(shown(200, C::Name, false).len(), 11);
    }

    #[test]
    fn a_budget_adds_the_armed_share() {
        use TopColumn as C;
        let columns = [C::RATE, C::EXCLUSIVE, C::P50, C::P99, C::TOTAL, C::ARMED];
        assert_eq!(shown(80, C::EXCLUSIVE, true), columns);
        assert_eq!(shown(80, C::ARMED, true), shown(80, C::ARMED, false));
    }

    /// A new number is a column without an entry here.
    #[test]
    fn every_number_can_be_asked_for() {
        assert_eq!(TopColumn::all().len(), TopColumn::COUNT);
        for id in NumberId::all() {
            let column = TopColumn::Number(id);
            assert!(TopColumn::all().contains(&column), "{column:?}");
            assert!(shown(60, column, false).contains(&column), "{column:?}");
            for name in [id.number().name].iter().chain(id.number().aliases) {
                assert_eq!(name.parse(), Ok(column), "{name}");
            }
        }
        let mut places: Vec<_> = TopColumn::all().iter().map(|column| column.place()).collect();
        places.sort_unstable();
        assert!(places.into_iter().eq(0..TopColumn::COUNT));
        assert_eq!(shown(200, TopColumn::P75, false).len(), 12);
        assert_eq!(("NAME".parse(), "cost".parse()), (Ok(TopColumn::Name), Ok(TopColumn::Cost)));
        let error = "p98".parse::<TopColumn>().expect_err("no column").to_string();
        assert!(error.contains("'p98'") && error.contains("p95, p999"), "{error}");
    }

    /// A long heading takes the place of columns, not of the function's name.
    #[test]
    fn wide_columns_leave_room_for_names() {
        let wide = TopColumn::Number(NumberId::of("center_active_exclusive_percent"));
        let number = |sort| shown(80, sort, false).len();
        assert_eq!(number(wide), number(TopColumn::EXCLUSIVE) - 1);
    }

    #[test]
    fn every_column_has_a_heading_and_a_meaning() {
        for column in TopColumn::all() {
            assert!(!column.heading().is_empty() && !column.help().is_empty(), "{column:?}");
        }
        assert_eq!(TopColumn::P99.help(), "all but one in a hundred took no longer");
    }
}
