//! Finds programs of Debian packages that are installed, or only unpacked: installing them would
//! start a service.

use crate::paths;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The tree of unpacked packages.
pub(crate) fn unpacked() -> PathBuf {
    paths::target().join("peers/real")
}

/// Finds a program, also in the folder of a version of PostgreSQL. Programs that Debian did not
/// build are no use here: they have other symbols.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let unpacked = unpacked();
    let places = [Path::new("/"), &unpacked].into_iter().flat_map(|tree| {
        let versions = newest_first(&tree.join("usr/lib/postgresql"));
        [tree.join("usr/sbin"), tree.join("usr/bin")].into_iter().chain(versions)
    });
    places.map(|place| place.join(name)).find(|file| file.is_file())
}

/// Returns the folders of programs of the versions of PostgreSQL.
fn newest_first(place: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path())))
        .collect();
    versions.sort_unstable();
    versions.into_iter().rev().map(|(_, path)| path.join("bin")).collect()
}

/// Lets a program find the libraries that were unpacked with it.
pub(crate) fn with_libraries(command: &mut Command) -> &mut Command {
    let place = unpacked().join("usr/lib").join(format!("{}-linux-gnu", std::env::consts::ARCH));
    match place.is_dir() {
        true => command.env("LD_LIBRARY_PATH", place),
        false => command,
    }
}
