//! Selects and sorts the shown rows: `--sort`, `--top` and `--min-percent`.

use super::metric::{Metric, UnknownMetric};
use super::model::{Compared, FunctionDiff, PathDiff, Presence};
use super::verdict::Verdict;
use crate::report::render::columns::UnknownColumn;
use std::cmp::Ordering;

/// The reader's choice of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowSelection {
    /// One of [`columns`].
    pub sort: Option<String>,
    pub top: Option<usize>,
    /// Leaves out rows with a smaller share of the time on both sides.
    pub min_percent: Option<f64>,
}

/// The chosen rows, as indices of the list, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiffRows {
    pub indices: Vec<usize>,
    pub left_out: usize,
}

/// A function or a path.
pub trait Row {
    fn compared(&self) -> &Compared;
    fn name(&self) -> &str;
    /// Returns the metric of its time: active-exclusive where that is known.
    fn time(&self) -> Metric;
}

impl Row for FunctionDiff {
    fn compared(&self) -> &Compared {
        &self.compared
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn time(&self) -> Metric {
        Metric::EXCLUSIVE
    }
}

impl Row for PathDiff {
    fn compared(&self) -> &Compared {
        &self.compared
    }

    fn name(&self) -> &str {
        self.path.last().map_or("", |name| name)
    }

    fn time(&self) -> Metric {
        Metric::TOTAL
    }
}

const VERDICT: &str = "verdict";
const CHANGE: &str = "change";
const NAME: &str = "name";

/// Returns the columns for sorting; the first is the default.
pub fn columns() -> Vec<&'static str> {
    let metrics = Metric::all().map(Metric::name);
    [VERDICT, CHANGE].into_iter().chain(metrics).chain([NAME]).collect()
}

pub fn check_column(name: &str) -> Result<(), UnknownColumn> {
    match columns().contains(&name) || name.parse::<Metric>().is_ok() {
        true => Ok(()),
        false => Err(UnknownColumn::Other { given: name.to_owned(), valid: columns().join(", ") }),
    }
}

/// Chooses rows that were called on both sides (`both`), or on one.
pub fn choose<T: Row>(
    list: &[T],
    metric: Metric,
    selection: &RowSelection,
    both: bool,
) -> DiffRows {
    let is_asked = |row: &T| (row.compared().presence == Presence::Both) == both;
    let all = (0..list.len()).filter(|&at| is_asked(&list[at]));
    let mut indices: Vec<usize> =
        all.clone().filter(|&at| is_large_enough(&list[at], selection)).collect();
    let sort = selection.sort.as_deref().unwrap_or(VERDICT);
    indices.sort_by(|&a, &b| order(&list[a], &list[b], sort, metric).then(a.cmp(&b)));
    indices.truncate(selection.top.unwrap_or(usize::MAX));
    DiffRows { left_out: all.count() - indices.len(), indices }
}

/// Returns the larger value of the sides, such as nanoseconds per second.
fn most(row: &impl Row, metric: Metric) -> f64 {
    let change = row.compared().changes.of(metric);
    change.old.unwrap_or(0.0).max(change.new.unwrap_or(0.0))
}

fn is_large_enough(row: &impl Row, selection: &RowSelection) -> bool {
    selection.min_percent.is_none_or(|min| most(row, row.time()) / 1e7 >= min)
}

fn order<T: Row>(a: &T, b: &T, sort: &str, metric: Metric) -> Ordering {
    let descending = |value: fn(&T, Metric) -> f64| value(b, metric).total_cmp(&value(a, metric));
    let change = |row: &T, metric: Metric| {
        let percent = row.compared().changes.of(metric).change_percent;
        percent.map_or(f64::NEG_INFINITY, f64::abs)
    };
    match sort {
        VERDICT => {
            rank(a).cmp(&rank(b)).then_with(|| match a.compared().verdict.is_significant() {
                true => descending(change),
                false => Ordering::Equal,
            })
        }
        CHANGE => descending(change),
        NAME => a.name().cmp(b.name()),
        _ => match sort.parse::<Metric>() {
            Ok(metric) => most(b, metric).total_cmp(&most(a, metric)),
            Err(UnknownMetric) => Ordering::Equal,
        },
    }
}

/// Returns the rank by importance.
fn rank(row: &impl Row) -> (bool, Option<usize>) {
    let compared = row.compared();
    let place = Verdict::ALL.iter().position(|&verdict| verdict == compared.verdict);
    (!compared.failed, place)
}
