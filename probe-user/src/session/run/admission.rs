//! The facts that a later process has in common with those that are traced, so that the kernel alone can
//! tell that it is one of those that the user chose.

use crate::target::process::{
    facts::{self, user_of},
    lookup::ProcessName,
    set::ProcessSet,
};
use ctrace_common::{Admission, BY_CGROUP, BY_PROGRAM, BY_USER};
use ctrace_core::units::Pid;
use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

/// The directories where control groups of version 2 are mounted.
const MOUNTED: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// Returns what decides whether a process is meant: bits of [`BY_PROGRAM`] and its neighbours. 0 if
/// something else does.
pub(crate) fn by(names: &[ProcessName]) -> u32 {
    let each = names.iter().map(of_name).collect::<Option<Vec<u32>>>();
    each.unwrap_or_default().into_iter().fold(0, |all, one| all | one)
}

fn of_name(name: &ProcessName) -> Option<u32> {
    match name {
        // A script has a name of its own and the program of its interpreter.
        ProcessName::Pid(_) | ProcessName::Name(_) => None,
        ProcessName::Unit(_) => Some(BY_CGROUP),
        ProcessName::Exe(_) => Some(BY_PROGRAM),
        ProcessName::All(set) => Some(of_set(set)),
    }
}

fn of_set(set: &ProcessSet) -> u32 {
    match set {
        ProcessSet::Exe(_) => BY_PROGRAM,
        ProcessSet::Cgroup(_) | ProcessSet::Container(_) => BY_CGROUP,
        ProcessSet::User(_) => BY_USER,
        ProcessSet::Both(both) => both.iter().fold(0, |all, one| all | of_set(one)),
    }
}

/// Returns what the kernel knows processes by that are like this one.
pub(crate) fn like(pid: Pid, by: u32) -> Option<Admission> {
    let mut admission = Admission::default();
    if by & BY_PROGRAM != 0 {
        let file = fs::metadata(format!("/proc/{}/exe", pid.0)).ok()?;
        admission.inode = file.ino();
        admission.device = device(file.dev());
    }
    if by & BY_CGROUP != 0 {
        admission.cgroup = group_id(&facts::own_control_group_of(pid)?)?;
    }
    if by & BY_USER != 0 {
        admission.user = user_of(pid)?;
    }
    Some(admission)
}

/// Returns the number of a device as the kernel has it.
fn device(dev: u64) -> u32 {
    rustix::fs::major(dev) << 20 | rustix::fs::minor(dev)
}

/// Returns the id of a control group: the number of its directory.
fn group_id(path: &str) -> Option<u64> {
    let folder = |mount: &&str| {
        let path = Path::new(mount).join(path.trim_start_matches('/'));
        fs::metadata(path).ok().filter(|_| Path::new(mount).join("cgroup.procs").exists())
    };
    MOUNTED.iter().find_map(folder).map(|folder| folder.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_decides_must_be_alike() {
        let exe = || ProcessName::of_program("/opt/*".into()).expect("a glob");
        let name = |text: &str| ProcessName::parse(text).expect("a name");
        let cgroup = ProcessName::All(ProcessSet::of_cgroup("/a.slice").expect("a path"));
        assert_eq!(by(&[exe()]), BY_PROGRAM);
        assert_eq!(by(&[exe(), cgroup, name("x.service")]), BY_PROGRAM | BY_CGROUP);
        assert_eq!(by(&[exe(), name("nginx")]), 0);
        let own = Pid(std::process::id());
        let like_this = like(own, BY_PROGRAM | BY_USER).expect("alive");
        let file = fs::metadata("/proc/self/exe").expect("known");
        assert_eq!((like_this.inode, like_this.cgroup), (file.ino(), 0));
        assert_eq!(Some(like_this.user), user_of(own));
        assert_eq!(device(0x801), 8 << 20 | 1);
    }
}
