//! Files that processes load by themselves while they run, although they do not depend on them.
//!
//! The C library loads `libgcc_s.so.1` at the first `backtrace`, `pthread_exit` or
//! `pthread_cancel`, and unwinds with it at once. A guard must be there before.

use super::has_own_root;
use super::maps::MappedObject;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

const C_LIBRARY: &str = "libc.so.6";
const UNWINDER: &str = "libgcc_s.so.1";
/// The folders where loaders look, beside the one that the C library is in.
const FOLDERS: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// Returns the files that a process with these objects will load. Those that are mapped already are
/// left out.
pub(crate) fn files(mapped: &[MappedObject]) -> Vec<MappedObject> {
    let is_mapped = |name: &str| mapped.iter().find(|object| object.name == name);
    let (Some(libc), None) = (is_mapped(C_LIBRARY), is_mapped(UNWINDER)) else {
        return Vec::new();
    };
    let root = root(libc);
    let mut seen = HashSet::new();
    let folders = libc.path.parent().into_iter().chain(FOLDERS.iter().map(Path::new));
    let files = folders.filter_map(|folder| {
        let path = folder.join(UNWINDER);
        let inside = root.join(path.strip_prefix("/").unwrap_or(&path));
        let mut file = MappedObject::from_file(&inside, false).ok()?;
        file.path = path;
        seen.insert((file.dev, file.inode)).then_some(file)
    });
    files.collect()
}

/// Returns the root directory of the process that an object is mapped in.
fn root(object: &MappedObject) -> PathBuf {
    let pid = || {
        let pid = object.open_path.strip_prefix("/proc").ok()?.components().next()?;
        pid.as_os_str().to_str()?.parse().ok()
    };
    match pid() {
        Some(pid) if has_own_root(pid) => super::proc_path(pid, "root"),
        _ => PathBuf::from("/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(folder: &Path, name: &str) -> MappedObject {
        std::fs::write(folder.join(name), name).unwrap();
        MappedObject::from_file(&folder.join(name), false).unwrap()
    }

    #[test]
    fn the_unwinder_beside_the_c_library_is_expected() {
        let folder = tempfile::tempdir().unwrap();
        let libc = library(folder.path(), C_LIBRARY);
        let unwinder = library(folder.path(), UNWINDER);
        let found = files(std::slice::from_ref(&libc));
        assert_eq!(found.first(), Some(&unwinder));
        assert_eq!(files(&[libc, unwinder.clone()]), []);
        assert_eq!(files(&[unwinder]), []);
    }
}
