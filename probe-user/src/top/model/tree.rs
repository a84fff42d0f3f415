//! A tree of calls to look at: all paths of a report, those below one function, or those above it.
//!
//! Rows have the form of a report's paths, so that its views draw them. A row is known by its
//! [`Chain`], since places in a report differ from interval to interval. A tree is made for each
//! screen, in a time that the paths bound: the engine keeps at most 16,384.

use crate::top::data::{catalogue::RowId, figures::Figures};
use crate::ui::table::forest::{Forest, TreeLine};
use ctrace_core::{report::PathReport, units::Nanos};
use std::{
    cmp::Reverse,
    collections::{HashMap, HashSet},
};

/// The functions from the root of a tree to a row.
pub(crate) type Chain = Vec<RowId>;

/// The rows to draw and to move through at most.
const MOST_ROWS: usize = 5_000;
/// The steps from functions to their callers at most, in all paths together.
const MOST_STEPS: usize = 1 << 17;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// The first functions of all threads.
    All,
    /// The outermost calls of this function. What they call is below.
    Function(RowId),
    /// All calls of this function. Who calls it is below.
    Callers(RowId),
}

pub(crate) struct Tree<'a> {
    figures: &'a Figures,
    /// Parents come first.
    pub(crate) rows: Vec<PathReport>,
    /// For each row, the first path of the report that it counts.
    pub(crate) paths: Vec<usize>,
    /// The places of rows, by parent and function.
    places: HashMap<(Option<usize>, usize), usize>,
    /// For each row, the number of rows below it.
    pub(crate) below: Vec<usize>,
    /// True if callers of callers are left out.
    pub(crate) is_cut: bool,
}

impl<'a> Tree<'a> {
    /// Makes a tree of the paths that `kept` has.
    pub(crate) fn new(figures: &'a Figures, kept: &[bool], root: Root) -> Self {
        let (rows, paths, places, below) = (Vec::new(), Vec::new(), HashMap::new(), Vec::new());
        let mut tree = Self { figures, rows, paths, places, below, is_cut: false };
        match root {
            Root::All => tree.add_below(kept, |_| true),
            Root::Function(id) => {
                let function = figures.place(id);
                tree.add_below(kept, |at| Some(at) == function);
            }
            Root::Callers(id) => {
                if let Some(function) = figures.place(id) {
                    tree.add_above(kept, function);
                }
            }
        }
        tree.below = vec![0; tree.rows.len()];
        for row in (0..tree.rows.len()).rev() {
            if let Some(parent) = tree.rows[row].parent {
                tree.below[parent] += tree.below[row] + 1;
            }
        }
        tree
    }

    /// Adds each path from the first function on that can be a root.
    fn add_below(&mut self, kept: &[bool], is_root: impl Fn(usize) -> bool) {
        let paths = &self.figures.report.paths;
        let mut rows: Vec<Option<usize>> = Vec::with_capacity(paths.len());
        for (place, path) in paths.iter().enumerate() {
            let parent = parent_of(paths, place).and_then(|parent| rows[parent]);
            let is_in = kept[place] && (parent.is_some() || is_root(path.function));
            rows.push(is_in.then(|| self.add(parent, path.function, place)));
        }
    }

    /// Adds the callers of each path that ends with the function.
    fn add_above(&mut self, kept: &[bool], function: usize) {
        let paths = &self.figures.report.paths;
        let is_end = |place: &usize| kept[*place] && paths[*place].function == function;
        let ends: Vec<usize> = (0..paths.len()).filter(is_end).collect();
        let steps = MOST_STEPS / ends.len().max(1);
        for place in ends {
            let mut row = self.add(None, function, place);
            let mut at = place;
            let mut left = steps;
            while let Some(caller) = parent_of(paths, at) {
                if left == 0 {
                    self.is_cut = true;
                    break;
                }
                left -= 1;
                row = self.add(Some(row), paths[caller].function, place);
                at = caller;
            }
        }
    }

    /// Adds the numbers of a path to a row, which is made where there is none.
    fn add(&mut self, parent: Option<usize>, function: usize, path: usize) -> usize {
        let next = self.rows.len();
        let row = *self.places.entry((parent, function)).or_insert(next);
        let from = &self.figures.report.paths[path];
        if row == next {
            self.rows.push(PathReport { parent, function, ..PathReport::default() });
            self.paths.push(path);
        }
        let sum = &mut self.rows[row];
        sum.calls = sum.calls.saturating_add(from.calls);
        sum.total_ns = sum.total_ns.saturating_add(from.total_ns);
        sum.self_ns = sum.self_ns.saturating_add(from.self_ns);
        row
    }

    /// Returns the rows that are not below a folded one, the largest first below each parent, and
    /// the number of further ones.
    pub(crate) fn lines(&self, folded: &HashSet<Chain>) -> (Vec<TreeLine>, usize) {
        let mut is_folded = vec![false; self.rows.len()];
        folded.iter().filter_map(|chain| self.row(chain)).for_each(|row| is_folded[row] = true);
        let mut hidden: Vec<bool> = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            hidden.push(row.parent.is_some_and(|parent| is_folded[parent] || hidden[parent]));
        }
        let weight = |row: usize| (!hidden[row]).then_some(self.rows[row].total_ns.0);
        let parents = self.rows.iter().map(|row| row.parent);
        let mut forest = Forest::choose(parents, weight, MOST_ROWS);
        forest.sort_children(|&a, &b| self.order(a).cmp(&self.order(b)));
        let lines = forest.lines();
        let shown = hidden.iter().filter(|hidden| !**hidden).count();
        let left_out = shown - lines.len();
        (lines, left_out)
    }

    /// Returns the rows as paths, the largest first, and the number of further ones.
    pub(crate) fn by_time(&self) -> (Vec<usize>, usize) {
        let mut rows: Vec<usize> = (0..self.rows.len()).collect();
        rows.sort_by_key(|&row| self.order(row));
        rows.truncate(MOST_ROWS);
        let left_out = self.rows.len() - rows.len();
        (rows, left_out)
    }

    fn order(&self, row: usize) -> (Reverse<Nanos>, usize) {
        (Reverse(self.rows[row].total_ns), row)
    }

    /// Returns the functions from the root to a row.
    pub(crate) fn chain(&self, row: usize) -> Chain {
        let above = std::iter::successors(Some(row), |&row| self.rows[row].parent);
        let mut chain: Chain = above.map(|row| self.figures.ids[self.rows[row].function]).collect();
        chain.reverse();
        chain
    }

    fn row(&self, chain: &[RowId]) -> Option<usize> {
        let along: Vec<usize> = self.along(chain).collect();
        along.last().copied().filter(|_| along.len() == chain.len())
    }

    /// Returns the rows along a chain, as far as there are some.
    pub(crate) fn along(&self, chain: &[RowId]) -> impl Iterator<Item = usize> {
        let mut parent = None;
        chain.iter().map_while(move |id| {
            let function = self.figures.place(*id)?;
            parent = self.places.get(&(parent, function)).copied();
            parent
        })
    }
}

/// Returns the path without its last function. Parents come first; others are no parents.
fn parent_of(paths: &[PathReport], place: usize) -> Option<usize> {
    paths[place].parent.filter(|&parent| parent < place)
}
