//! The steps from one tree to another: into a function, to its callers, and back.
//!
//! The first outlook is on the whole tree. The paths share its chosen row, so that both views show
//! the same.

use crate::top::{
    data::catalogue::RowId,
    model::{
        Model, View,
        narrow::paths_through,
        outlook::{Outlook, Step, cursor},
        tree::{Chain, Root, Tree},
    },
};

/// The outlooks, the shown one last. There is always one.
#[derive(Clone, Debug)]
pub(crate) struct Outlooks {
    whole: Outlook,
    others: Vec<Outlook>,
}

impl Default for Outlooks {
    fn default() -> Self {
        Self { whole: Outlook::of(Root::All), others: Vec::new() }
    }
}

impl Outlooks {
    pub(crate) fn whole(&self) -> &Outlook {
        &self.whole
    }

    pub(crate) fn shown(&self) -> &Outlook {
        self.others.last().unwrap_or(&self.whole)
    }

    fn shown_mut(&mut self) -> &mut Outlook {
        self.others.last_mut().unwrap_or(&mut self.whole)
    }
}

impl Model {
    /// Returns the tree of the shown stretch below or above this root, with the filter.
    pub(crate) fn tree(&self, root: Root) -> Option<Tree<'_>> {
        let figures = self.figures()?;
        let kept = match self.filter.is_empty() {
            true => vec![true; figures.report.paths.len()],
            false => paths_through(&figures.report, &self.filter),
        };
        Some(Tree::new(figures, &kept, root))
    }

    pub(crate) fn step(&mut self, step: Step) {
        let shown = self.trees.shown();
        let next = self.tree(shown.root).map(|tree| shown.after(&tree, step));
        if let Some(next) = next {
            *self.trees.shown_mut() = next;
        }
    }

    pub(crate) fn move_in_paths(&mut self, by: isize) {
        if let Some(chosen) = self.path_beside(by) {
            self.trees.whole.show(chosen);
        }
    }

    /// Returns the path that is some rows away from the chosen one.
    fn path_beside(&self, by: isize) -> Option<Chain> {
        let tree = self.tree(Root::All)?;
        let (rows, _) = tree.by_time();
        let at = cursor(&tree, &rows, &self.trees.whole.chosen);
        let to = at.saturating_add_signed(by).min(rows.len().checked_sub(1)?);
        Some(tree.chain(rows[to]))
    }

    /// Shows the chosen path in the whole tree.
    pub(crate) fn show_in_tree(&mut self) {
        if let Some(chosen) = self.path_beside(0) {
            self.trees.others.clear();
            self.trees.whole.show(chosen);
            self.view = View::Tree;
        }
    }

    /// Begins a tree with the chosen function.
    pub(crate) fn set_root(&mut self, root: fn(RowId) -> Root) {
        let Some(root) = self.chosen_function().map(root) else { return };
        self.view = View::Tree;
        if self.trees.shown().root != root {
            self.trees.others.push(Outlook::of(root));
        }
    }

    pub(crate) fn go_back(&mut self) {
        match self.trees.others.pop() {
            Some(_) => self.view = View::Tree,
            None => {
                self.message = Some("there is no tree to go back to: i and w begin one".to_owned());
            }
        }
    }

    fn chosen_function(&self) -> Option<RowId> {
        let chosen = match self.view {
            View::Functions | View::Histogram => {
                let place = self.selected_place()?;
                return self.figures()?.ids.get(place).copied();
            }
            View::Tree => {
                let shown = self.trees.shown();
                let tree = self.tree(shown.root)?;
                let rows: Vec<usize> =
                    tree.lines(&shown.folded).0.iter().map(|line| line.row).collect();
                tree.chain(*rows.get(cursor(&tree, &rows, &shown.chosen))?)
            }
            View::Paths => self.path_beside(0)?,
            View::Threads | View::Notes => return None,
        };
        chosen.last().copied()
    }
}
