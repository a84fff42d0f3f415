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
    other: impl FnMut(&Request, &mut Requests),
) -> usize {
    let mut sweep = Sweep { maps, requests, other };
    let until = Instant::now() + PATIENCE;
    guarded(maps).into_iter().map(|pid| sweep.process(pid, until)).sum()
}

struct Sweep<'a, Other> {
    maps: &'a GuardMaps,
    requests: &'a mut Requests,
    other: Other,
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

impl<Other: FnMut(&Request, &mut Requests)> Sweep<'_, Other> {
    /// Returns the number of frames that could not be restored. Until the given time, frames may
    /// return by themselves.
    fn process(&mut self, pid: u32, until: Instant) -> usize {
        let mut open: Vec<Thread> =
            threads(pid).into_iter().map(|tid| Thread { pid, tid }).collect();
        open.retain(|thread| !self.open_frames(*thread).is_empty());
        while !open.is_empty() && Instant::now() < until {
            sleep(PAUSE);
            open.retain(|thread| !self.open_frames(*thread).is_empty());
        }
        open.into_iter().map(|thread| self.stopped(thread)).sum()
    }

    /// Stops a thread and restores its frames. Returns the number of those that could not be.
    fn stopped(&mut self, thread: Thread) -> usize {
        // Others would wait for as long as this one needs to stop.
        let stopped = Stopped::new(thread.tid, || drop(self.serve(None)));
        let words = self.open_frames(thread);
        let restored = match stopped {
            Some(_stopped) => sys::write_process(thread.pid, &words).unwrap_or(0),
            None => 0,
        };
        words.len() - restored
    }

    /// Returns the open frames of a thread: each slot that holds the trampoline's address, with the
    /// address that belongs there. One thread's list always fits into the ring.
    fn open_frames(&mut self, thread: Thread) -> Vec<(u64, u64)> {
        // The thread may be gone. Other errors, of memory or of a signal, pass.
        for _ in 0..TRIES {
            match sys::visit_thread(self.maps.lister.as_fd(), thread.tid) {
                Ok(()) => break,
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Vec::new(),
                Err(_) => sleep(PAUSE),
            }
        }
        self.serve(Some(thread))
    }

    /// Serves the threads that wait. Returns the open frames of the one that was listed.
    fn serve(&mut self, listed: Option<Thread>) -> Vec<(u64, u64)> {
        let mut open = Vec::new();
        while let Some(request) = self.requests.next() {
            if !request.is_listed {
                (self.other)(&request, self.requests);
            } else if let Some(Thread { pid, tid }) = listed
                && request.tid == tid
            {
                open = request.words();
                open.retain(|(slot, _)| word_at(pid, *slot) == Some(request.trampoline));
            }
        }
        open
    }
}

fn word_at(pid: u32, address: u64) -> Option<u64> {
    let mut word = [0; 8];
    let read = sys::read_process(pid, std::iter::once(address), &mut [IoSliceMut::new(&mut word)]);
    (read.ok()? == word.len()).then(|| u64::from_le_bytes(word))
}
