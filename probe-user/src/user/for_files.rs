//! Lets a thread access files with a user's rights while it remains root's in all else.
//!
//! The real, effective and saved ids decide who may send a thread signals or set its limits, and
//! that affects its process. So only the ids for file access change.

use super::{UserError, rights::Rights};
use nix::unistd::{self, setfsgid, setfsuid};
use rustix::{
    process::getgroups,
    thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_thread_groups},
};
use std::{collections::BTreeSet, io};

impl Rights {
    /// Gives the calling thread only these rights to files. Groups come first, while they may be
    /// set; the user comes last.
    pub(super) fn take_on_for_files(&self) -> Result<(), UserError> {
        let failed = |step| move |error: io::Error| self.failed(step, error);
        set_thread_groups(&self.groups).map_err(io::Error::from).map_err(failed("its groups"))?;
        // Both calls return the previous id and no error.
        setfsgid(unistd::Gid::from_raw(self.gid.as_raw()));
        setfsuid(unistd::Uid::from_raw(self.uid.as_raw()));
        // The kernel drops the capabilities for files, except with some secure bits.
        override_nothing().map_err(failed("no capabilities"))?;
        self.check_for_files()
    }

    /// Checks that file access uses these rights alone.
    fn check_for_files(&self) -> Result<(), UserError> {
        let sets = capabilities(None).map_err(|error| self.failed("a look", error.into()))?;
        let groups = getgroups().map_err(|error| self.failed("a look", error.into()))?;
        let set = |groups: &[rustix::process::Gid]| {
            groups.iter().map(|gid| gid.as_raw()).collect::<BTreeSet<_>>()
        };
        // An invalid id changes nothing.
        let uid = setfsuid(unistd::Uid::from_raw(u32::MAX)).as_raw();
        let gid = setfsgid(unistd::Gid::from_raw(u32::MAX)).as_raw();
        let is_as_wanted = (uid, gid) == (self.uid.as_raw(), self.gid.as_raw())
            && set(&groups) == set(&self.groups)
            && sets.effective.is_empty();
        if is_as_wanted { Ok(()) } else { Err(UserError::Unlike { rights: self.clone() }) }
    }
}

fn override_nothing() -> io::Result<()> {
    let sets = capabilities(None)?;
    Ok(set_capabilities(None, CapabilitySets { effective: CapabilitySet::empty(), ..sets })?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, os::unix::fs::PermissionsExt as _};

    fn ids(key: &str) -> Vec<String> {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap().to_owned();
        line.split_whitespace().map(str::to_owned).collect()
    }

    /// Rights belong to a thread, so this can be tested here.
    #[test]
    fn files_are_the_users_and_the_thread_is_roots() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let closed = folder.path().join("closed");
        let open = folder.path().join("open");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for (path, mode) in [(&closed, 0o700), (&open, 0o755)] {
            fs::write(path, "x").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let may = |path| {
            use rustix::fs::{Access, AtFlags, CWD, accessat};
            let executes = accessat(CWD, path, Access::EXEC_OK, AtFlags::EACCESS).is_ok();
            (fs::read(path).is_ok(), executes)
        };
        let rights: Rights = "3999999:3999998:3999997".parse().unwrap();
        let look = || {
            rights.take_on_for_files().unwrap();
            (ids("Uid:"), ids("Gid:"), ids("Groups:"), may(&closed), may(&open))
        };
        let (uid, gid, groups, of_closed, of_open) =
            std::thread::scope(|scope| scope.spawn(look).join().unwrap());
        assert_eq!(uid, ["0", "0", "0", "3999999"], "real, effective, saved, of files");
        assert_eq!(gid[3], "3999998");
        assert_eq!(gid[..3], ids("Gid:")[..3]);
        assert_eq!(groups, ["3999997"]);
        assert_eq!(of_closed, (false, false));
        assert_eq!(of_open, (true, true));
        assert_eq!(may(&closed), (true, true), "other threads are still root's");
    }
}
