//! The threads of a process: their ids, names and times.

use super::{Process, parse_stat, proc_path, text};
use crate::process_status::ProcessStatus;
use ctrace_core::{
    report::ProcessorTimes,
    units::{Nanos, Pid, Tid},
};
use std::{fs, path::PathBuf};

/// A thread of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Thread {
    pub tid: u32,
    pub name: String,
}

impl Process {
    /// Returns its threads with their names, by id.
    pub(crate) fn threads(&self) -> Vec<Thread> {
        Self::threads_of(self.pid)
    }

    /// Returns the threads of a process, whether or not it can be traced.
    pub(crate) fn threads_of(pid: u32) -> Vec<Thread> {
        let mut threads: Vec<Thread> = tasks(pid)
            .filter_map(|(tid, folder)| {
                let name = fs::read(folder.join("comm")).ok()?;
                Some(Thread { tid, name: text(name.strip_suffix(b"\n").unwrap_or(&name)) })
            })
            .collect();
        threads.sort_by_key(|thread| thread.tid);
        threads
    }

    /// Returns the thread ids of a process in its own pid namespace and in ours.
    pub(crate) fn thread_ids_inside(pid: u32) -> Vec<(u32, u32)> {
        let ids = tasks(pid).filter_map(|(tid, folder)| {
            let status = ProcessStatus::read(folder.join("status")).ok()?;
            let inside = status.words("NSpid").next_back()?;
            Some((inside.parse().ok()?, tid))
        });
        ids.collect()
    }
}

/// Returns the ids of the threads of a process.
pub(crate) fn ids_of(pid: Pid) -> impl Iterator<Item = Tid> {
    tasks(pid.0).map(|(tid, _)| Tid(tid))
}

/// Returns when a thread began, as the time since boot.
pub(crate) fn started(pid: Pid, tid: Tid) -> Option<Nanos> {
    let stat = fs::read(folder_of(pid, tid).join("stat")).ok()?;
    parse_stat(&stat).map(|stat| stat.started())
}

/// Returns how long a thread that still exists had a processor and waited for one, if the kernel counts that.
pub(crate) fn processor_times(pid: Pid, tid: Tid) -> Option<ProcessorTimes> {
    let text = fs::read_to_string(folder_of(pid, tid).join("schedstat")).ok()?;
    let mut numbers = text.split(' ').map_while(|word| word.parse().ok().map(Nanos));
    Some(ProcessorTimes { used_ns: numbers.next()?, waited_ns: numbers.next()? })
}

fn folder_of(pid: Pid, tid: Tid) -> PathBuf {
    proc_path(pid.0, "task").join(tid.0.to_string())
}

/// Returns the threads of a process with their folders.
fn tasks(pid: u32) -> impl Iterator<Item = (u32, PathBuf)> {
    let tasks = fs::read_dir(proc_path(pid, "task")).into_iter().flatten();
    tasks.filter_map(|task| {
        let task = task.ok()?;
        Some((task.file_name().to_str()?.parse().ok()?, task.path()))
    })
}
