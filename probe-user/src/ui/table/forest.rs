//! Draws rows with parents as indented lines.
//!
//! Trees are walked with an explicit stack. The target decides their depth, and recursion could
//! overflow ctrace's stack. Beyond a depth, lines are indented no further and show the depth
//! instead.

use crate::ui::output::style::Tone;
use crate::ui::table::grid::Cell;
use crate::ui::text::distinct;
use crate::ui::text::names;
use ctrace_core::colour::Colour;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The limit of drawn levels.
const DEEPEST: usize = 24;

/// The children to show of each row. The last entry has the roots.
pub(crate) struct Forest {
    children: Vec<Vec<usize>>,
}

/// A row to choose by weight, so that the heaviest connected part is kept.
#[derive(PartialEq, Eq)]
struct Candidate {
    weight: u64,
    row: usize,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.weight.cmp(&other.weight).then(other.row.cmp(&self.row))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A row as a line.
pub(crate) struct TreeLine {
    pub(crate) row: usize,
    depth: usize,
    /// For each drawn level, true if more siblings follow there.
    more: Vec<bool>,
}

impl Forest {
    /// Chooses the `most` heaviest rows that have a weight, and their ancestors. Parents come
    /// first; a row with a later parent is a root.
    pub(crate) fn choose(
        parents: impl Iterator<Item = Option<usize>>,
        weight: impl Fn(usize) -> Option<u64>,
        most: usize,
    ) -> Self {
        let parents: Vec<Option<usize>> =
            parents.enumerate().map(|(row, parent)| parent.filter(|&p| p < row)).collect();
        let root = parents.len();
        let mut all = vec![Vec::new(); root + 1];
        for (row, parent) in parents.iter().enumerate() {
            all[parent.unwrap_or(root)].push(row);
        }
        let candidates = |of: &[usize]| -> Vec<Candidate> {
            let weighed = of.iter().map(|&row| (row, weight(row)));
            weighed.filter_map(|(row, w)| w.map(|weight| Candidate { weight, row })).collect()
        };
        let mut children = vec![Vec::new(); root + 1];
        let mut heap = BinaryHeap::from(candidates(&all[root]));
        let mut left = most;
        while left > 0
            && let Some(Candidate { row, .. }) = heap.pop()
        {
            left -= 1;
            children[parents[row].unwrap_or(root)].push(row);
            heap.extend(candidates(&all[row]));
        }
        Self { children }
    }

    pub(crate) fn sort_children(&mut self, mut by: impl FnMut(&usize, &usize) -> Ordering) {
        for list in &mut self.children {
            list.sort_by(&mut by);
        }
    }

    /// Returns the lines from the first root down.
    pub(crate) fn lines(&self) -> Vec<TreeLine> {
        let mut lines = Vec::new();
        let mut more: Vec<bool> = Vec::new();
        // Each entry is a node, and how many of its children are done.
        let mut stack = vec![(self.children.len() - 1, 0)];
        while let Some((node, next)) = stack.last_mut() {
            let siblings = &self.children[*node];
            let Some(&row) = siblings.get(*next) else {
                stack.pop();
                more.pop();
                continue;
            };
            *next += 1;
            more.push(*next < siblings.len());
            let drawn = more.len().min(DEEPEST + 1);
            lines.push(TreeLine { row, depth: more.len() - 1, more: more[..drawn].to_vec() });
            stack.push((row, 0));
        }
        lines
    }
}

/// Returns the cells of lines, each with the name at the end of its branch and a text behind it, in
/// at most `room` columns. `named` has both, and the colour that the program gives the function.
pub(crate) fn cells(
    lines: &[TreeLine],
    named: impl Fn(&TreeLine) -> (String, Option<Colour>, String),
    room: usize,
) -> Vec<Cell> {
    let (mut names, mut tones, mut behind) = (Vec::new(), Vec::new(), Vec::new());
    for (name, own, rest) in lines.iter().map(named) {
        tones.push(Tone::of(&name, own));
        names.push(name);
        behind.push(rest);
    }
    let leads: Vec<String> = lines.iter().map(|line| line.lead(room)).collect();
    let short = distinct::shorten_each(&names, |at| {
        let taken = names::width(&leads[at]) + names::width(&behind[at]);
        room.saturating_sub(taken).max(8)
    });
    let cell = |(((lead, name), behind), tone): (((String, String), String), Tone)| {
        let marked = Tone::Dim.mark(&lead) + &tone.mark(&name) + &behind;
        Cell { text: lead + &name + &behind, tone: Tone::Plain, marked: Some(marked) }
    };
    leads.into_iter().zip(short).zip(behind).zip(tones).map(cell).collect()
}

impl TreeLine {
    /// Returns the branch before the name.
    fn lead(&self, room: usize) -> String {
        let levels = DEEPEST.min(room / 6);
        let mut lead = String::new();
        for level in 1..=self.depth.min(levels) {
            let more = self.more.get(level).copied().unwrap_or(false);
            lead += match (level == self.depth, more) {
                (true, true) => "├─ ",
                (true, false) => "└─ ",
                (false, true) => "│  ",
                (false, false) => "   ",
            };
        }
        if self.depth > levels {
            lead += &format!("[{}] ", self.depth);
        }
        lead
    }
}
