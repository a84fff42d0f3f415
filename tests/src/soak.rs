//! Tools for a soak of the daemon: its resources, kernel objects left, a small disk, and the sums
//! of each session's reports, to compare with the target's own counts.

use crate::daemon::{check_reports, reports};
use crate::process::run;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The resources that a process holds.
#[derive(Clone, Copy, Debug)]
pub struct Held {
    pub files: usize,
    pub threads: usize,
    /// Memory of its own. The pages of its program that are in memory depend on how that was built.
    pub kilobytes: u64,
}

impl Held {
    pub fn by(pid: i32) -> Held {
        let count =
            |what: &str| fs::read_dir(format!("/proc/{pid}/{what}")).map_or(0, Iterator::count);
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let number = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name))?;
            value.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        };
        let kilobytes = number("RssAnon:").unwrap_or(0) + number("RssShmem:").unwrap_or(0);
        Held { files: count("fd"), threads: count("task"), kilobytes }
    }
}

/// Returns the BPF objects of a process's descriptors, as `link:5`.
pub fn bpf_objects(pid: i32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fdinfo")).into_iter().flatten().flatten();
    let texts = entries.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    let mut found: Vec<String> = texts.flat_map(|text| ids(&text)).collect();
    found.sort();
    found.dedup();
    found
}

fn ids(fdinfo: &str) -> Vec<String> {
    let id = |line: &str| {
        let (key, number) = line.split_once(':')?;
        Some(format!("{}:{}", key.strip_suffix("_id")?, number.trim()))
    };
    fdinfo.lines().filter_map(id).filter(|id| !id.starts_with("btf")).collect()
}

/// Returns the objects that the kernel still has. `checker` is the built `bpf_left.c`.
pub fn still_there(checker: &Path, objects: &[String]) -> Result<Vec<String>> {
    let finished = run(Command::new(checker).args(objects), Duration::from_secs(30))?;
    ensure!(finished.shell_code() == 0, "{finished:?}");
    Ok(finished.stdout.lines().map(str::to_owned).collect())
}

/// A small disk, removed on drop.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    pub fn mount(place: &Path, kilobytes: u32) -> Result<SmallDisk> {
        fs::create_dir(place)?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={kilobytes}k"), "tmpfs"]).arg(place);
        let finished = run(&mut mount, Duration::from_secs(30))?;
        ensure!(finished.shell_code() == 0, "{}", finished.stderr);
        Ok(SmallDisk(place.into()))
    }

    /// Fills the disk.
    pub fn fill(&self) -> Result<()> {
        let mut file = fs::OpenOptions::new().create(true).append(true).open(self.filler())?;
        ensure!(file.write_all(&vec![0; 16 << 20]).is_err(), "the disk takes everything");
        Ok(())
    }

    pub fn make_room(&self) -> Result<()> {
        // It may not exist.
        let _ = fs::remove_file(self.filler());
        Ok(fs::write(self.0.join("room"), "")?)
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // A failed test must remove it, though the daemon may still have files open.
        let _ = run(Command::new("umount").arg("-l").arg(&self.0), Duration::from_secs(30));
    }
}

/// The sums of the reports of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Calls that ended, and those still open in the last report.
    pub calls: u64,
    /// Ends that were seen.
    pub ends: u64,
    /// Calls that ended unseen around a loss. Some ends were seen as well.
    pub untimed: u64,
    /// Events.
    pub lost: u64,
    ended: u64,
}

/// Follows a file of reports.
pub struct Ledger {
    path: PathBuf,
    read: u64,
    reports: Vec<Value>,
    sums: HashMap<u64, Sum>,
}

impl Ledger {
    /// Follows only what will be written from now on.
    pub fn of(path: &Path) -> Ledger {
        let read = fs::metadata(path).map_or(0, |data| data.len());
        Ledger { path: path.into(), read, reports: Vec::new(), sums: HashMap::new() }
    }

    /// Reads new reports for one function.
    pub fn read(&mut self, function: &str) -> Result<()> {
        let Ok(mut file) = fs::File::open(&self.path) else { return Ok(()) };
        file.seek(SeekFrom::Start(self.read))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let whole = &text[..text.rfind('\n').map_or(0, |at| at + 1)];
        self.read += whole.len() as u64;
        for report in reports(whole)? {
            self.add(&report, function)?;
            self.reports.push(report);
        }
        Ok(())
    }

    fn add(&mut self, report: &Value, function: &str) -> Result<()> {
        let session = report["daemon"]["session"].as_u64().context("a session")?;
        let sum = self.sums.entry(session).or_default();
        sum.lost += report["loss"]["events"].as_u64().context("losses")?;
        let functions = report["functions"].as_array().context("functions")?;
        sum.calls = sum.ended;
        if let Some(found) = functions.iter().find(|found| found["name"] == function) {
            let number = |key: &str| found[key].as_u64().context("a number");
            sum.ended += number("calls")? - number("open")?;
            sum.calls += number("calls")?;
            sum.ends += number("timed")? + number("headless")?;
            sum.untimed += number("untimed")?;
        }
        Ok(())
    }

    pub fn sum(&self, session: u64) -> Sum {
        self.sums.get(&session).copied().unwrap_or_default()
    }

    /// Checks that all reports so far lie end to end. All sessions must be over, and are forgotten.
    pub fn check(&mut self) -> Result<()> {
        check_reports(&self.reports)?;
        let last = self.reports.pop();
        self.reports = last.into_iter().collect();
        self.sums.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn ids_are_found_in_fdinfo() {
        let text = "pos:\t0\nlink_type:\tuprobe_multi\nlink_id:\t7\nprog_tag:\tab\nprog_id:\t5\n";
        assert_eq!(ids(text), ["link:7", "prog:5"]);
        assert_eq!(ids("map_id:\t9\nbtf_id:\t3\n"), ["map:9"]);
    }

    #[test]
    fn a_call_over_two_intervals_is_one() {
        let report = |calls, timed, open| {
            json!({ "daemon": { "session": 3 }, "loss": { "events": 1 }, "functions": [
                { "name": "f", "calls": calls, "timed": timed, "open": open, "untimed": 0,
                  "headless": 0 }] })
        };
        let mut ledger = Ledger::of(Path::new("/nowhere"));
        ledger.add(&report(5, 4, 1), "f").expect("sound");
        ledger.add(&report(3, 2, 1), "f").expect("sound");
        assert_eq!(ledger.sum(3), Sum { calls: 7, ends: 6, lost: 2, ended: 6, untimed: 0 });
    }
}
