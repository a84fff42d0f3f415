//! Reads /proc about a process, and waits for a state.

use anyhow::{Result, bail};
use rustix::process::Signal;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Waits up to two minutes: the kernel itself takes ten seconds and more to remove probes at times.
/// `what` ends the sentence "it never came that".
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) -> Result<()> {
    for _ in 0..6000 {
        if is_so() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("it never came that {what}")
}

/// Returns all files below a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let inside = entries.flat_map(|entry| match entry.path() {
        path if path.is_dir() => files(&path),
        path => vec![path],
    });
    inside.collect()
}

/// Waits for the child of a process that runs this file.
pub fn child_running(parent: i32, file: &Path) -> Result<i32> {
    let file = fs::canonicalize(file)?;
    let mut found = None;
    wait_until(&format!("a child runs {}", file.display()), || {
        found = children(parent).into_iter().find(|child| runs(*child, &file));
        found.is_some()
    })?;
    Ok(found.unwrap_or_default())
}

/// Returns the current children of a process.
pub fn children(parent: i32) -> Vec<i32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    let parent = parent.to_string();
    pids.filter(|pid| stat(*pid, 1).as_deref() == Some(&parent)).collect()
}

/// Returns whether a thread of the process has this name.
pub fn has_thread(pid: i32, name: &str) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut names =
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    names.any(|comm| comm.trim() == name)
}

/// Returns the ids of its threads, the first one first.
pub fn threads(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut ids: Vec<i32> =
        threads.filter_map(|thread| thread.file_name().to_str()?.parse().ok()).collect();
    ids.sort_by_key(|id| (*id != pid, *id));
    ids
}

pub fn runs(pid: i32, file: &Path) -> bool {
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe == file)
}

/// Returns whether a signal stopped it.
pub fn is_stopped(pid: i32) -> bool {
    stat(pid, 0).as_deref() == Some("T")
}

/// Returns whether it is gone, or a zombie.
pub fn has_ended(pid: i32) -> bool {
    matches!(stat(pid, 0).as_deref(), None | Some("Z" | "X"))
}

pub fn blocks(pid: i32, signal: Signal) -> bool {
    has_signal(pid, "SigBlk", signal)
}

/// Returns whether it has a handler of the signal.
pub fn catches(pid: i32, signal: Signal) -> bool {
    has_signal(pid, "SigCgt", signal)
}

fn has_signal(pid: i32, set: &str, signal: Signal) -> bool {
    let mask = status(pid, set).and_then(|hex| u64::from_str_radix(&hex, 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal.as_raw() - 1)) != 0)
}

/// Returns its used memory that is neither a file's nor shared, in bytes.
pub fn private_memory(pid: i32) -> u64 {
    let text = status(pid, "RssAnon").unwrap_or_default();
    let kilobytes = text.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
    kilobytes.unwrap_or_default() * 1024
}

/// Returns a field of /proc/PID/stat, counted from the state.
fn stat(pid: i32, field: usize) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_whitespace().nth(field).map(str::to_owned)
}

fn status(pid: i32, key: &str) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    Some(value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Running;
    use std::process::Command;

    #[test]
    fn children_and_their_states_are_seen() {
        let own = i32::try_from(std::process::id()).expect("a process id");
        let running = Running::start(Command::new("sleep").arg("1000")).expect("sleep");
        let sleep = fs::canonicalize("/bin/sleep").expect("sleep");
        wait_until("it sleeps", || runs(running.pid(), &sleep)).expect("it runs");
        assert!(children(own).contains(&running.pid()));
        assert!(!is_stopped(running.pid()) && !has_ended(running.pid()));
        assert!(private_memory(running.pid()) > 0);
        assert!(!blocks(running.pid(), Signal::USR1));
        running.signal(Signal::STOP).expect("alive");
        wait_until("it is stopped", || is_stopped(running.pid())).expect("it stops");
        running.signal(Signal::KILL).expect("alive");
        wait_until("it has ended", || has_ended(running.pid())).expect("it ends");
    }
}
