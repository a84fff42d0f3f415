//! Collects the objects of a program in its loader's order: those that it names, then those that
//! they name, and so on.
//!
//! Loaders differ in how they look up a name: see [`Rules`].

use super::budget::{MOST_LIBRARIES, SearchBudget, TooMuch};
use super::dynamic::{Dynamic, FileKind, Need};
use crate::target::read::root::Root;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A loaded object.
pub(super) struct Node {
    /// The loader's absolute path for it.
    pub(super) path: PathBuf,
    pub(super) dynamic: Dynamic,
    /// The first object to name it.
    pub(super) needed_by: Option<usize>,
}

/// The indices of the program and of its loader among the objects.
pub(super) const PROGRAM: usize = 0;
pub(super) const LOADER: usize = 1;

/// The objects of one program. The program is the first, its loader the second.
#[derive(Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
    names: HashMap<Vec<u8>, usize>,
    /// Indices by device and inode.
    files: HashMap<(u64, u64), usize>,
    /// Names that are not found or cannot be loaded.
    pub(super) missing: Vec<Vec<u8>>,
    told: HashSet<Vec<u8>>,
}

/// A file that may be the library.
pub(super) struct LibraryCandidate {
    pub(super) path: PathBuf,
    identity: (u64, u64),
    pub(super) kind: FileKind,
}

/// The file system, and the budget for reading it.
pub(super) struct Files<'a> {
    pub(super) root: &'a Root,
    /// The base of relative paths.
    pub(super) directory: &'a Path,
    pub(super) budget: SearchBudget,
}

impl Files<'_> {
    /// Looks at the file of a path. Returns `None` if it cannot be opened.
    pub(super) fn look(&mut self, path: &[u8]) -> Result<Option<LibraryCandidate>, TooMuch> {
        self.budget.path()?;
        let path = self.directory.join(OsStr::from_bytes(path));
        let Ok(Some(file)) = self.root.open(&path) else { return Ok(None) };
        let Ok(meta) = file.metadata() else { return Ok(None) };
        // Files of the kernel seem empty, and reading some of them consumes their content.
        let kind = match meta.len() {
            0 => FileKind::Broken,
            _ => FileKind::read(&file, &mut self.budget)?,
        };
        let identity = (meta.dev(), meta.ino());
        Ok(Some(LibraryCandidate { path, identity, kind }))
    }
}

/// The rules by which a loader finds a named library.
pub(super) trait Rules {
    fn find(
        &mut self,
        name: &[u8],
        needed_by: usize,
        graph: &Graph,
        files: &mut Files<'_>,
    ) -> Result<Resolution, TooMuch>;

    /// True if an object is also found by its own DT_SONAME.
    const BY_SONAME: bool;
}

pub(super) enum Resolution {
    Known(usize),
    File(LibraryCandidate),
    Nothing,
}

impl Graph {
    pub(super) fn known(&self, name: &[u8]) -> Option<usize> {
        self.names.get(name).copied()
    }

    pub(super) fn name(&mut self, name: &[u8], node: usize) {
        self.names.entry(name.to_owned()).or_insert(node);
    }

    /// Adds an object, unless its file is known already.
    pub(super) fn add(
        &mut self,
        candidate: LibraryCandidate,
        needed_by: Option<usize>,
    ) -> Result<Option<usize>, TooMuch> {
        if let Some(known) = self.files.get(&candidate.identity) {
            return Ok(Some(*known));
        }
        let FileKind::Object(dynamic) = candidate.kind else { return Ok(None) };
        if self.nodes.len() == MOST_LIBRARIES {
            return Err(TooMuch::Libraries);
        }
        self.files.insert(candidate.identity, self.nodes.len());
        self.nodes.push(Node { path: candidate.path, dynamic, needed_by });
        Ok(Some(self.nodes.len() - 1))
    }

    /// Loads preloaded libraries, then those that the objects name.
    pub(super) fn load<R: Rules>(
        &mut self,
        rules: &mut R,
        preloaded: &[Vec<u8>],
        files: &mut Files<'_>,
    ) -> Result<(), TooMuch> {
        for name in preloaded {
            // A missing one does not stop a loader.
            self.load_one(rules, Need::May, name, PROGRAM, files)?;
        }
        let mut next = 0;
        while next < self.nodes.len() {
            for (need, name) in std::mem::take(&mut self.nodes[next].dynamic.needed) {
                self.load_one(rules, need, &name, next, files)?;
            }
            next += 1;
        }
        Ok(())
    }

    fn load_one<R: Rules>(
        &mut self,
        rules: &mut R,
        need: Need,
        name: &[u8],
        needed_by: usize,
        files: &mut Files<'_>,
    ) -> Result<(), TooMuch> {
        let node = match rules.find(name, needed_by, self, files)? {
            Resolution::Known(node) => Some(node),
            Resolution::File(candidate) => {
                let path = candidate.path.as_os_str().as_bytes().to_owned();
                let node = self.add(candidate, Some(needed_by))?;
                if let Some(node) = node
                    && R::BY_SONAME
                {
                    self.name(&path, node);
                    if let Some(soname) = self.nodes[node].dynamic.soname.clone() {
                        self.name(&soname, node);
                    }
                }
                node
            }
            Resolution::Nothing => None,
        };
        match node {
            Some(node) => self.name(name, node),
            None if need == Need::Must && self.told.insert(name.to_owned()) => {
                self.missing.push(name.to_owned());
            }
            None => {}
        }
        Ok(())
    }
}
