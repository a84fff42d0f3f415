//! Identifies functions across files ([`matching`](super::matching)), and paths by their functions.

use super::matching::{Description, Matching};
use crate::calls::paths::{Node, Paths, ROOT, functions_on};
use crate::function::FunctionKind;
use crate::units::FuncId;
use std::sync::Arc;

/// The deepest compared path, in frames. Recordings have none deeper.
const MAX_DEPTH: u32 = 512;

/// A function as the comparison shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: Arc<str>,
    pub(crate) object: Arc<str>,
    pub(crate) kind: FunctionKind,
    pub(crate) group: Option<Arc<str>>,
}

/// The functions and paths of all files.
pub(crate) struct Catalogue {
    pub(crate) functions: Vec<Named>,
    matching: Matching,
    paths: Paths,
}

impl Catalogue {
    /// Makes the catalogue of these functions, those of the old side first.
    pub(crate) fn new<'a>(sides: [impl Iterator<Item = Description<'a>>; 2]) -> Self {
        let (matching, functions) = Matching::new(sides);
        Self { functions, matching, paths: Paths::new(usize::MAX, usize::MAX) }
    }

    /// Returns the function's index here.
    pub(crate) fn function(&self, told: &Description<'_>) -> FuncId {
        self.matching.of(told)
    }

    /// Returns the index of each path in a file's tree (parents first), `None` for paths that were
    /// not kept apart. `functions` maps the file's indices to indices here.
    pub(crate) fn paths(&mut self, nodes: &[Node], functions: &[FuncId]) -> Vec<Option<u32>> {
        let mut places = vec![None; nodes.len()];
        places[ROOT as usize] = Some(ROOT);
        for (node, at) in nodes.iter().enumerate().skip(1) {
            let is_told_apart = !at.other && at.depth <= MAX_DEPTH;
            let parent = places[at.parent as usize].filter(|_| is_told_apart);
            places[node] = parent.map(|above| self.paths.child(above, functions[at.func.index()]));
        }
        places[ROOT as usize] = None;
        places
    }

    pub(crate) fn path_count(&self) -> usize {
        self.paths.nodes().len()
    }

    /// Returns the functions on a path, root to leaf.
    pub(crate) fn path(&self, path: u32) -> Vec<FuncId> {
        functions_on(path, self.paths.nodes())
    }
}
