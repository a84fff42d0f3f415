//! The end of a session: no trampoline's address stays on a stack of the target.
//!
//! Most frames return by themselves soon. The threads of the others are stopped one by one.

use super::{
    super::sys,
    GuardMaps,
    loads::Loads,
    open_memory,
    requests::{FramesRequest, Requests},
    settler::Stop,
    stopped::Stopped,
};
use crate::process_status::{ProcessStatus, has_shadow_stack, is_end};
use std::{
    collections::HashSet,
    fs::{self, File},
    io,
    os::fd::AsFd as _,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

/// Calls that return within this time are not disturbed.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);
/// The time for the stop of a thread that has loaded a library. It has begun before.
const HELD_WITHIN: Duration = Duration::from_secs(2);
/// A program that forks without end is not followed for longer. Only those forked before the first
/// turn was over can have frames, and what these forked.
const FORKS_WITHIN: Duration = Duration::from_secs(3);
/// Tries to list the frames of a thread.
const TRIES: u32 = 100;
/// Shorter than a thread waits for its request to be served.
const PAUSE: Duration = Duration::from_millis(1);

/// Restores every open frame of the guarded processes. `serve` serves the threads that wait
/// meanwhile. Returns the number of frames that could not be restored. A thread whose frames are
/// unknown counts as one.
pub(super) fn all(
    maps: &GuardMaps,
    loads: &Loads,
    requests: &mut Requests,
    serve: impl FnMut(&mut Requests),
) -> usize {
    let mut sweep = Sweep { maps, loads, requests, serve };
    let begun = Instant::now();
    let (mut known, mut left) = (HashSet::new(), 0);
    // A process that is forked meanwhile has the frames of its parent.
    loop {
        let new: Vec<u32> = maps.guarded().into_iter().filter(|pid| known.insert(*pid)).collect();
        if new.is_empty() {
            return left;
        }
        let swept = new.into_iter().map(|pid| sweep.process(pid, begun + PATIENCE));
        left += swept.sum::<usize>();
        if begun.elapsed() >= FORKS_WITHIN {
            return left;
        }
    }
}

/// The same for one guarded process, whose calls return by themselves `until` this time.
pub(super) fn one(
    pid: u32,
    until: Instant,
    maps: &GuardMaps,
    loads: &Loads,
    requests: &mut Requests,
    serve: impl FnMut(&mut Requests),
) -> usize {
    Sweep { maps, loads, requests, serve }.process(pid, until)
}

struct Sweep<'a, Serve> {
    maps: &'a GuardMaps,
    loads: &'a Loads,
    requests: &'a mut Requests,
    serve: Serve,
}

#[derive(Clone, Copy)]
struct Thread {
    pid: u32,
    tid: u32,
}

/// Returns the threads of a process. Later ones have no hijacked frames.
fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let entries = match fs::read_dir(format!("/proc/{pid}/task")) {
        Err(error) if is_end(&error) => return Ok(Vec::new()),
        entries => entries?,
    };
    let threads = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    Ok(threads.collect())
}

impl<Serve: FnMut(&mut Requests)> Sweep<'_, Serve> {
    /// Returns the number of frames that could not be restored. Until the given time, frames may
    /// return by themselves.
    fn process(&mut self, pid: u32, until: Instant) -> usize {
        let threads = match has_shadow_stack(pid) {
            // What the processor keeps of its return addresses cannot be written. They return by
            // themselves.
            Ok(true) => return 0,
            has => has.and_then(|_| threads(pid)),
        };
        // Nothing may be written, and something may be open.
        let Ok(threads) = threads else { return 1 };
        let mut open: Vec<Thread> = threads.into_iter().map(|tid| Thread { pid, tid }).collect();
        open.retain(|thread| self.may_have_frames(*thread));
        while !open.is_empty() && Instant::now() < until {
            sleep(PAUSE);
            open.retain(|thread| self.may_have_frames(*thread));
        }
        open.into_iter().map(|thread| self.stopped(thread)).sum()
    }

    fn may_have_frames(&mut self, thread: Thread) -> bool {
        !matches!(self.list(thread), Frames::None)
    }

    /// Stops a thread and restores its frames. Returns the number of those that could not be.
    fn stopped(&mut self, thread: Thread) -> usize {
        // Threads that wait for their own frames are served until this one has stopped. One that has
        // loaded a library is stopped by us already, or will be.
        let until = Instant::now() + HELD_WITHIN;
        let mut is_held = is_stopped_by_us(thread.tid);
        while !is_held && self.loads.holds(thread.tid) && Instant::now() < until {
            (self.serve)(self.requests);
            sleep(PAUSE);
            is_held = is_stopped_by_us(thread.tid);
        }
        let stopped =
            if is_held { None } else { Stopped::new(thread.tid, || (self.serve)(self.requests)) };
        let left = match self.list(thread) {
            Frames::Open(listed, memory) if is_held || stopped.is_some() => listed.restore(&memory),
            Frames::Open(listed, memory) => listed.hijacked(&memory).len(),
            Frames::None => 0,
            Frames::Unknown => 1,
        };
        drop(stopped);
        left
    }

    /// Lists the frames of a thread. Its memory is opened before. If the process executes another
    /// program, the old memory is gone, and nothing is written.
    fn list(&mut self, thread: Thread) -> Frames {
        let memory = open_memory(thread.tid);
        for _ in 0..TRIES {
            if self.has_ended(thread) {
                return Frames::None;
            }
            let listed = self.requests.list(self.maps.lister.as_fd(), thread.tid, 1);
            // Others wait meanwhile.
            (self.serve)(self.requests);
            let Some(listed) = listed else { continue };
            if listed.frames.is_empty() {
                return Frames::None;
            }
            let Ok(memory) = memory else { break };
            let are_open = !listed.hijacked(&memory).is_empty();
            return if are_open { Frames::Open(listed, memory) } else { Frames::None };
        }
        Frames::Unknown
    }

    /// Returns whether a thread has ended, or is about to with its process. The first thread of a
    /// process may end long before the others.
    fn has_ended(&self, Thread { pid, tid }: Thread) -> bool {
        let is_guarded = sys::map_lookup(self.maps.guarded.as_fd(), pid, &mut [0]);
        is_guarded.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
            || matches!(Stop::of(pid, tid), Stop::Gone)
    }
}

/// The frames of a thread, as far as they are known.
enum Frames {
    /// Some slots hold the trampoline's address in this memory.
    Open(FramesRequest, File),
    /// None does, or the thread has ended.
    None,
    Unknown,
}

fn is_stopped_by_us(tid: u32) -> bool {
    // The tracer is one of our threads.
    let is_ours = |tracer: &str| Path::new("/proc/self/task").join(tracer).is_dir();
    ProcessStatus::of(tid).is_ok_and(|status| {
        status.field("State").starts_with('t') && is_ours(status.field("TracerPid").trim())
    })
}
