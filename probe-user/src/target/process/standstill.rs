//! Tells why a process does not run at all: somebody stopped it, or froze its control group. A
//! trace of it shows no calls, and its user should know why.

use super::{Process, proc_path, read_stat, text};
use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

/// The reason why a process does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standstill {
    /// SIGSTOP, or Ctrl-Z.
    Stopped,
    /// A debugger holds it.
    Held,
    /// Its control group is frozen; this is the group's folder.
    Frozen(PathBuf),
}

impl fmt::Display for Standstill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => {
                f.write_str("is stopped and makes no calls until SIGCONT continues it")
            }
            Self::Held => {
                f.write_str("is held by a debugger and makes no calls until that lets it go on")
            }
            Self::Frozen(group) => write!(
                f,
                "is frozen and makes no calls until its control group ({}) is thawed",
                group.display()
            ),
        }
    }
}

impl Process {
    /// Returns why it does not run at this moment.
    pub(crate) fn standstill(&self) -> Option<Standstill> {
        // The freezer of cgroups v1 does not change the state, so it is checked first.
        let groups = fs::read(proc_path(self.pid(), "cgroup")).unwrap_or_default();
        let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
        if let Some(group) = frozen(&text(&groups), &text(&mounts)) {
            return Some(Standstill::Frozen(group));
        }
        match read_stat(self.pid()).ok()?.state {
            b'T' => Some(Standstill::Stopped),
            b't' => Some(Standstill::Held),
            _ => None,
        }
    }
}

/// Returns the frozen group among those in /proc/PID/cgroup, where they are mounted.
fn frozen(groups: &str, mounts: &str) -> Option<PathBuf> {
    groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, group) = rest.split_once(':')?;
        let group = group.trim_start_matches('/');
        let (mount, state) = if controllers.is_empty() {
            (mounted(mounts, "cgroup2", "")?, "cgroup.events")
        } else if controllers.split(',').any(|name| name == "freezer") {
            (mounted(mounts, "cgroup", "freezer")?, "freezer.state")
        } else {
            return None;
        };
        let folder = if group.is_empty() { mount.to_owned() } else { mount.join(group) };
        let state = fs::read_to_string(folder.join(state)).ok()?;
        let is_frozen =
            state.lines().any(|line| matches!(line, "frozen 1" | "FROZEN" | "FREEZING"));
        is_frozen.then_some(folder)
    })
}

/// Returns the mount point of a hierarchy of this type, with this option if there is one.
fn mounted<'a>(mounts: &'a str, wanted: &str, option: &str) -> Option<&'a Path> {
    mounts.lines().find_map(|line| {
        let (mount, fs) = line.split_once(" - ")?;
        let mut fs = fs.split(' ');
        let is_wanted = fs.next()? == wanted
            && (option.is_empty() || fs.nth(1)?.split(',').any(|one| one == option));
        is_wanted.then(|| mount.split(' ').nth(4).map(Path::new))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "30 29 0:26 / DIR/cpu rw shared:1 - cgroup cgroup rw,cpu\n\
                          31 29 0:27 / DIR/freezer rw,nosuid - cgroup cgroup rw,freezer\n\
                          32 29 0:28 / DIR/unified rw - cgroup2 cgroup2 rw\n";
    const GROUPS: &str = "6:freezer:/a\n1:cpu,cpuacct:/b\n0::/c.slice/d:e.scope\n";

    /// Returns the message for these contents of the two hierarchies.
    fn told(v1: &str, v2: &str) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        let write = |folder: &str, file: &str, content: &str| {
            let folder = dir.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(file), content).unwrap();
        };
        write("freezer/a", "freezer.state", v1);
        write("unified/c.slice/d:e.scope", "cgroup.events", v2);
        let mounts = MOUNTS.replace("DIR", dir.path().to_str().unwrap());
        let group = frozen(GROUPS, &mounts)?;
        Some(group.strip_prefix(dir.path()).unwrap().display().to_string())
    }

    #[test]
    fn both_freezers_are_asked() {
        assert_eq!(told("THAWED\n", "populated 1\nfrozen 0\n"), None);
        assert_eq!(told("FROZEN\n", "frozen 0\n").unwrap(), "freezer/a");
        let second = told("THAWED\n", "populated 1\nfrozen 1\n").unwrap();
        assert_eq!(second, "unified/c.slice/d:e.scope");
        assert_eq!(frozen(GROUPS, ""), None);
    }

    #[test]
    fn a_running_process_runs() {
        assert_eq!(Process::open(std::process::id()).unwrap().standstill(), None);
    }
}
