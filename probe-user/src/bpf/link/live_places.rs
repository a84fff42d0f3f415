//! The places where living tracers have probes, as the kernel tells of their links.
//!
//! The kernel names the places of multi and session links by an id. One that is in another mount namespace is
//! not known, as it names their files by path. Those of older tools are perf events, of which the kernel
//! tells whoever names the process and the file in it.

use super::kernel_link::SITES_LIMIT;
use crate::bpf::sys::{self, LinkPlaces};
use std::{
    collections::HashSet,
    ffi::OsStr,
    fs::{self, File},
    os::unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    time::{Duration, Instant},
};

/// Limit of links that are asked about, and of perf events.
const MOST_LINKS: usize = 10_000;
const MOST_EVENTS: usize = 10_000;
/// No process is looked through for perf events after this time.
const LIMIT: Duration = Duration::from_secs(1);

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
        let places = places.filter(|places| [0, pid].contains(&places.pid));
        Self(places.chain(events().take(MOST_EVENTS)).collect())
    }

    /// Returns the places in this file.
    pub(crate) fn within(&self, file: &File) -> HashSet<u64> {
        let Ok(file) = file.metadata() else { return HashSet::new() };
        let is_same = |places: &&LinkPlaces| {
            fs::metadata(OsStr::from_bytes(&places.path))
                .is_ok_and(|other| (other.dev(), other.ino()) == (file.dev(), file.ino()))
        };
        self.0.iter().filter(is_same).flat_map(|places| &places.offsets).copied().collect()
    }
}

/// Lists the uprobes that are perf events. Nobody tells of which process they are.
fn events() -> impl Iterator<Item = LinkPlaces> {
    let until = Instant::now() + LIMIT;
    let numbers = |folder: String| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
    };
    let processes = numbers("/proc".to_owned()).take_while(move |_| Instant::now() < until);
    let files = processes.flat_map(move |pid| {
        numbers(format!("/proc/{pid}/fd")).map(move |fd| (pid, fd)).filter(|(pid, fd)| {
            let file = fs::read_link(format!("/proc/{pid}/fd/{fd}"));
            file.is_ok_and(|file| file.as_os_str() == "anon_inode:[perf_event]")
        })
    });
    files.filter_map(|(pid, fd)| {
        let (path, offset) = sys::place_of_event(pid, fd).ok()??;
        // The path is the one that its tracer gave.
        let path = [format!("/proc/{pid}/root").into_bytes(), path].concat();
        Some(LinkPlaces { path, pid: 0, offsets: vec![offset] })
    })
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
        let places = |name: &str, offsets: &[u64]| LinkPlaces {
            path: folder.path().join(name).as_os_str().as_bytes().to_vec(),
            pid: 0,
            offsets: offsets.to_vec(),
        };
        let live = LivePlaces(vec![
            places("one", &[16, 32]),
            places("same", &[48]),
            places("other", &[64]),
            places("gone", &[80]),
        ]);
        let within = |path| live.within(&File::open(path).unwrap());
        assert_eq!(within(&one), HashSet::from([16, 32, 48]));
        assert_eq!(within(&other), HashSet::from([64]));
    }
}
