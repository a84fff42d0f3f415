//! Finds the process that a user names: by its id, its name, its systemd unit, or the program that it
//! runs. A name must fit one process only: a guess would trace the wrong one.

use super::facts::{self, ProgramFacts};
use super::ours::Ours;
use super::set::ProcessSet;
use super::{Process, ProcessError, Stat, read_command, read_stat, since_boot};
use crate::target::names::nearest::nearest;
use ctrace_core::units::{Nanos, Pid};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// A process as a user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProcessName {
    Pid(u32),
    /// Its own name, or the file name of its program.
    Name(String),
    /// A systemd unit with its suffix.
    Unit(String),
    /// The file of its program.
    Exe(PathBuf),
    /// Several at once.
    All(ProcessSet),
}

/// The reason why a name leads to no process. Each message is one line: problem and remedy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LookupError {
    #[error("no process {is}{}; {remedy}", close_to(.nearest))]
    None { is: String, nearest: Vec<String>, remedy: String },
    #[error(
        "{count} processes {are}: with --follow, attach, record, top and trace take all of them together; or give the PID of one"
    )]
    Several {
        are: String,
        count: usize,
        /// The first of them.
        first: Vec<ProcessCandidate>,
    },
    #[error("{begin} is the beginning of {count} containers: {first}; give more of the id")]
    Containers { begin: String, count: usize, first: String },
    #[error(transparent)]
    Process(#[from] ProcessError),
}

fn close_to(nearest: &[String]) -> String {
    if nearest.is_empty() {
        String::new()
    } else {
        format!("; close to it: {}", nearest.join(", "))
    }
}

/// A process that may be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProcessCandidate {
    pub(crate) pid: u32,
    /// Its command line, or its name where it has none.
    pub(crate) command: String,
    pub(crate) age: Nanos,
}

/// Limit of candidates whose command lines are read.
const MOST_NAMED: usize = 10;
/// The kernel cuts names of processes after so many bytes.
const LONGEST_COMM: usize = 15;

impl ProcessName {
    /// A number is an id, a text with a slash a program file, and a text with the suffix of a unit
    /// a unit.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
            return match text.parse::<i32>() {
                Ok(pid @ 1..) => Ok(Self::Pid(pid.unsigned_abs())),
                _ => Err("no process has such an id".into()),
            };
        }
        match text {
            "" => Err("give the id or the name of a process, or a systemd unit".into()),
            _ if text.contains('/') => Self::of_program(text.into()),
            _ if facts::is_unit(text) => Ok(Self::Unit(text.into())),
            _ => Ok(Self::Name(text.into())),
        }
    }

    /// Parses the file of a program, or a glob of such files.
    pub(crate) fn of_program(word: OsString) -> Result<Self, String> {
        match word.to_str().and_then(ProcessSet::of_programs) {
            Some(set) => set.map(Self::All),
            None => Ok(Self::Exe(word.into())),
        }
    }

    /// Returns whether the name means this process, as others of its kind. An id means none here.
    pub(crate) fn means(&self, pid: Pid) -> bool {
        let is_program = |stat: &Stat| !stat.is_kernel_thread();
        read_stat(pid.0).is_ok_and(|stat| is_program(&stat) && self.fits(pid.0, &stat))
    }

    /// Returns whether all processes are meant that it fits, and not a single one.
    pub(crate) fn means_all(&self) -> bool {
        matches!(self, Self::All(_))
    }

    /// Returns the set of all processes that the name means, where it means a kind of them.
    pub(crate) fn into_set(self) -> Result<ProcessSet, String> {
        match self {
            Self::All(set) => Ok(set),
            Self::Exe(path) => ProcessSet::of_program(&wanted(&path)),
            Self::Pid(_) | Self::Name(_) | Self::Unit(_) => {
                let why = "--user chooses processes by itself or with --exe, --cgroup or --container: \
                           leave it out where a PID or a name is given";
                Err(why.into())
            }
        }
    }

    /// Returns the process whose id a word is that could also be a file or a command.
    pub(crate) fn of_number(word: &OsStr) -> Option<Self> {
        let name = Self::parse(word.to_str()?).ok();
        name.filter(|name| matches!(name, Self::Pid(_)))
    }

    /// Opens all processes that the name means, but those that another one of them started, and
    /// ctrace's own.
    pub(crate) fn open_all(&self) -> Result<Vec<Process>, LookupError> {
        if let Self::Pid(pid) = self {
            return Ok(vec![Process::open(*pid)?]);
        }
        // A shell's name, for example, also fits the one in which ctrace was started.
        let ours = Ours::new();
        let is_ours = |(pid, _): &(u32, Stat)| {
            let program = ProgramFacts::of(Pid(*pid));
            program.is_some_and(|program| ours.has(*pid, Path::new(&program.exe)))
        };
        let (own, others): (Vec<_>, Vec<_>) = self.fitting()?.into_iter().partition(is_ours);
        let found = if others.is_empty() && !self.means_all() { own } else { others };
        let found = outermost(found);
        let same = |process: &Process, stat: &Stat| process.start_time() == stat.start_time;
        let open = |(pid, stat): &(u32, Stat)| {
            Process::open(*pid).ok().filter(|process| same(process, stat))
        };
        let opened: Vec<Process> = found.iter().filter_map(open).collect();
        if opened.is_empty() { Err(self.none()) } else { Ok(opened) }
    }

    /// Finds the process and opens it.
    pub(crate) fn open(&self) -> Result<Process, LookupError> {
        let (pid, start_time) = self.find()?;
        let process = Process::open(pid)?;
        match start_time {
            // Another process has the id by now.
            Some(time) if time != process.start_time() => Err(ProcessError::Ended { pid }.into()),
            _ => Ok(process),
        }
    }

    /// Returns the id of the process. An id that the user gave is not checked.
    pub(crate) fn pid(&self) -> Result<u32, LookupError> {
        self.find().map(|(pid, _)| pid)
    }

    /// Returns the id, and the start of a process that was searched for.
    fn find(&self) -> Result<(u32, Option<u64>), LookupError> {
        let found = match self {
            Self::Pid(pid) => return Ok((*pid, None)),
            Self::Unit(_) | Self::All(_) => outermost(self.fitting()?),
            Self::Name(_) | Self::Exe(_) => self.fitting()?,
        };
        match &found[..] {
            [(pid, stat)] => Ok((*pid, Some(stat.start_time))),
            [] => Err(self.none()),
            several => Err(LookupError::Several {
                are: self.as_predicate("are"),
                count: several.len(),
                first: several.iter().take(MOST_NAMED).map(candidate).collect(),
            }),
        }
    }

    /// Returns all processes that the name fits. An id fits none here: it is not searched for.
    fn fitting(&self) -> Result<Vec<(u32, Stat)>, LookupError> {
        if let Self::All(set) = self {
            set.check(living().map(|(pid, _)| pid))?;
        }
        Ok(living().filter(|(pid, stat)| self.fits(*pid, stat)).collect())
    }

    fn fits(&self, pid: u32, stat: &Stat) -> bool {
        match self {
            Self::Pid(_) => false,
            Self::Name(name) => has_name(pid, stat, name),
            Self::Unit(unit) => is_in(pid, unit),
            Self::Exe(path) => runs(pid, &wanted(path)),
            Self::All(set) => set.has(pid),
        }
    }

    fn none(&self) -> LookupError {
        let (nearest, remedy) = match self {
            Self::Name(name) => (
                nearest_names(name),
                "give its PID, its name as `ps -e` shows it, a unit such as redis.service, or --exe PATH"
                    .to_owned(),
            ),
            Self::Unit(unit) => (Vec::new(), format!("`systemctl status {unit}` tells its state")),
            Self::All(set) => (Vec::new(), set.remedy().to_owned()),
            Self::Pid(_) | Self::Exe(_) => {
                (Vec::new(), "`ps -e` lists all; `ctrace run` starts it".to_owned())
            }
        };
        LookupError::None { is: self.as_predicate("is"), nearest, remedy }
    }

    fn as_predicate(&self, verb: &str) -> String {
        match self {
            Self::Pid(pid) => format!("{verb} {pid}"),
            Self::Name(name) => format!("{verb} named `{name}`"),
            Self::Unit(unit) => format!("{verb} in the unit `{unit}`"),
            Self::Exe(path) => format!("{verb} running {}", path.display()),
            Self::All(set) => set.as_predicate(verb),
        }
    }
}

impl fmt::Display for ProcessName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pid(pid) => write!(f, "{pid}"),
            Self::Name(text) | Self::Unit(text) => f.write_str(text),
            Self::Exe(path) => path.display().fmt(f),
            Self::All(set) => set.fmt(f),
        }
    }
}

/// Returns all processes that run a program, but this one, in the order of their ids.
fn living() -> impl Iterator<Item = (u32, Stat)> {
    let mut pids: Vec<u32> = facts::all().map(|pid| pid.0).collect();
    pids.sort_unstable();
    let own = std::process::id();
    pids.into_iter().filter(move |pid| *pid != own).filter_map(|pid| {
        let stat = read_stat(pid).ok()?;
        let runs = !stat.is_kernel_thread() && !matches!(stat.state, b'Z' | b'X');
        runs.then_some((pid, stat))
    })
}

/// Checks the process's own name, which anyone may read, and the file name of its program.
fn has_name(pid: u32, stat: &Stat, name: &str) -> bool {
    let is_cut = || stat.comm.len() == LONGEST_COMM && name.starts_with(&stat.comm);
    stat.comm == name
        || ProgramFacts::of(Pid(pid)).is_some_and(|program| program.file_name() == name)
        || (is_cut() && starts_file(&read_command(pid), name))
}

/// Checks the program or script that a command line starts.
fn starts_file(command: &[String], name: &str) -> bool {
    let file_name = |word: &String| Path::new(word).file_name().is_some_and(|file| file == name);
    command.iter().take(2).any(file_name)
}

fn is_in(pid: u32, unit: &str) -> bool {
    facts::control_group_of(Pid(pid)).split('/').any(|part| part == unit)
}

/// Keeps the processes that no other one of them started: the main process of a unit.
fn outermost(all: Vec<(u32, Stat)>) -> Vec<(u32, Stat)> {
    let pids: HashSet<u32> = all.iter().map(|(pid, _)| *pid).collect();
    all.into_iter().filter(|(_, stat)| !pids.contains(&stat.parent)).collect()
}

/// Returns the path as the kernel would tell it. The file may have been deleted.
fn wanted(path: &Path) -> PathBuf {
    let whole = path.canonicalize().or_else(|_| std::path::absolute(path));
    whole.unwrap_or_else(|_| path.to_owned())
}

fn runs(pid: u32, path: &Path) -> bool {
    ProgramFacts::of(Pid(pid)).is_some_and(|program| Path::new(&program.exe) == path)
}

fn candidate((pid, stat): &(u32, Stat)) -> ProcessCandidate {
    let command = read_command(*pid).join(" ");
    ProcessCandidate {
        pid: *pid,
        command: if command.is_empty() { stat.comm.clone() } else { command },
        age: since_boot().since(stat.started()),
    }
}

/// Returns the names of processes that are most like this one.
fn nearest_names(wanted: &str) -> Vec<String> {
    const NEAREST: usize = 3;
    let names = living().flat_map(|(pid, stat)| {
        let program = ProgramFacts::of(Pid(pid)).map(|program| program.file_name().to_owned());
        [Some(stat.comm), program].into_iter().flatten()
    });
    let names: HashSet<String> = names.filter(|name| !name.is_empty()).collect();
    nearest(wanted, names.iter().map(String::as_str), NEAREST)
}

#[cfg(test)]
#[path = "lookup_tests.rs"]
mod tests;
