//! The tree and the paths, with a chosen row. Only the rows of the window are drawn.

use super::{MARK, marked, paragraph, texts::style, window};
use crate::{
    top::{
        data::figures::Figures,
        model::{
            Model,
            outlook::cursor,
            tree::{Root, Tree},
        },
    },
    ui::{
        ViewOptions,
        text::{not_shown, units::count},
        views::{Context, paths, tree},
    },
};
use ctrace_core::report::render::rows::RowChoice;
use ratatui::{
    style::{Modifier, Style},
    text::{Line, Span},
};
use std::ops::Range;

/// The lines above the rows: headings and a rule.
const HEADINGS: usize = 2;

pub(super) fn tree(
    model: &Model,
    figures: &Figures,
    (width, height): (usize, usize),
) -> Vec<Line<'static>> {
    let outlook = model.trees.shown();
    let Some(tree) = model.tree(outlook.root) else { return Vec::new() };
    let (lines, left_out) = tree.lines(&outlook.folded);
    let rows: Vec<usize> = lines.iter().map(|line| line.row).collect();
    let behind = |row: usize| match outlook.folded.contains(&tree.chain(row)) {
        true => format!(" (+{})", count(tree.below[row] as u64)),
        false => String::new(),
    };
    let list = List { tree: &tree, rows: &rows, chosen: cursor(&tree, &rows, &outlook.chosen) };
    list.draw(model, figures, left_out, (width, height), |context, part| {
        tree::table(context, &tree.rows, &lines[part], &[], behind)
    })
}

pub(super) fn paths(
    model: &Model,
    figures: &Figures,
    (width, height): (usize, usize),
) -> Vec<Line<'static>> {
    let Some(tree) = model.tree(Root::All) else { return Vec::new() };
    let (rows, left_out) = tree.by_time();
    let chosen = cursor(&tree, &rows, &model.trees.whole().chosen);
    let list = List { tree: &tree, rows: &rows, chosen };
    list.draw(model, figures, left_out, (width, height), |context, part| {
        let shown: Vec<usize> = rows[part].iter().map(|&row| tree.paths[row]).collect();
        paths::table(context, &shown)
    })
}

/// Rows of a tree in the order of the screen, and the place of the chosen one.
struct List<'a> {
    tree: &'a Tree<'a>,
    rows: &'a [usize],
    chosen: usize,
}

impl List<'_> {
    /// Draws the part with the chosen row. `table` makes the headings and the rows.
    fn draw(
        &self,
        model: &Model,
        figures: &Figures,
        left_out: usize,
        (width, height): (usize, usize),
        table: impl FnOnce(&Context<'_>, Range<usize>) -> String,
    ) -> Vec<Line<'static>> {
        if self.rows.is_empty() {
            return paragraph("Nothing to show here.", width);
        }
        let mut foot = not_shown(left_out, "row", "rows", "", &style(width));
        if self.tree.is_cut {
            foot += "callers further up not shown\n";
        }
        let foot = marked(&foot, model.shades);
        let room = height.saturating_sub(HEADINGS + foot.len());
        let part = window(self.chosen, self.rows.len(), room);
        let chosen = HEADINGS + self.chosen - part.start;
        let context = Context {
            report: &figures.report,
            options: &ViewOptions::default(),
            selection: &RowChoice::default(),
            style: &style(width.saturating_sub(1)),
        };
        let text = table(&context, part);
        let rows = marked(&text, model.shades).into_iter().enumerate().map(|(at, line)| {
            let mark = if at == chosen { MARK } else { ' ' };
            let look = match at == chosen {
                true => Style::default().add_modifier(Modifier::REVERSED),
                false => Style::default(),
            };
            let spans = std::iter::once(Span::raw(mark.to_string())).chain(line.spans);
            Line::from_iter(spans).style(look)
        });
        rows.chain(foot).collect()
    }
}
