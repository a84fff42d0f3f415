//! Which functions the table shows, and in which order.

use super::{catalogue::RowId, columns::Column, compare::Change, data::Data, figures::Figures};
use crate::ui::names;
use std::cmp::Ordering;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sort {
    pub(super) column: Column,
    /// Small numbers first, names from Z to A.
    pub(super) reversed: bool,
}

/// Whether a name has every word of the filter, in any case.
pub(super) fn matches(filter: &str, name: &str) -> bool {
    let name = name.to_lowercase();
    filter.to_lowercase().split_whitespace().all(|word| name.contains(word))
}

/// Places in the report, in order. `before`: what to compare with, and to sort by the change.
pub(super) fn rows(
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
    rows.sort_by(|(a, a_name, _), (b, b_name, _)| {
        let by_value = match (a, b) {
            (Some(a), Some(b)) if sort.reversed => a.total_cmp(b),
            (Some(a), Some(b)) => b.total_cmp(a),
            // What is absent comes last, whichever way the others go.
            _ => b.is_some().cmp(&a.is_some()),
        };
        let by_name = match sort.column == Column::Name && sort.reversed {
            true => b_name.cmp(a_name),
            false => a_name.cmp(b_name),
        };
        by_value.then(by_name).then(Ordering::Equal)
    });
    rows.into_iter().map(|(_, _, place)| place).collect()
}

fn key(figures: &Figures, before: Option<&Figures>, column: Column, place: usize) -> Option<f64> {
    let id: RowId = figures.ids[place];
    match before {
        Some(before) => Change::of(column, figures, before, id).growth(),
        None => column.value(figures, place),
    }
}
