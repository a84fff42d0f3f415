//! Finds how exact a picture can be that is there at once.
//!
//! Where cells are shorter than those of a chunk's tile, a picture reads the chunk, and takes tens of times
//! as long as others. So there is a view beside it with cells that are just long enough for the tiles: its
//! picture is as exact, but coarser, and is shown until the other one is there.

use super::Timeline;
use super::picture::View;
use super::pyramid::Node;

impl Timeline {
    /// Returns the view of the same time and rows whose picture reads no chunk, with the shortest cells
    /// that it can have. It is the same view if no chunk must be read for that, or if tiles have no room
    /// for the rows.
    pub fn quick(&self, view: &View) -> View {
        let Some(root) = &self.pyramid.root else { return view.clone() };
        let is_kept = |chunk| self.leaves.has(chunk);
        let mut quick = view.clone();
        // Longer cells reach farther at the edges of the view.
        while let Some(level) = level(root, quick.level, quick.times(), &is_kept) {
            if level == quick.level {
                return quick;
            }
            quick = view.at_level(level);
        }
        view.clone()
    }
}

/// Returns the lowest level, `least` or above, at which this part of the tree is shown without reading
/// chunks that are not kept. `None`: there is none.
fn level(
    node: &Node,
    least: u32,
    (from, to): (u64, u64),
    is_kept: &impl Fn(usize) -> bool,
) -> Option<u32> {
    let own = node.tile.as_ref().map(|tile| tile.level.max(least));
    if !node.touches(from, to) || own == Some(least) {
        return Some(least);
    }
    if node.children.is_empty() {
        return if is_kept(node.chunk) { Some(least) } else { own };
    }
    let mut below = least;
    for child in &node.children {
        match level(child, below, (from, to), is_kept) {
            Some(level) if own.is_none_or(|own| level < own) => below = level,
            _ => return own,
        }
    }
    Some(below)
}
