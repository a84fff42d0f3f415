//! aya's own loader, for accounts that may load programs but not look them up: see `maps`.
//!
//! One loader serves the whole process: a daemon loads for every process that starts.

use super::maps::{MapSettings, cannot_create};
use crate::bpf::BpfError;
use aya::{
    EbpfLoader,
    maps::{Map, MapData},
};
use std::{
    collections::HashMap,
    error::Error as _,
    os::fd::{AsFd as _, AsRawFd as _, RawFd},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

static LOADER: OnceLock<Mutex<EbpfLoader<'static>>> = OnceLock::new();

/// The values of loaders, each once: there are few different ones.
static KEPT: Mutex<Vec<&'static [u8]>> = Mutex::new(Vec::new());

/// Makes the loader, or waits for whoever does.
pub(super) fn make() {
    drop(loader());
}

fn loader() -> MutexGuard<'static, EbpfLoader<'static>> {
    let made = LOADER.get_or_init(|| {
        let mut loader = EbpfLoader::new();
        loader.btf(None);
        Mutex::new(loader)
    });
    made.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the maps, and what is left of the object: the messages of the programs.
pub(super) fn load(
    object: &[u8],
    settings: &MapSettings,
) -> Result<(HashMap<String, MapData>, aya::Ebpf), BpfError> {
    let mut loader = loader();
    for (name, size) in &settings.sizes {
        loader.map_max_entries(name, *size);
    }
    for (name, value) in &settings.globals {
        loader.override_global(name, kept(value), true);
    }
    let mut loaded = loader.load(object).map_err(|error| match error.source() {
        Some(cause) => cannot_create(cause),
        None => cannot_create(&error),
    })?;
    let names: Vec<String> = loaded.maps().map(|(name, _)| name.to_owned()).collect();
    let is_ours = |name: &String| *name != LOGS;
    let maps = names.into_iter().filter(is_ours).filter_map(|name| {
        let data = match loaded.take_map(&name)? {
            Map::Array(data) | Map::HashMap(data) | Map::PerCpuArray(data) | Map::RingBuf(data) => {
                data
            }
            _ => return None,
        };
        Some((name, data))
    });
    Ok((maps.collect(), loaded))
}

/// The map with the programs' messages.
const LOGS: &str = "AYA_LOGS";

/// Returns the name and the descriptor of that map.
pub(super) fn logs(loaded: &aya::Ebpf) -> Option<(String, RawFd)> {
    match loaded.map(LOGS)? {
        Map::RingBuf(data) => Some((LOGS.to_owned(), data.fd().as_fd().as_raw_fd())),
        _ => None,
    }
}

fn kept(value: &[u8]) -> &'static [u8] {
    let mut all = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(there) = all.iter().find(|there| **there == value) {
        return there;
    }
    let new: &'static [u8] = Box::leak(value.into());
    all.push(new);
    new
}
