//! The end of a session: no trampoline's address stays on a stack of the target.
//!
//! Most frames return by themselves soon. The threads of the others are stopped one by one.

use super::{
    super::sys,
    GuardMaps,
    requests::{Request, Requests},
    stopped::Stopped,
};
use std::{
    collections::BTreeMap,
    io::IoSliceMut,
    os::fd::AsFd as _,
    thread::sleep,
    time::{Duration, Instant},
};

/// Calls that return within this time are not disturbed.
const PATIENCE: Duration = Duration::from_millis(100);
/// Shorter than a thread waits for its request to be served.
const PAUSE: Duration = Duration::from_millis(1);
/// Tries to list the threads of a process.
const TRIES: u32 = 100;

/// Restores every open frame of the guarded processes. `other` serves requests of threads that wait
/// meanwhile. Returns the number of frames that could not be restored.
pub(super) fn all(
    maps: &GuardMaps,
    requests: &mut Requests,
    mut other: impl FnMut(&Request, &mut Requests),
) -> usize {
    let until = Instant::now() + PATIENCE;
    let mut left = 0;
    for pid in guarded(maps) {
        let mut open = open_frames(maps, requests, pid, &mut other);
        while !open.is_empty() && Instant::now() < until {
            sleep(PAUSE);
            open = open_frames(maps, requests, pid, &mut other);
        }
        for (tid, frames) in open {
            let Some(_stopped) = Stopped::new(tid) else {
                left += frames.len();
                continue;
            };
            let now = open_frames(maps, requests, pid, &mut other).remove(&tid);
            let words = now.unwrap_or_default();
            let written = sys::write_process(pid, &words).unwrap_or(0);
            left += words.len() - written;
        }
    }
    left
}

fn guarded(maps: &GuardMaps) -> Vec<u32> {
    let mut pids = Vec::new();
    let mut last = None;
    while let Ok(Some(pid)) = sys::map_next_key::<u32>(maps.guarded.as_fd(), last) {
        pids.push(pid);
        last = Some(pid);
    }
    pids
}

/// Returns the open frames by thread: each slot that holds the trampoline's address, with the
/// address that belongs there.
fn open_frames(
    maps: &GuardMaps,
    requests: &mut Requests,
    pid: u32,
    other: &mut impl FnMut(&Request, &mut Requests),
) -> BTreeMap<u32, Vec<(u64, u64)>> {
    let mut open = BTreeMap::new();
    let visit = || sys::visit_threads(maps.lister.as_fd(), pid);
    // The process may be gone. Other errors, of memory or of a signal, pass.
    for _ in 0..TRIES {
        match visit() {
            Ok(()) => break,
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return open,
            Err(_) => sleep(PAUSE),
        }
    }
    while let Some(request) = requests.next() {
        if !request.is_listed {
            other(&request, requests);
        } else if request.pid == pid {
            let mut words = request.words();
            words.retain(|(slot, _)| word_at(pid, *slot) == Some(request.trampoline));
            if !words.is_empty() {
                open.insert(request.tid, words);
            }
        }
    }
    open
}

fn word_at(pid: u32, address: u64) -> Option<u64> {
    let mut word = [0; 8];
    let read = sys::read_process(pid, std::iter::once(address), &mut [IoSliceMut::new(&mut word)]);
    (read.ok()? == word.len()).then(|| u64::from_le_bytes(word))
}
