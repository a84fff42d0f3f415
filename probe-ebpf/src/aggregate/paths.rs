//! The tree of call paths: each path has a number, by which its counts are found.

use crate::{
    maps::{PATH_KEYS, PATHS, PATHS_USED},
    settings,
};
use ctrace_common::{FULL_PATH, VALUE_SHIFT};

const BPF_NOEXIST: u64 = 1;

/// Returns the number of paths that may have counts.
#[inline(always)]
fn limit() -> u64 {
    (settings::PATH_LIMIT.load() as u64).saturating_sub(1)
}

/// Returns true if no path can be added.
#[inline(always)]
pub fn are_full() -> bool {
    PATHS_USED.get() >= limit()
}

/// Returns true if half of the paths are taken.
#[inline(always)]
pub fn are_half_full() -> bool {
    PATHS_USED.get() >= limit() / 2
}

/// Returns the path of a function called on another path. `value`: the number of the value with which it
/// is called.
#[inline(always)]
pub fn child(caller: u32, function: u32, value: u32) -> u32 {
    if caller == FULL_PATH {
        return FULL_PATH;
    }
    let key = (value as u64) << VALUE_SHIFT | (caller as u64) << 32 | function as u64;
    match PATHS.get_ptr(key) {
        // SAFETY: an element of a map is written before others find it.
        Some(path) => unsafe { *path },
        None => add(key),
    }
}

/// Adds a path. Its key is there before anybody can count calls of it.
#[cold]
#[inline(never)]
fn add(key: u64) -> u32 {
    let Some(used) = PATHS_USED.take_below(limit()) else { return FULL_PATH };
    let path = used as u32 + 1;
    if let Some(place) = PATH_KEYS.get_ptr_mut(path) {
        // SAFETY: an element of a map. Nobody else writes it.
        unsafe { place.write_volatile(key + 1) };
    }
    if PATHS.insert(key, path, BPF_NOEXIST).is_ok() {
        return path;
    }
    // Another thread was quicker. The number stays without calls.
    match PATHS.get_ptr(key) {
        // SAFETY: as above.
        Some(path) => unsafe { *path },
        None => FULL_PATH,
    }
}
