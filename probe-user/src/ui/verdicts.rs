//! The verdicts of a comparison as texts, for a page: the words and numbers of the table of `ctrace diff`.

use super::diff::{interval, label_function, notes, sentence, signed, value, word};
use super::notes::loss::loss_line;
use super::text::units::{ABSENT, Digits, count};
use ctrace_core::diff::{Diff, FunctionDiff, Presence, RowSelection, choose};
use ctrace_core::units::FuncId;
use serde::Serialize;
use std::borrow::Cow;

/// The functions of a comparison.
#[derive(Debug, Serialize)]
pub(crate) struct VerdictSheet {
    /// The metric of the verdicts.
    metric: &'static str,
    /// The columns of numbers.
    headings: [&'static str; 6],
    rows: Vec<VerdictRow>,
    /// The number of functions that are not among the rows.
    left_out: u64,
    /// Sentences below: the verdicts in numbers, and reasons to doubt them.
    remarks: Vec<String>,
}

#[derive(Debug, Serialize)]
struct VerdictRow {
    name: String,
    verdict: &'static str,
    is_worse: bool,
    is_significant: bool,
    numbers: [String; 6],
    /// The function's ids on each side.
    old: Vec<FuncId>,
    new: Vec<FuncId>,
}

impl VerdictSheet {
    /// `most`: the number of rows, at most, of functions on both sides, and as many of those on one.
    pub(crate) fn new(diff: &Diff, most: usize) -> Self {
        let selection = RowSelection { top: Some(most), ..RowSelection::default() };
        let (mut rows, mut left_out) = (Vec::new(), diff.functions_left_out);
        for both in [true, false] {
            let chosen = choose(&diff.functions, diff.metric, &selection, both);
            left_out += chosen.left_out as u64;
            rows.extend(
                chosen.indices.iter().map(|&at| VerdictRow::new(diff, &diff.functions[at])),
            );
        }
        let losses =
            format!("old: {}; new: {}", loss_line(&diff.old.loss), loss_line(&diff.new.loss));
        let notes = notes(diff).map(Cow::into_owned);
        Self {
            metric: diff.metric.name(),
            headings: ["change", "between", "old", "new", "calls old", "calls new"],
            rows,
            left_out,
            remarks: [sentence(diff)].into_iter().chain(notes).chain([losses]).collect(),
        }
    }
}

impl VerdictRow {
    fn new(diff: &Diff, function: &FunctionDiff) -> Self {
        let compared = &function.compared;
        let change = compared.changes.of(diff.metric);
        let side = |number| value(diff.metric, number, Digits::Full);
        let calls = |calls: u64| if calls == 0 { ABSENT.to_owned() } else { count(calls) };
        let [old, new] = function.ids.clone();
        Self {
            name: label_function(function),
            verdict: match compared.presence {
                Presence::Both => word(change),
                Presence::Old => "only in old",
                Presence::New => "only in new",
            },
            is_worse: compared.verdict.is_worse(),
            is_significant: compared.verdict.is_significant(),
            numbers: [
                signed(change.change_percent),
                interval(change),
                side(change.old),
                side(change.new),
                calls(compared.old_calls),
                calls(compared.new_calls),
            ],
            old,
            new,
        }
    }
}
