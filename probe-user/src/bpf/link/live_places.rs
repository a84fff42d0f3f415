//! The places where living tracers have probes, as the kernel tells of their links.
//!
//! The kernel names the places of multi and session links only. It names their files by path, so
//! one that is in another mount namespace is not known.

use super::kernel_link::SITES_LIMIT;
use crate::bpf::sys::{self, LinkPlaces};
use std::{
    collections::HashMap,
    ffi::OsStr,
    fs::{self, File},
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
};

/// Limit of links that are asked about.
const MOST_LINKS: usize = 10_000;

/// The places of links that concern one process.
#[derive(Debug, Default)]
pub(crate) struct LivePlaces(Vec<LinkPlaces>);

impl LivePlaces {
    /// Asks the kernel. Without the right to ask, no place is known.
    pub(crate) fn of(pid: u32) -> Self {
        let mut last = 0;
        let next = || {
            last = sys::next_link(last).ok()??;
            Some(last)
        };
        let links = std::iter::from_fn(next).take(MOST_LINKS);
        let places = links.filter_map(|id| sys::places_of_link(id, SITES_LIMIT).ok()?);
        Self(places.filter(|places| [0, pid].contains(&places.pid)).collect())
    }

    /// Returns the places in this file, and whether each has a probe in all processes.
    pub(crate) fn within(&self, file: &File) -> HashMap<u64, bool> {
        let Ok(file) = file.metadata() else { return HashMap::new() };
        let is_same = |places: &&LinkPlaces| {
            fs::metadata(OsStr::from_bytes(&places.path))
                .is_ok_and(|other| (other.dev(), other.ino()) == (file.dev(), file.ino()))
        };
        let mut within = HashMap::new();
        for places in self.0.iter().filter(is_same) {
            for offset in &places.offsets {
                *within.entry(*offset).or_default() |= places.pid == 0;
            }
        }
        within
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_inode() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (folder.path().join("one"), folder.path().join("other"));
        fs::write(&one, "1").unwrap();
        fs::hard_link(&one, folder.path().join("same")).unwrap();
        fs::write(&other, "2").unwrap();
        let places = |name: &str, pid: u32, offsets: &[u64]| LinkPlaces {
            path: folder.path().join(name).as_os_str().as_bytes().to_vec(),
            pid,
            offsets: offsets.to_vec(),
        };
        let live = LivePlaces(vec![
            places("one", 7, &[16, 32]),
            places("same", 0, &[32, 48]),
            places("other", 0, &[64]),
            places("gone", 0, &[80]),
        ]);
        let within = |path| live.within(&File::open(path).unwrap());
        assert_eq!(within(&one), HashMap::from([(16, false), (32, true), (48, true)]));
        assert_eq!(within(&other), HashMap::from([(64, true)]));
    }
}
