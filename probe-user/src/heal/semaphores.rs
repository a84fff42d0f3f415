//! Finds the semaphores of a file's USDT probes and marker scopes. Only a probe with the same
//! semaphore can touch a place whose probe raised one.

use crate::target::object::Object;
use std::{collections::HashMap, fs::File, os::fd::AsRawFd as _, path::Path};

/// Returns semaphores by place; none where the file cannot be read.
pub(super) fn of(path: &Path, file: &File) -> HashMap<u64, u64> {
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    let Ok(object) = Object::open(path, Path::new(&open)) else { return HashMap::new() };
    let sites = object.usdt_probes().iter().flat_map(|probe| &probe.sites);
    let notes = sites.filter_map(|site| Some((site.file_offset, site.semaphore?)));
    let markers = object.markers();
    let scopes = markers.scopes.iter().flat_map(|scope| &scope.sites);
    notes.chain(scopes.map(|site| (site.point, site.semaphore))).collect()
}
