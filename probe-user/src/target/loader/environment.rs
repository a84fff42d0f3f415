//! Reads what decides about libraries besides files: variables, the current directory, and whether
//! the program gains rights that its caller lacks.

use crate::auxv::has_gained_rights;
use crate::target::process::patience;
use crate::target::process::proc_path;
use ctrace_core::units::Pid;
use rustix::fs::{StatVfsMountFlags, fgetxattr, fstatvfs};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The surroundings in which a program will start.
#[derive(Clone, Debug, Default)]
pub(super) struct Environment {
    /// LD_LIBRARY_PATH and LD_PRELOAD.
    pub(super) library_path: Option<OsString>,
    pub(super) preload: Option<OsString>,
    pub(super) directory: PathBuf,
    /// AT_SECURE: a program with such rights ignores the variables.
    pub(super) secure: bool,
}

impl Environment {
    /// Returns our own environment, which our children inherit. The user decides about rights.
    pub(super) fn ours(exe: &File, (user, group): (u32, u32)) -> Self {
        Self {
            library_path: std::env::var_os("LD_LIBRARY_PATH"),
            preload: std::env::var_os("LD_PRELOAD"),
            directory: std::env::current_dir().unwrap_or_default(),
            secure: gains_rights(exe, user, group),
        }
    }

    /// Reads the environment of a process that has just begun a program, from its memory.
    pub(super) fn of(pid: u32) -> io::Result<Self> {
        // The kernel's limit is six megabytes for arguments and variables together.
        const LONGEST: u64 = 8 << 20;
        let read = |entry: &'static str| {
            let read = patience::within(Pid(pid), move || {
                let mut bytes = Vec::new();
                File::open(proc_path(pid, entry))?.take(LONGEST).read_to_end(&mut bytes)?;
                Ok(bytes)
            });
            read.unwrap_or_else(|given_up| Err(io::Error::new(ErrorKind::TimedOut, given_up)))
        };
        let variables = read("environ")?;
        let variable = |name: &[u8]| {
            let all = variables.split(|byte| *byte == 0);
            // The loader takes the last of equals.
            let value = all.rev().find_map(|text| text.strip_prefix(name)?.strip_prefix(b"="));
            value.map(|value| OsString::from_vec(value.to_owned()))
        };
        Ok(Self {
            library_path: variable(b"LD_LIBRARY_PATH"),
            preload: variable(b"LD_PRELOAD"),
            directory: std::fs::read_link(proc_path(pid, "cwd"))?,
            secure: has_gained_rights(&read("auxv")?) == Some(true),
        })
    }

    /// Returns LD_LIBRARY_PATH, unless it is ignored.
    pub(super) fn library_path(&self) -> Option<&[u8]> {
        self.heeded(&self.library_path)
    }

    /// Returns LD_PRELOAD, unless it is ignored.
    pub(super) fn preload(&self) -> Option<&[u8]> {
        self.heeded(&self.preload)
    }

    fn heeded<'a>(&self, value: &'a Option<OsString>) -> Option<&'a [u8]> {
        let value = value.as_ref().map(|value| value.as_bytes());
        value.filter(|value| !value.is_empty() && !self.secure)
    }
}

/// Returns whether a program gains rights that its caller lacks: another user, another group, or
/// capabilities. A file system mounted `nosuid` gives none.
fn gains_rights(exe: &File, user: u32, group: u32) -> bool {
    const SETUID: u32 = 0o4000;
    // Without group execution, the bit means something else.
    const SETGID: u32 = 0o2010;
    let Ok(meta) = exe.metadata() else { return false };
    let nosuid = |it: rustix::fs::StatVfs| it.f_flag.contains(StatVfsMountFlags::NOSUID);
    if fstatvfs(exe).is_ok_and(nosuid) {
        return false;
    }
    let capabilities = || fgetxattr(exe, c"security.capability", &mut [0u8; 64][..]).is_ok();
    meta.mode() & SETUID == SETUID && meta.uid() != user
        || meta.mode() & SETGID == SETGID && meta.gid() != group
        || user != 0 && capabilities()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn programs_with_rights_do_not_heed_variables() {
        let list = Some(OsString::from("/x"));
        let plain =
            Environment { library_path: list.clone(), preload: list, ..Environment::default() };
        assert_eq!((plain.library_path(), plain.preload()), (Some(&b"/x"[..]), Some(&b"/x"[..])));
        let secure = Environment { secure: true, ..plain };
        assert_eq!((secure.library_path(), secure.preload()), (None, None));
    }

    #[test]
    fn of_a_process() {
        let mut sleep = std::process::Command::new("/bin/sleep");
        sleep.arg("1000").env_clear().env("LD_LIBRARY_PATH", "/x:y").env("MY_LD_PRELOAD", "/no");
        let mut child = sleep.current_dir("/usr").spawn().unwrap();
        // Until its exec the child has our own environment.
        let look = || Environment::of(child.id()).unwrap();
        while look().library_path() != Some(b"/x:y") {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let found = look();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((found.preload(), found.secure), (None, false));
        assert_eq!(found.directory, std::path::Path::new("/usr"));
    }

    #[test]
    fn rights_are_of_another_user_or_group() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        let (user, group) =
            (file.as_file().metadata().unwrap().uid(), file.as_file().metadata().unwrap().gid());
        let gains = |mode: u32, user: u32, group: u32| {
            file.as_file().set_permissions(std::fs::Permissions::from_mode(mode)).unwrap();
            gains_rights(file.as_file(), user, group)
        };
        let nosuid = fstatvfs(file.as_file()).unwrap().f_flag.contains(StatVfsMountFlags::NOSUID);
        assert!(!gains(0o755, user + 1, group + 1));
        assert!(!gains(0o6755, user, group));
        assert_eq!(gains(0o4755, user + 1, group), !nosuid);
        assert_eq!(gains(0o2755, user, group + 1), !nosuid);
        assert!(!gains(0o2745, user, group + 1));
    }
}
