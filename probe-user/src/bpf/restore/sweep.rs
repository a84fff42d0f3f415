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
    fs,
    io::IoSliceMut,
    os::fd::AsFd as _,
    thread::sleep,
    time::{Duration, Instant},
};

/// Calls that return within this time are not disturbed.
const PATIENCE: Duration = Duration::from_millis(100);
/// Shorter than a thread waits for its request to be served.
const PAUSE: Duration = Duration::from_millis(1);
/// Tries to list the frames of a thread.
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
        let mut frames = |tid| open_frames(maps, requests, Thread { pid, tid }, &mut other);
        let mut open = threads(pid);
        open.retain(|tid| !frames(*tid).is_empty());
        while !open.is_empty() && Instant::now() < until {
            sleep(PAUSE);
            open.retain(|tid| !frames(*tid).is_empty());
        }
        for tid in open {
            let Some(_stopped) = Stopped::new(tid) else {
                left += frames(tid).len();
                continue;
            };
            let words = frames(tid);
            left += words.len() - sys::write_process(pid, &words).unwrap_or(0);
        }
    }
    left
}

#[derive(Clone, Copy)]
struct Thread {
    pid: u32,
    tid: u32,
}

/// Returns the threads of a process. Later ones have no hijacked frames.
fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
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

/// Returns the open frames of a thread: each slot that holds the trampoline's address, with the
/// address that belongs there. One thread's list always fits into the ring.
fn open_frames(
    maps: &GuardMaps,
    requests: &mut Requests,
    Thread { pid, tid }: Thread,
    other: &mut impl FnMut(&Request, &mut Requests),
) -> Vec<(u64, u64)> {
    let mut open = Vec::new();
    let visit = || sys::visit_thread(maps.lister.as_fd(), tid);
    // The thread may be gone. Other errors, of memory or of a signal, pass.
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
        } else if request.tid == tid {
            open = request.words();
            open.retain(|(slot, _)| word_at(pid, *slot) == Some(request.trampoline));
        }
    }
    open
}

fn word_at(pid: u32, address: u64) -> Option<u64> {
    let mut word = [0; 8];
    let read = sys::read_process(pid, std::iter::once(address), &mut [IoSliceMut::new(&mut word)]);
    (read.ok()? == word.len()).then(|| u64::from_le_bytes(word))
}
