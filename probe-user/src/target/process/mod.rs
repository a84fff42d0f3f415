//! Reads a live process from /proc, and refuses early, in one line, one that cannot be traced.
//!
//! /proc is read as bytes and not by a crate. Names of threads and files need not be UTF-8, and a
//! profiler must not refuse a process because of its name.

pub(crate) mod bias;
pub(crate) mod cpu_times;
pub(crate) mod facts;
pub(crate) mod frames;
pub(crate) mod glob;
mod invoked;
pub(crate) mod later;
pub(crate) mod lookup;
pub(crate) mod maps;
pub(crate) mod ours;
pub(crate) mod patience;
pub(crate) mod set;
mod standstill;
pub(crate) mod threads;

use crate::process_status::ProcessStatus;
use cpu_times::CpuTimes;
use ctrace_core::units::{Nanos, Pid};
use maps::{MappedObject, MapsError, Region};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The reason why a process cannot be traced. Each message is one line: problem and remedy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    #[error("no such process: {pid}; `pgrep -a NAME` finds pids by name")]
    NoSuchProcess { pid: u32 },
    #[error(
        "{tid} is a thread of process {pid} ({comm}); attach to {pid} and choose the thread with --thread {tid}"
    )]
    IsThread { tid: u32, pid: u32, comm: String },
    #[error(
        "pid {pid} ({comm}) is a kernel thread, it runs no program that could be traced; choose a user process"
    )]
    KernelThread { pid: u32, comm: String },
    #[error(
        "process {pid} ({comm}) has ended and only waits for its parent to collect it (zombie); nothing is left to trace"
    )]
    Zombie { pid: u32, comm: String },
    #[error(
        "process {pid} ended while ctrace looked at it; start it again and attach earlier, or use `ctrace run`"
    )]
    Ended { pid: u32 },
    #[error("process {pid} ({exe}) is a 32-bit program; ctrace traces 64-bit x86 programs only")]
    Is32Bit { pid: u32, exe: String },
    #[error(
        "process {pid} ({exe}) is a program for another machine than x86-64, perhaps under an emulator; ctrace cannot trace it"
    )]
    OtherMachine { pid: u32, exe: String },
    #[error("no rights to read {what} of process {pid} ({comm}): {missing}")]
    NoRights { pid: u32, comm: String, what: &'static str, missing: String },
    #[error("cannot read {path}: {error}")]
    Io { path: String, error: io::Error },
}

/// The state of a process that should be held at the start of its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtStart {
    Held,
    /// It runs, or is about to stop.
    Runs,
    /// It is further on, or has ended.
    Left,
}

/// A process that was alive, native and readable when it was opened.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pid: u32,
    exe: PathBuf,
    command: Vec<String>,
    /// Clock ticks since boot. With the pid, it tells this process from a later one.
    start_time: u64,
}

/// The parts of /proc/PID/stat that ctrace uses.
pub(super) struct Stat {
    pub(super) comm: String,
    pub(super) state: u8,
    pub(super) parent: u32,
    flags: u64,
    pub(super) start_time: u64,
    cpu: CpuTimes,
    start_stack: u64,
}

impl Stat {
    pub(super) fn is_kernel_thread(&self) -> bool {
        self.flags & PF_KTHREAD != 0
    }

    /// Returns its start as the time since boot.
    pub(super) fn started(&self) -> Nanos {
        of_ticks(self.start_time)
    }
}

/// Limit for a command line: the kernel's default.
const MOST_OF_COMMAND: u64 = 2 << 20;
const PF_KTHREAD: u64 = 0x0020_0000;
const CAP_SYS_PTRACE: u32 = 19;

impl Process {
    /// Opens a process, or refuses it when it cannot be traced.
    pub(crate) fn open(pid: u32) -> Result<Self, ProcessError> {
        let stat = read_stat(pid)?;
        if stat.is_kernel_thread() {
            return Err(ProcessError::KernelThread { pid, comm: stat.comm });
        }
        if let Some(leader) = leader_of(pid).filter(|leader| *leader != pid) {
            return Err(ProcessError::IsThread { tid: pid, pid: leader, comm: stat.comm });
        }
        if matches!(stat.state, b'Z' | b'X') {
            return Err(ProcessError::Zombie { pid, comm: stat.comm });
        }
        let exe = fs::read_link(proc_path(pid, "exe")).map_err(|error| match error.kind() {
            // The link disappears with the memory: the process is exiting.
            io::ErrorKind::NotFound => ProcessError::Ended { pid },
            _ => denied(pid, &stat.comm, "the program file (exe)", error),
        })?;
        check_program(pid, &stat.comm, &exe)?;
        fs::File::open(proc_path(pid, "maps"))
            .map_err(|error| denied(pid, &stat.comm, "the memory map (maps)", error))?;
        Ok(Self {
            pid,
            command: read_command(pid),
            exe: maps::without_deleted(&exe).0,
            start_time: stat.start_time,
        })
    }

    /// Returns its start in clock ticks after boot.
    pub(crate) fn start_time(&self) -> u64 {
        self.start_time
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the program's path as the process sees it, even after its deletion.
    pub(crate) fn exe(&self) -> &Path {
        &self.exe
    }

    /// Returns the command line by argument. Empty when the process erased it.
    pub(crate) fn command(&self) -> &[String] {
        &self.command
    }

    /// Returns whether a process is stopped before its program's first instruction.
    pub(crate) fn is_held_at_start(pid: u32) -> bool {
        Self::at_start(pid) == AtStart::Held
    }

    /// Returns the state of a process that should be held. At the program's start, the stack
    /// pointer is still where the kernel put it.
    pub(crate) fn at_start(pid: u32) -> AtStart {
        let Ok(stat) = read_stat(pid) else { return AtStart::Left };
        match frames::outside_pointers(&proc_path(pid, "")).map(|(stack, _)| stack) {
            Some(pointer) if pointer != stat.start_stack => AtStart::Left,
            Some(_) if stat.state == b'T' => AtStart::Held,
            _ if matches!(stat.state, b'Z' | b'X') => AtStart::Left,
            _ => AtStart::Runs,
        }
    }

    /// Returns the CPU time that a process has used, if it still exists.
    pub(crate) fn cpu_time(pid: u32) -> Option<Nanos> {
        Some(read_stat(pid).ok()?.cpu.total())
    }

    /// Returns the same by kind, and its start as the time since boot.
    pub(crate) fn cpu_times(pid: u32) -> Option<(Nanos, CpuTimes)> {
        let stat = read_stat(pid).ok()?;
        Some((stat.started(), stat.cpu))
    }

    /// Returns the processes that its threads forked, those included that wait to be reaped. `None`
    /// if the kernel does not tell.
    ///
    /// The kernel may leave out others when a child ends while its list is read. They are there
    /// when the list is read again, so that is done until nothing new comes.
    pub(crate) fn children_of(pid: u32) -> Option<BTreeSet<u32>> {
        const MOST_LOOKS: usize = 10;
        let mut found = BTreeSet::new();
        for _ in 0..MOST_LOOKS {
            let before = found.len();
            found.extend(listed_children(pid)?);
            if found.len() == before {
                break;
            }
        }
        Some(found)
    }

    /// Returns whether the process exists and has not ended.
    pub(crate) fn is_running(pid: u32) -> bool {
        read_stat(pid).is_ok_and(|stat| !matches!(stat.state, b'Z' | b'X'))
    }

    /// Returns its executable mapped files, the main executable first.
    pub(crate) fn objects(&self) -> Result<Vec<MappedObject>, MapsError> {
        let mut objects = maps::objects(self.pid)?;
        if let Some(main) = objects.iter_mut().find(|object| object.is_main)
            && let Some(name) = invoked::name(self.pid, &self.exe, &self.command)
        {
            main.name = name;
        }
        Ok(objects)
    }

    /// Returns the regions that can hold a stack: anonymous writable memory.
    pub(crate) fn stack_regions(&self) -> Result<Vec<Region>, MapsError> {
        maps::stack_regions(self.pid)
    }
}

/// Reads the children of a process's threads once.
fn listed_children(pid: u32) -> Option<Vec<u32>> {
    let mut all = Vec::new();
    for task in fs::read_dir(proc_path(pid, "task")).ok()? {
        match fs::read_to_string(task.ok()?.path().join("children")) {
            Ok(list) => {
                all.extend(list.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()))
            }
            // The thread has ended, unless the kernel has no such file.
            Err(_) if fs::metadata("/proc/thread-self/children").is_ok() => {}
            Err(_) => return None,
        }
    }
    Some(all)
}

fn of_ticks(ticks: u64) -> Nanos {
    Nanos(ticks.saturating_mul(1_000_000_000 / rustix::param::clock_ticks_per_second()))
}

/// Returns the time since boot, from which the starts of processes count.
pub(crate) fn since_boot() -> Nanos {
    let now = clock_gettime(ClockId::Boottime);
    Nanos((now.tv_sec as u64).saturating_mul(1_000_000_000) + now.tv_nsec as u64)
}

/// Returns whether /proc/PID/root differs from our own root.
pub(super) fn has_own_root(pid: u32) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |path: &Path| fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    match (identity(&proc_path(pid, "root/")), identity(Path::new("/"))) {
        (Some(theirs), Some(ours)) => theirs != ours,
        _ => false,
    }
}

pub(super) fn proc_path(pid: u32, entry: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{entry}"))
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(super) fn read_stat(pid: u32) -> Result<Stat, ProcessError> {
    let path = proc_path(pid, "stat");
    // One large read: the kernel makes the text at the first, and `fs::read` begins with small
    // ones.
    let mut bytes = [0; 1024];
    let length = match fs::File::open(&path).and_then(|mut file| file.read(&mut bytes)) {
        Ok(length) => length,
        Err(error) => return Err(stat_error(pid, &path, error)),
    };
    parse_stat(&bytes[..length]).ok_or_else(|| ProcessError::Io {
        path: path.display().to_string(),
        error: io::Error::from(io::ErrorKind::InvalidData),
    })
}

fn stat_error(pid: u32, path: &Path, error: io::Error) -> ProcessError {
    const ESRCH: i32 = 3;
    let absent = error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(ESRCH);
    if !absent {
        return ProcessError::Io { path: path.display().to_string(), error };
    }
    // The mount option hidepid hides processes of other users.
    let signal = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    match signal.map(rustix::process::test_kill_process) {
        Some(Ok(()) | Err(rustix::io::Errno::PERM)) => ProcessError::NoRights {
            pid,
            comm: "hidden".to_owned(),
            what: "the entry in /proc",
            missing: missing_right(),
        },
        _ => ProcessError::NoSuchProcess { pid },
    }
}

/// Parses the line. The name in parentheses may hold any byte: the last parenthesis ends it.
fn parse_stat(bytes: &[u8]) -> Option<Stat> {
    let open = bytes.iter().position(|byte| *byte == b'(')?;
    let close = bytes.iter().rposition(|byte| *byte == b')')?;
    let comm = text(bytes.get(open + 1..close)?);
    let rest = std::str::from_utf8(bytes.get(close + 1..)?).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let ticks = |at: usize| Some(of_ticks(fields.get(at)?.parse().ok()?));
    Some(Stat {
        comm,
        state: *fields.first()?.as_bytes().first()?,
        parent: fields.get(1)?.parse().ok()?,
        flags: fields.get(6)?.parse().ok()?,
        start_time: fields.get(19)?.parse().ok()?,
        start_stack: fields.get(25).and_then(|field| field.parse().ok()).unwrap_or_default(),
        cpu: CpuTimes { user: ticks(11)?, system: ticks(12)? },
    })
}

fn leader_of(tid: u32) -> Option<u32> {
    ProcessStatus::of(tid).ok()?.number("Tgid")
}

pub(super) fn read_command(pid: u32) -> Vec<String> {
    // The process itself decides how much of its memory the kernel reads here.
    let read = patience::within(Pid(pid), move || {
        let mut bytes = Vec::new();
        let file = fs::File::open(proc_path(pid, "cmdline"))?;
        file.take(MOST_OF_COMMAND).read_to_end(&mut bytes)?;
        io::Result::Ok(bytes)
    });
    let Ok(Ok(bytes)) = read else { return Vec::new() };
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes.split(|byte| *byte == 0).map(text).collect()
}

/// Checks class and machine in the file that the process really runs.
fn check_program(pid: u32, comm: &str, exe: &Path) -> Result<(), ProcessError> {
    let mut header = [0; 20];
    let read = fs::File::open(proc_path(pid, "exe")).and_then(|mut file| {
        file.read_exact(&mut header).or_else(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Ok(()),
            _ => Err(error),
        })
    });
    match read {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ProcessError::Ended { pid });
        }
        Err(error) => return Err(denied(pid, comm, "the program file (exe)", error)),
    }
    const X86_64: u16 = 62;
    let exe = String::from_utf8_lossy(exe.as_os_str().as_bytes()).into_owned();
    match header[4] {
        1 if header.starts_with(b"\x7fELF") => Err(ProcessError::Is32Bit { pid, exe }),
        2 if header.starts_with(b"\x7fELF")
            && u16::from_le_bytes([header[18], header[19]]) == X86_64 =>
        {
            Ok(())
        }
        _ => Err(ProcessError::OtherMachine { pid, exe }),
    }
}

fn denied(pid: u32, comm: &str, what: &'static str, error: io::Error) -> ProcessError {
    const ESRCH: i32 = 3;
    if error.raw_os_error() == Some(ESRCH) {
        return ProcessError::Ended { pid };
    }
    if error.kind() == io::ErrorKind::PermissionDenied {
        return ProcessError::NoRights {
            pid,
            comm: comm.to_owned(),
            what,
            missing: missing_right(),
        };
    }
    ProcessError::Io { path: format!("/proc/{pid}, {what}"), error }
}

/// Names the missing right when the kernel denies access to a process.
fn missing_right() -> String {
    let status = ProcessStatus::read("/proc/self/status").ok();
    match status.and_then(|status| status.bits("CapEff")) {
        Some(set) if set & (1 << CAP_SYS_PTRACE) != 0 => {
            "CAP_SYS_PTRACE is there, so a user namespace or a security module forbids it; run \
             ctrace as root outside the container"
                .to_owned()
        }
        _ => "CAP_SYS_PTRACE is missing; run ctrace with sudo".to_owned(),
    }
}

#[cfg(test)]
mod tests;
