//! Lets aya read the object and create its maps, with the settings of user space filled in.
//!
//! One loader serves the whole process. To make one, aya reads all types of the running kernel,
//! which takes tens of milliseconds and megabytes. A daemon loads for every process that starts. So
//! it is made on a thread of its own, while others find out what to trace.

use super::object;
use crate::bpf::{
    BpfError, Config,
    machine::btf::Offsets,
    maps::side_table::{CONDITIONS_LIMIT, VALUES_LIMIT},
    processes::control::PROCESSES_LIMIT,
    rings::layout::RingLayout,
};
use aya::{EbpfLoader, maps::Map};
use ctrace_common::{MET_SLOTS, PAGE_LEN, UNMET_COUNTERS};
use std::{
    error::Error as _,
    io,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
};

/// Bytes for requests: each of some hundred threads can wait at the same time.
const REQUEST_BYTES: u32 = 1 << 20;
/// Words of the map of functions without return probes: a bit for each function.
const UNRETURNED_WORDS: u32 = 1 << 14;

/// Warnings and errors, in the numbers of aya-log's levels.
const LOG_LEVEL: u8 = 2;

static LOADER: OnceLock<Mutex<EbpfLoader<'static>>> = OnceLock::new();

/// The values of loaders, each once: there are few different ones.
static KEPT: Mutex<Vec<&'static [u32]>> = Mutex::new(Vec::new());

/// The settings in the programs' globals and maps.
pub(crate) struct Settings<'a> {
    pub(crate) config: &'a Config,
    pub(crate) layout: RingLayout,
    /// The first page of each CPU's ring.
    pub(crate) first_pages: &'a [u32],
    /// True if the programs check the set of traced processes.
    pub(crate) filter: bool,
    pub(crate) news_bytes: u32,
}

/// Begins to make the loader on a thread of its own. Where none starts, [`load_maps`] makes it.
pub(crate) fn begin() {
    let begun = thread::Builder::new().name("ctrace-loader".into()).spawn(|| drop(loader()));
    if let Err(error) = begun {
        tracing::debug!("cannot start a thread for the loader: {error}");
    }
}

/// Makes the loader, or waits for whoever does.
fn loader() -> MutexGuard<'static, EbpfLoader<'static>> {
    let made = LOADER.get_or_init(|| {
        let mut loader = EbpfLoader::new();
        loader.btf(None);
        Mutex::new(loader)
    });
    made.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn load_maps(settings: &Settings<'_>) -> Result<aya::Ebpf, BpfError> {
    let Settings { config, layout, first_pages, filter, news_bytes } = settings;
    let offsets = Offsets::of_running_kernel()?;
    let conditions = if config.conditions { CONDITIONS_LIMIT as u32 } else { 1 };
    let mut loader = loader();
    loader
        .map_max_entries("RINGS", layout.pages())
        // While children are not followed, only chosen processes are in the set.
        .map_max_entries("TRACED", if config.follow { PROCESSES_LIMIT } else { 64 })
        .map_max_entries("NEWS", *news_bytes)
        .map_max_entries("RESTORES", if config.guards { REQUEST_BYTES } else { PAGE_LEN as u32 })
        .map_max_entries("GUARDED", if config.guards { PROCESSES_LIMIT } else { 1 })
        .map_max_entries("UNRETURNED", if config.guards { UNRETURNED_WORDS } else { 1 })
        .map_max_entries("VALUES", if config.values { VALUES_LIMIT as u32 } else { 1 })
        .map_max_entries("CONDITIONS", conditions)
        .map_max_entries("UNMET", conditions * UNMET_COUNTERS)
        .map_max_entries("MET", if config.conditions { MET_SLOTS } else { 1 })
        .map_max_entries("BUFFERS", if config.markers { 65536 } else { 1 })
        .map_max_entries("CUT_OFF", if config.markers { 16384 } else { 1 })
        .override_global("RING_PAGES", kept(&[layout.slot_pages()]), true)
        .override_global("FIRST_PAGE", kept(first_pages), true)
        .override_global("FILTER", kept(&[u32::from(*filter)]), true)
        .override_global("FOLLOW", kept(&[u32::from(config.follow)]), true)
        .override_global("GUARDS", kept(&[u32::from(config.guards)]), true)
        .override_global("LAUNCHES", kept(&[u32::from(config.launches)]), true)
        .override_global(aya_log::LEVEL, &LOG_LEVEL, true);
    for (name, offset) in offsets.globals() {
        loader.override_global(name, kept(&[*offset]), true);
    }
    loader.load(object::bytes()?).map_err(|error| {
        let mut cause = error.source();
        while let Some(inner) = cause {
            if let Some(source) = inner.downcast_ref::<io::Error>() {
                let source = match source.raw_os_error() {
                    Some(errno) => io::Error::from_raw_os_error(errno),
                    None => io::Error::new(source.kind(), source.to_string()),
                };
                return BpfError::permission("create eBPF maps", &source)
                    .unwrap_or(BpfError::Create { what: "the eBPF maps".into(), source });
            }
            cause = inner.source();
        }
        BpfError::Object { reason: error.to_string() }
    })
}

fn kept(values: &[u32]) -> &'static [u32] {
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(there) = all.iter().find(|there| **there == values) {
        return there;
    }
    let new: &'static [u32] = Box::leak(values.into());
    all.push(new);
    new
}

/// Returns the maps by their names.
pub(crate) fn map_fds(ebpf: &aya::Ebpf) -> Vec<(String, RawFd)> {
    let maps = ebpf.maps();
    maps.filter_map(|(name, map)| Some((name.to_owned(), map_fd(map)?.as_raw_fd()))).collect()
}

/// Returns a descriptor of our own for one of the maps.
pub(crate) fn take_map(ebpf: &mut aya::Ebpf, name: &str) -> Result<Arc<OwnedFd>, BpfError> {
    let fd = ebpf
        .map(name)
        .and_then(map_fd)
        .ok_or_else(|| BpfError::Object { reason: format!("it has no map `{name}`") })?;
    fd.as_fd()
        .try_clone_to_owned()
        .map(Arc::new)
        .map_err(|source| BpfError::Create { what: "a file descriptor".into(), source })
}

/// Returns the descriptor of a map of a known type.
fn map_fd(map: &Map) -> Option<BorrowedFd<'_>> {
    match map {
        Map::Array(data) | Map::HashMap(data) | Map::PerCpuArray(data) | Map::RingBuf(data) => {
            Some(data.fd().as_fd())
        }
        _ => None,
    }
}
