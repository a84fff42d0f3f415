//! Chooses and sorts the functions in the table.

use crate::top::{
    data::{Data, catalogue::RowId, compare::NumberChange, figures::Figures},
    model::columns::TopColumn,
};
use crate::ui::text::names;
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sort {
    pub(crate) column: TopColumn,
    /// True for small numbers first, and names from Z to A.
    pub(crate) reversed: bool,
}

impl Sort {
    /// The order until another one is asked for.
    pub(crate) const UNASKED: Self = Self { column: TopColumn::DEFAULT, reversed: false };
}

/// Returns whether a name contains every word of the filter, ignoring case.
pub(crate) fn matches(filter: &str, name: &str) -> bool {
    let name = name.to_lowercase();
    filter.to_lowercase().split_whitespace().all(|word| name.contains(word))
}

/// Returns places in the report, in order. With `before`, changes are compared and sorted by.
pub(crate) fn rows(
    data: &Data,
    figures: &Figures,
    before: Option<&Figures>,
    filter: &str,
    sort: Sort,
) -> Vec<usize> {
    let functions = &figures.report.functions;
    let mut rows: Vec<(Option<f64>, String, usize)> = (0..functions.len())
        .filter(|&place| data.catalogue.is_seen(figures.ids[place]))
        .map(|place| (place, names::label(&functions[place])))
        .filter(|(_, name)| matches(filter, name))
        .map(|(place, name)| (key(figures, before, sort.column, place), name, place))
        .collect();
    // As in reports: functions that only frame the program, or wait, do not lead unasked.
    let is_last = |place: usize| {
        sort == Sort::UNASKED && before.is_none() && figures.marks.hardly_works(place)
    };
    rows.sort_by(|(a, a_name, a_place), (b, b_name, b_place)| {
        let by_value = match (a, b) {
            (Some(a), Some(b)) if sort.reversed => a.total_cmp(b),
            (Some(a), Some(b)) => b.total_cmp(a),
            // Absent values come last in either order.
            _ => b.is_some().cmp(&a.is_some()),
        };
        let by_name = match sort.column == TopColumn::Name && sort.reversed {
            true => b_name.cmp(a_name),
            false => a_name.cmp(b_name),
        };
        is_last(*a_place).cmp(&is_last(*b_place)).then(by_value).then(by_name).then(Ordering::Equal)
    });
    rows.into_iter().map(|(_, _, place)| place).collect()
}

fn key(
    figures: &Figures,
    before: Option<&Figures>,
    column: TopColumn,
    place: usize,
) -> Option<f64> {
    let id: RowId = figures.ids[place];
    match before {
        Some(before) => NumberChange::of(column, figures, before, id).growth(),
        None => column.value(figures, place),
    }
}
