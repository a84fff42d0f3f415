//! The folders of tables, as [`partition`](ctrace_core::fleet::partition) names them.

use ctrace_core::fleet::partition::value;
use std::{
    fs::DirEntry,
    path::{Path, PathBuf},
};

/// Returns what is in a folder, or nothing if it cannot be read.
pub(crate) fn entries(folder: &Path) -> impl Iterator<Item = DirEntry> + use<> {
    folder.read_dir().into_iter().flatten().flatten()
}

/// Returns the folders of a key, and links to such, with their values.
pub(crate) fn linked_folders(
    folder: &Path,
    key: &'static str,
) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    of(entries(folder), key)
}

/// Returns the folders of a key, with their values. Links are none.
pub(crate) fn folders(
    folder: &Path,
    key: &'static str,
) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    of(entries(folder).filter(|it| it.file_type().is_ok_and(|kind| kind.is_dir())), key)
}

fn of<I: Iterator<Item = DirEntry>>(
    entries: I,
    key: &'static str,
) -> impl Iterator<Item = (String, PathBuf)> + use<I> {
    entries.filter_map(move |it| Some((value(key, it.file_name().to_str()?)?, it.path())))
}
