//! The tree of call paths: one node per distinct way from a thread's first traced frame.
//!
//! The tree is bounded in nodes and in depth, since recursion makes any number of paths. A call
//! beyond the bounds belongs to its function's *other* node, which is outside the tree, so that the
//! function's numbers stay exact.

use crate::hash::{IntMap, pair};
use crate::units::FuncId;

/// Slots of the look-up cache.
const CACHE: usize = 1_024;

/// The parent of the first frames.
pub(crate) const ROOT: u32 = 0;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) func: FuncId,
    pub(crate) parent: u32,
    pub(crate) depth: u32,
    /// True if the node is outside the tree: see the module.
    pub(crate) other: bool,
}

impl Node {
    pub(crate) fn root() -> Self {
        Self { func: FuncId(u32::MAX), parent: ROOT, depth: 0, other: false }
    }

    pub(crate) fn new(func: FuncId, parent: u32, above: &Self, other: bool) -> Self {
        Self { func, parent, depth: above.depth.saturating_add(1), other }
    }
}

/// Returns the functions on a path, root to leaf.
pub(crate) fn functions_on(mut path: u32, nodes: &[Node]) -> Vec<FuncId> {
    let mut functions = Vec::new();
    while path != ROOT {
        let node = nodes[path as usize];
        functions.push(node.func);
        path = node.parent;
    }
    functions.reverse();
    functions
}

#[derive(Debug)]
pub(crate) struct Paths {
    nodes: Vec<Node>,
    children: IntMap<u32>,
    others: IntMap<u32>,
    /// Recently looked-up children: parent and function, and the child.
    cache: Box<[(u64, u32); CACHE]>,
    max_nodes: usize,
    max_depth: u32,
}

impl Paths {
    pub(crate) fn new(max_nodes: usize, max_depth: usize) -> Self {
        Self {
            nodes: vec![Node::root()],
            children: IntMap::default(),
            others: IntMap::default(),
            cache: Box::new([(u64::MAX, ROOT); CACHE]),
            max_nodes: max_nodes.min(1 << 24),
            max_depth: u32::try_from(max_depth).unwrap_or(u32::MAX),
        }
    }

    /// Returns all nodes. Parents come before children, [`ROOT`] is first.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the child if it was looked up recently.
    #[inline]
    pub(crate) fn cached_child(&self, parent: u32, func: FuncId) -> Option<u32> {
        let (cached, node) = self.cache[Self::slot(parent, func)];
        (cached == pair(parent, func.0)).then_some(node)
    }

    #[inline]
    fn slot(parent: u32, func: FuncId) -> usize {
        (parent.wrapping_mul(31) ^ func.0) as usize % CACHE
    }

    /// Returns the function's node outside the tree.
    pub(crate) fn other(&mut self, func: FuncId) -> u32 {
        let next = self.nodes.len() as u32;
        let node = *self.others.entry(u64::from(func.0)).or_insert(next);
        if node == next {
            self.nodes.push(Node { func, parent: ROOT, depth: 1, other: true });
        }
        node
    }

    pub(crate) fn child(&mut self, parent: u32, func: FuncId) -> u32 {
        let Node { depth, other, .. } = self.nodes[parent as usize];
        let key = pair(parent, func.0);
        let next = self.nodes.len() as u32;
        let node = match self.children.get(&key) {
            Some(&node) => node,
            None if other || depth >= self.max_depth || self.children.len() >= self.max_nodes => {
                *self.others.entry(u64::from(func.0)).or_insert(next)
            }
            None => *self.children.entry(key).or_insert(next),
        };
        if node == next {
            let other = !self.children.contains_key(&key);
            self.nodes.push(Node { func, parent, depth: depth + 1, other });
        }
        self.cache[Self::slot(parent, func)] = (key, node);
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Walks each path from the root and compares the last node.
    fn check(max_nodes: usize, max_depth: usize, walks: &[(&[u32], u32, bool)]) {
        let mut paths = Paths::new(max_nodes, max_depth);
        for (walk, node, other) in walks {
            let got = walk.iter().fold(ROOT, |parent, &f| paths.child(parent, FuncId(f)));
            assert_eq!((got, paths.nodes()[got as usize].other), (*node, *other), "{walk:?}");
        }
    }

    #[test]
    fn a_path_has_one_node() {
        let walks: &[(&[u32], u32, bool)] = &[
            (&[0], 1, false),
            (&[0, 1], 2, false),
            (&[1], 3, false),
            (&[0, 1], 2, false),
            (&[0, 0], 4, false),
            (&[0, 1], 2, false),
        ];
        check(100, 100, walks);
    }

    #[test]
    fn beyond_the_bounds_each_function_has_one_node() {
        let deep: &[(&[u32], u32, bool)] =
            &[(&[7, 7], 2, false), (&[7, 7, 7], 3, true), (&[7, 7, 7, 7], 3, true)];
        check(100, 2, deep);
        let wide: &[(&[u32], u32, bool)] = &[
            (&[0], 1, false),
            (&[1], 2, true),
            (&[1, 0], 3, true),
            (&[0], 1, false),
            (&[2, 0], 3, true),
        ];
        check(1, 100, &wide[..4]);
    }
}
