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
/// Tries to list the frames of a thread, and looks for the answer of each.
const TRIES: u32 = 100;
const LOOKS: u32 = 10;

/// Restores every open frame of the guarded processes. `other` serves requests of threads that wait
/// meanwhile. Returns the number of frames that could not be restored. A thread whose frames are
/// unknown counts as one.
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
        open.retain(|thread| self.may_have_frames(*thread));
        while !open.is_empty() && Instant::now() < until {
            sleep(PAUSE);
            open.retain(|thread| self.may_have_frames(*thread));
        }
        open.into_iter().map(|thread| self.stopped(thread)).sum()
    }

    fn may_have_frames(&mut self, thread: Thread) -> bool {
        self.open_frames(thread).is_none_or(|frames| !frames.is_empty())
    }

    /// Stops a thread and restores its frames. Returns the number of those that could not be.
    fn stopped(&mut self, thread: Thread) -> usize {
        // Threads that wait for their own frames are served until this one has stopped.
        let stopped = Stopped::new(thread.tid, || drop(self.serve(None)));
        let Some(words) = self.open_frames(thread) else { return 1 };
        let restored = match stopped {
            Some(_stopped) => sys::write_process(thread.pid, &words).unwrap_or(0),
            None => 0,
        };
        words.len() - restored
    }

    /// Returns the open frames of a thread: each slot that holds the trampoline's address, with the
    /// address that belongs there. Returns `None` if they are unknown.
    fn open_frames(&mut self, thread: Thread) -> Option<Vec<(u64, u64)>> {
        for _ in 0..TRIES {
            match sys::visit_thread(self.maps.lister.as_fd(), thread.tid) {
                Ok(()) => {}
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => return Some(Vec::new()),
                // Errors of memory or of a signal pass.
                Err(_) => {
                    sleep(PAUSE);
                    continue;
                }
            }
            // Another CPU's record may lie before the answer and not be complete yet. In a full
            // ring there was no room for the answer.
            for _ in 0..LOOKS {
                let answer = self.serve(Some(thread));
                if answer.is_some() {
                    return answer;
                }
                sleep(PAUSE);
            }
        }
        None
    }

    /// Serves the threads that wait. Returns the open frames of the one that was listed, if its
    /// list is there.
    fn serve(&mut self, listed: Option<Thread>) -> Option<Vec<(u64, u64)>> {
        let mut open = None;
        while let Some(request) = self.requests.next() {
            if !request.is_listed {
                (self.other)(&request, self.requests);
            } else if let Some(Thread { pid, tid }) = listed
                && request.tid == tid
            {
                let mut words = request.words();
                words.retain(|(slot, _)| word_at(pid, *slot) == Some(request.trampoline));
                open = Some(words);
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
