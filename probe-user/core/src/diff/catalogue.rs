//! Identifies functions across files by name, object, kind and group, and paths by their functions.
//!
//! The traced program itself may have any file name, so that `./app-old` and `./app-new` compare.
//! Functions of one file that agree in all of these, such as `static` ones of two source files, are
//! merged.

use crate::calls::paths::{Node, Paths, ROOT, functions_on};
use crate::function::FunctionKind;
use crate::report::FunctionReport;
use crate::units::FuncId;
use std::collections::HashMap;
use std::sync::Arc;

/// The deepest compared path, in frames. Recordings have none deeper.
const MAX_DEPTH: u32 = 512;

/// A function, identified across files.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FunctionKey {
    pub(crate) name: Arc<str>,
    /// `None` for the program itself.
    object: Option<Arc<str>>,
    pub(crate) kind: FunctionKind,
    pub(crate) group: Option<Arc<str>>,
}

/// A file's description of a function.
pub(crate) struct Description<'a> {
    pub(crate) name: &'a Arc<str>,
    pub(crate) object: &'a Arc<str>,
    pub(crate) kind: FunctionKind,
    pub(crate) group: Option<&'a Arc<str>>,
}

impl<'a> From<&'a FunctionReport> for Description<'a> {
    fn from(row: &'a FunctionReport) -> Self {
        let FunctionReport { name, object, kind, group, .. } = row;
        Self { name, object, kind: *kind, group: group.as_ref() }
    }
}

/// The functions and paths of all files.
#[derive(Debug)]
pub(crate) struct Catalogue {
    pub(crate) functions: Vec<(FunctionKey, Arc<str>)>,
    ids: HashMap<FunctionKey, FuncId>,
    paths: Paths,
}

impl Default for Catalogue {
    fn default() -> Self {
        let paths = Paths::new(usize::MAX, usize::MAX);
        Self { functions: Vec::new(), ids: HashMap::new(), paths }
    }
}

impl Catalogue {
    /// Returns the function's index here. `program` is the path of the traced program.
    pub(crate) fn function(&mut self, told: &Description<'_>, program: Option<&str>) -> FuncId {
        let is_program = program.and_then(|path| path.rsplit('/').next()) == Some(&**told.object);
        let named = FunctionKey {
            name: told.name.clone(),
            object: (!is_program).then(|| told.object.clone()),
            kind: told.kind,
            group: told.group.cloned(),
        };
        let next = FuncId(self.functions.len() as u32);
        let id = *self.ids.entry(named.clone()).or_insert(next);
        match self.functions.get_mut(id.index()) {
            // The program's name in the last file wins.
            Some((_, object)) => *object = told.object.clone(),
            None => self.functions.push((named, told.object.clone())),
        }
        id
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
