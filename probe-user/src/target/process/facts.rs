//! Facts that identify a process: program, name, command line, user, control group, and the unit or
//! container in the group's path.

use super::{proc_path, read_command, read_stat, text};
use crate::process_status::ProcessStatus;
use ctrace_core::units::Pid;
use std::{fs, path::Path};

/// A process, in the terms of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub pid: Pid,
    /// Together with the id, tells this process from a later one.
    pub start_time: u64,
    pub program: ProgramFacts,
    /// Empty until [`Facts::with_command`] reads it.
    pub command: String,
    pub user: u32,
    pub cgroup: String,
}

/// The facts that suffice to rule out most processes. They are cheap to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgramFacts {
    pub exe: String,
    pub name: String,
}

impl ProgramFacts {
    /// Returns `None` for kernel threads and ended processes.
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        let exe = fs::read_link(proc_path(pid.0, "exe")).ok()?;
        let name = fs::read(proc_path(pid.0, "comm")).ok()?;
        let name = text(name.strip_suffix(b"\n").unwrap_or(&name));
        // The kernel marks a deleted file so. Checking whether a file really has this name would
        // wait for its file system.
        let exe = exe.to_string_lossy();
        Some(Self { exe: exe.strip_suffix(" (deleted)").unwrap_or(&exe).to_owned(), name })
    }

    pub(crate) fn file_name(&self) -> &str {
        Path::new(&self.exe).file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }
}

impl Facts {
    /// Reads the facts of a process that runs a program. Returns `None` for kernel threads and
    /// ended processes. All reads are of the kernel's own data, so none can block.
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        let stat = read_stat(pid.0).ok().filter(|stat| !stat.is_kernel_thread())?;
        let program = ProgramFacts::of(pid)?;
        Some(Self {
            pid,
            start_time: stat.start_time,
            program,
            command: String::new(),
            user: user_of(pid)?,
            cgroup: control_group_of(pid),
        })
    }

    /// Also reads the command line from the process's memory, which it can delay by a second.
    pub(crate) fn with_command(pid: Pid) -> Option<Self> {
        let facts = Self::of(pid)?;
        Some(Self { command: read_command(pid.0).join(" "), ..facts })
    }

    /// Returns the innermost unit in the path of the control group.
    pub(crate) fn unit(&self) -> Option<&str> {
        self.cgroup.rsplit('/').find(|part| is_unit(part))
    }

    pub(crate) fn container(&self) -> Option<&str> {
        container_in(&self.cgroup)
    }
}

/// Returns the id or name that a container's runtime put into a control group's path.
pub(crate) fn container_in(cgroup: &str) -> Option<&str> {
    let mut parts = cgroup.split('/').collect::<Vec<_>>();
    let mut outer = "";
    if let Some(at) = parts.iter().position(|part| matches!(*part, "docker" | "lxc" | "libpod")) {
        return parts.get(at + 1).copied();
    }
    parts.reverse();
    for part in parts {
        let bare = part.strip_suffix(".scope").unwrap_or(part);
        let bare = bare.strip_suffix(".service").unwrap_or(bare);
        for prefix in PREFIXES {
            if let Some(id) = bare.strip_prefix(prefix) {
                return Some(id);
            }
        }
        if bare.len() == 64 && bare.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            outer = bare;
        }
    }
    Some(outer).filter(|id| !id.is_empty())
}

/// The identity of a process and its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub pid: Pid,
    pub start_time: u64,
    /// The user who started it, even if its program runs with another user's rights.
    pub user: u32,
}

impl Identity {
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        let start_time = read_stat(pid.0).ok()?.start_time;
        Some(Self { pid, start_time, user: user_as(pid, Which::Real)? })
    }

    /// Returns the identity of a process that has ended: it belongs to nobody.
    pub(crate) fn gone(pid: Pid) -> Self {
        Self { pid, start_time: 0, user: u32::MAX }
    }

    /// Compares processes regardless of their current user.
    pub(crate) fn is_process(&self, other: Self) -> bool {
        (self.pid, self.start_time) == (other.pid, other.start_time)
    }
}

/// Lists the ids of all processes.
pub(crate) fn all() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok().map(Pid))
}

/// Returns a process's start time and name, `None` for kernel threads.
pub(crate) fn birth(pid: Pid) -> Option<(u64, String)> {
    let stat = read_stat(pid.0).ok().filter(|stat| !stat.is_kernel_thread())?;
    Some((stat.start_time, stat.comm))
}

/// Returns the parent of a process.
pub(crate) fn parent(pid: Pid) -> Option<Pid> {
    read_stat(pid.0).ok().map(|stat| Pid(stat.parent))
}

/// Prefixes that runtimes put before the id or name.
const PREFIXES: [&str; 9] = [
    "docker-",
    "cri-containerd-",
    "crio-conmon-",
    "crio-",
    "libpod-conmon-",
    "libpod-",
    "lxc.payload.",
    "machine-",
    "systemd-nspawn@",
];

/// A user id of a process, in the order of /proc/PID/status.
#[derive(Clone, Copy)]
enum Which {
    Real,
    Effective,
}

/// Returns the user with whose rights a process runs.
pub(crate) fn user_of(pid: Pid) -> Option<u32> {
    user_as(pid, Which::Effective)
}

fn user_as(pid: Pid, which: Which) -> Option<u32> {
    ProcessStatus::of(pid.0).ok()?.words("Uid").nth(which as usize)?.parse().ok()
}

/// Returns whether a name is that of a systemd unit that has processes of its own.
pub(crate) fn is_unit(name: &str) -> bool {
    [".service", ".scope", ".socket", ".mount"].iter().any(|end| name.ends_with(end))
}

/// Returns the path of a process's control group; `/` if the process is gone.
pub(crate) fn control_group_of(pid: Pid) -> String {
    known_control_group_of(pid).unwrap_or_else(|| "/".to_owned())
}

/// Returns the path of a process's control group.
pub(crate) fn known_control_group_of(pid: Pid) -> Option<String> {
    Some(control_group(&text(&fs::read(proc_path(pid.0, "cgroup")).ok()?)))
}

/// Returns the path of a process's control group of version 2, if it is in one.
pub(crate) fn own_control_group_of(pid: Pid) -> Option<String> {
    let cgroups = text(&fs::read(proc_path(pid.0, "cgroup")).ok()?);
    version_2(&cgroups).map(str::to_owned)
}

fn version_2(cgroups: &str) -> Option<&str> {
    cgroups.lines().find_map(|line| line.strip_prefix("0::")).filter(|path| *path != "/")
}

/// Returns the path in the only hierarchy, or in systemd's where there are several.
fn control_group(cgroups: &str) -> String {
    let of = |prefix: &str| cgroups.lines().find_map(|line| line.split_once(prefix)).map(|at| at.1);
    version_2(cgroups)
        .or_else(|| of(":name=systemd:"))
        .or_else(|| of(":memory:"))
        .unwrap_or("/")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_group(cgroup: &str) -> Facts {
        Facts { cgroup: cgroup.to_owned(), ..Facts::default() }
    }

    #[test]
    fn units_are_the_innermost() {
        let unit = |path: &str| in_group(path).unit().map(str::to_owned);
        assert_eq!(unit("/system.slice/redis.service"), Some("redis.service".into()));
        assert_eq!(
            unit("/user.slice/user-0.slice/user@0.service/app.slice/x.scope"),
            Some("x.scope".into())
        );
        assert_eq!(unit("/system.slice/nginx.service/worker"), Some("nginx.service".into()));
        assert_eq!(unit("/"), None);
    }

    #[test]
    fn containers_of_the_usual_runtimes_are_known() {
        let id = "4f1c".repeat(16);
        for path in [
            format!("/docker/{id}"),
            format!("/system.slice/docker-{id}.scope"),
            format!("/system.slice/docker-{id}.scope/init.scope"),
            format!("/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"),
            format!("/kubepods/besteffort/pod7/{id}"),
            format!("/machine.slice/libpod-{id}.scope/container"),
        ] {
            assert_eq!(in_group(&path).container(), Some(id.as_str()), "{path}");
        }
        assert_eq!(in_group("/lxc.payload.web/x").container(), Some("web"));
        assert_eq!(in_group("/machine.slice/machine-web.scope").container(), Some("web"));
        assert_eq!(in_group("/system.slice/redis.service").container(), None);
    }

    #[test]
    fn control_groups_of_both_versions_are_read() {
        assert_eq!(control_group("0::/system.slice/x.service\n"), "/system.slice/x.service");
        let old = "3:memory:/docker/x\n1:name=systemd:/docker/y\n0::/\n";
        assert_eq!(control_group(old), "/docker/y");
        assert_eq!(control_group(""), "/");
    }

    #[test]
    fn this_process_is_known() {
        let facts = Facts::of(Pid(std::process::id())).expect("alive");
        let exe = std::env::current_exe().expect("known");
        assert_eq!(
            (facts.program.exe.as_str(), facts.pid.0),
            (exe.to_str().unwrap(), std::process::id())
        );
        assert!(Facts::of(Pid(0)).is_none());
        let command = Facts::with_command(facts.pid).expect("alive").command;
        assert!(command.starts_with(&std::env::args().next().expect("known")), "{command}");
        let identity = Identity::of(facts.pid).expect("alive");
        assert_eq!((identity.start_time, identity.user), (facts.start_time, facts.user));
    }
}
