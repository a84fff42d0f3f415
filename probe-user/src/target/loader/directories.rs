//! Searches the directories of a search path for a library, including their subdirectories for
//! better CPUs.

use super::budget::TooMuch;
use super::dynamic::FileKind;
use super::graph::{Files, LibraryCandidate};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

/// Directories in search order, each with a slash at its end. An empty one is the current one.
pub(super) type List = Rc<[Vec<u8>]>;

/// The cached facts about directories.
pub(super) struct Directories {
    /// The subdirectories of each directory, best first. The directory itself is the last.
    below: Vec<String>,
    /// Existence of each directory, so that each is checked once.
    exist: HashMap<Vec<u8>, bool>,
}

impl Directories {
    pub(super) fn new(below: Vec<String>) -> Self {
        Self { below, exist: HashMap::new() }
    }

    /// Returns the first file of that name that is for this machine.
    pub(super) fn search(
        &mut self,
        name: &[u8],
        list: &[Vec<u8>],
        files: &mut Files<'_>,
    ) -> Result<Option<LibraryCandidate>, TooMuch> {
        for directory in list {
            files.budget.time()?;
            for below in &self.below {
                let slash = if below.is_empty() { "" } else { "/" };
                let mut path = [directory, below.as_bytes(), slash.as_bytes()].concat();
                let exists = match self.exist.get(&path) {
                    Some(exists) => *exists,
                    None => {
                        files.budget.path()?;
                        files.budget.keep(path.len())?;
                        let full = files.directory.join(OsStr::from_bytes(&path));
                        let exists = files.root.has_directory(&full);
                        self.exist.insert(path.clone(), exists);
                        exists
                    }
                };
                if !exists {
                    continue;
                }
                path.extend_from_slice(name);
                match files.look(&path)? {
                    Some(LibraryCandidate { kind: FileKind::Foreign, .. }) | None => {}
                    found => return Ok(found),
                }
            }
        }
        Ok(None)
    }
}

/// Splits a text into directories as glibc does. `replace` replaces the tokens, or drops an entry.
pub(super) fn split(
    text: &[u8],
    separators: &[u8],
    files: &mut Files<'_>,
    replace: impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> Result<List, TooMuch> {
    let mut list: Vec<Vec<u8>> = Vec::new();
    for entry in text.split(|byte| separators.contains(byte)) {
        let Some(mut path) = replace(entry) else { continue };
        if path.is_empty() && !entry.is_empty() {
            continue;
        }
        while path.len() > 1 && path.ends_with(b"/") {
            path.pop();
        }
        if !path.is_empty() && !path.ends_with(b"/") {
            path.push(b'/');
        }
        files.budget.keep(path.len())?;
        files.budget.time()?;
        list.push(path);
    }
    Ok(list.into())
}
