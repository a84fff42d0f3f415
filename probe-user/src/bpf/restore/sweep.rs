//! The end of a session: no trampoline's address stays on a stack of the target.
//!
//! Most frames return by themselves soon. The threads of the others are stopped one by one.

use super::{super::sys, GuardMaps, requests::Requests, stopped::Stopped};
use crate::process_status::ProcessStatus;
use std::{
    fs,
    io::IoSliceMut,
    os::fd::AsFd as _,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

/// Calls that return within this time are not disturbed.
const PATIENCE: Duration = Duration::from_millis(100);
/// Tries to list the frames of a thread.
const TRIES: u32 = 100;
/// Shorter than a thread waits for its request to be served.
const PAUSE: Duration = Duration::from_millis(1);

/// Restores every open frame of the guarded processes. `serve` serves the threads that wait
/// meanwhile. Returns the number of frames that could not be restored. A thread whose frames are
/// unknown counts as one.
pub(super) fn all(
    maps: &GuardMaps,
    requests: &mut Requests,
    serve: impl FnMut(&mut Requests),
) -> usize {
    let mut sweep = Sweep { maps, requests, serve };
    let until = Instant::now() + PATIENCE;
    guarded(maps).into_iter().map(|pid| sweep.process(pid, until)).sum()
}

struct Sweep<'a, Serve> {
    maps: &'a GuardMaps,
    requests: &'a mut Requests,
    serve: Serve,
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

impl<Serve: FnMut(&mut Requests)> Sweep<'_, Serve> {
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
        // Threads that wait for their own frames are served until this one has stopped. One that has
        // loaded a library is stopped already.
        let is_held = is_stopped_by_us(thread.tid);
        let stopped =
            if is_held { None } else { Stopped::new(thread.tid, || (self.serve)(self.requests)) };
        let Some(words) = self.open_frames(thread) else { return 1 };
        let restored = match is_held || stopped.is_some() {
            true => sys::write_process(thread.pid, &words).unwrap_or(0),
            false => 0,
        };
        drop(stopped);
        words.len() - restored
    }

    /// Returns the open frames of a thread: each slot that holds the trampoline's address, with the
    /// address that belongs there. Returns `None` if they are unknown.
    fn open_frames(&mut self, thread: Thread) -> Option<Vec<(u64, u64)>> {
        let listed = self.requests.list(self.maps.lister.as_fd(), thread.tid, TRIES);
        (self.serve)(self.requests);
        let listed = listed?;
        let mut words = listed.words();
        words.retain(|(slot, _)| word_at(thread.pid, *slot) == Some(listed.trampoline));
        Some(words)
    }
}

fn is_stopped_by_us(tid: u32) -> bool {
    // The tracer is one of our threads.
    let is_ours = |tracer: &str| Path::new("/proc/self/task").join(tracer).is_dir();
    ProcessStatus::of(tid).is_ok_and(|status| {
        status.field("State").starts_with('t') && is_ours(status.field("TracerPid").trim())
    })
}

fn word_at(pid: u32, address: u64) -> Option<u64> {
    let mut word = [0; 8];
    let read = sys::read_process(pid, std::iter::once(address), &mut [IoSliceMut::new(&mut word)]);
    (read.ok()? == word.len()).then(|| u64::from_le_bytes(word))
}
