//! The reader's place in the tree and the paths: a root, a chosen row, and the folded rows.
//!
//! All of it is said by chains of functions, so it holds when an interval brings other rows in
//! another order. A chosen row that is not there now is remembered, and its nearest row above is
//! shown as chosen.

use crate::top::{
    data::catalogue::RowId,
    model::tree::{Chain, Root, Tree},
};
use std::collections::HashSet;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outlook {
    pub(crate) root: Root,
    pub(crate) chosen: Chain,
    pub(crate) folded: HashSet<Chain>,
}

/// A step of the reader in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// By rows, up if negative.
    Move(isize),
    /// Folds or unfolds the row.
    Toggle,
    /// Unfolds the row, or goes to the first one below it.
    In,
    /// Folds the row, or goes to the one above it.
    Out,
}

impl Outlook {
    pub(crate) fn of(root: Root) -> Self {
        Self { root, chosen: Chain::new(), folded: HashSet::new() }
    }

    /// Returns the outlook after a step.
    pub(crate) fn after(&self, tree: &Tree<'_>, step: Step) -> Self {
        let (lines, _) = tree.lines(&self.folded);
        let rows: Vec<usize> = lines.iter().map(|line| line.row).collect();
        let mut next = self.clone();
        let at = cursor(tree, &rows, &self.chosen);
        let Some(&row) = rows.get(at) else { return next };
        let chain = tree.chain(row);
        let can_fold = tree.below[row] > 0;
        let is_folded = self.folded.contains(&chain);
        let fold = match step {
            Step::Toggle => can_fold,
            Step::In => is_folded,
            Step::Out => can_fold && !is_folded,
            Step::Move(_) => false,
        };
        if fold {
            if !next.folded.remove(&chain) {
                next.folded.insert(chain.clone());
            }
            next.chosen = chain;
            return next;
        }
        let to = match step {
            Step::Toggle => at,
            Step::Move(by) => at.saturating_add_signed(by).min(rows.len() - 1),
            Step::In => {
                let next = rows.get(at + 1).map(|&below| tree.rows[below].parent);
                at + usize::from(next == Some(Some(row)))
            }
            Step::Out => {
                let above = tree.rows[row].parent;
                rows.iter().position(|&row| Some(row) == above).unwrap_or(at)
            }
        };
        next.chosen = tree.chain(rows[to]);
        next
    }

    /// Chooses a row, and unfolds what is above it.
    pub(crate) fn show(&mut self, chain: Chain) {
        self.folded.retain(|folded| folded.len() >= chain.len() || !chain.starts_with(folded));
        self.chosen = chain;
    }
}

/// Returns the place of the chosen row among the shown ones, or that of the nearest row above it.
pub(crate) fn cursor(tree: &Tree<'_>, shown: &[usize], chosen: &[RowId]) -> usize {
    let along: Vec<usize> = tree.along(chosen).collect();
    along.iter().rev().find_map(|row| shown.iter().position(|shown| shown == row)).unwrap_or(0)
}
