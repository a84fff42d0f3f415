//! Opens files that strangers may have put there.
//!
//! A [`Root`] is what a process calls `/`: no symbolic link below it leads out of it. Only regular
//! files are opened. A path is resolved without opening its target, because opening a FIFO waits
//! for a writer and opening a device may start it.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat, openat2, readlinkat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// The directory that some process calls `/`.
pub(crate) struct Root {
    directory: OwnedFd,
    /// Our own root. Nothing leads out of it, so /proc/PID/exe and its like may be followed.
    is_ours: bool,
}

impl Root {
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(path, flags, Mode::empty())?;
        Ok(Self { directory, is_ours: false })
    }

    pub(crate) fn ours() -> io::Result<Self> {
        Ok(Self { is_ours: true, ..Self::at(Path::new("/"))? })
    }

    /// Opens a regular file to read, without blocking. Returns `None` for anything else.
    pub(crate) fn open(&self, path: &Path) -> io::Result<Option<File>> {
        let found = self.find(path)?;
        if file_type(&found)? != FileType::RegularFile {
            return Ok(None);
        }
        // By descriptor: the path could by now lead elsewhere. Nonblocking: a file's owner can hold
        // a lease on it.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = open(format!("/proc/self/fd/{}", found.as_raw_fd()), flags, Mode::empty())?;
        Ok(Some(file.into()))
    }

    pub(crate) fn has_directory(&self, path: &Path) -> bool {
        let kind = self.find(path).and_then(|found| file_type(&found));
        kind.is_ok_and(|kind| kind == FileType::Directory)
    }

    /// Resolves a path without opening its target.
    fn find(&self, path: &Path) -> io::Result<OwnedFd> {
        // The kernel fails a `..` during any rename or mount.
        const TRIES: usize = 16;
        if self.is_ours {
            return Ok(openat(&self.directory, path, UNOPENED, Mode::empty())?);
        }
        let find =
            || openat2(&self.directory, path, UNOPENED, Mode::empty(), ResolveFlags::IN_ROOT);
        let found = (0..TRIES).map(|_| find()).find(|found| !matches!(found, Err(Errno::AGAIN)));
        match found.unwrap_or(Err(Errno::AGAIN)) {
            // systemd refuses openat2 to services that may not make set-user-ID files, since its
            // filters cannot look into its argument.
            Err(Errno::NOSYS | Errno::PERM) => self.walk(path),
            found => Ok(found?),
        }
    }

    /// Resolves a path step by step.
    fn walk(&self, path: &Path) -> io::Result<OwnedFd> {
        // The kernel's limit.
        const MOST_LINKS: usize = 40;
        let mut steps = steps(path);
        // The directories from the root down to here. The parent of the root is the root.
        let mut above: Vec<OwnedFd> = Vec::new();
        let mut links = 0;
        while let Some(step) = steps.pop() {
            let here = above.last().unwrap_or(&self.directory);
            match step.to_str() {
                Some("/") => above.clear(),
                Some("..") => _ = above.pop(),
                _ => {
                    let flags = UNOPENED | OFlags::NOFOLLOW;
                    let next = openat(here, &step, flags, Mode::empty())?;
                    if file_type(&next)? != FileType::Symlink {
                        above.push(next);
                        continue;
                    }
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(Errno::LOOP.into());
                    }
                    let leads_to = readlinkat(&next, "", Vec::new())?.into_bytes();
                    steps.extend(self::steps(&PathBuf::from(OsString::from_vec(leads_to))));
                }
            }
        }
        above.pop().map_or_else(|| self.directory.try_clone(), Ok)
    }
}

const UNOPENED: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Returns the parts of a path, the last one first.
fn steps(path: &Path) -> Vec<OsString> {
    let parts = path.components().filter(|part| *part != Component::CurDir);
    parts.rev().map(|part| OsStr::to_owned(part.as_os_str())).collect()
}

fn file_type(file: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(fstat(file)?.st_mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_do_not_lead_out() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("etc")).unwrap();
        std::fs::write(dir.path().join("etc/hostname"), "of the container").unwrap();
        let root = Root::at(dir.path()).unwrap();
        let read = |path: &str| -> io::Result<String> {
            let mut text = String::new();
            root.open(Path::new(path))?.expect("a file").read_to_string(&mut text)?;
            Ok(text)
        };
        symlink("/etc/hostname", dir.path().join("absolute")).unwrap();
        symlink("../../../../../../etc/hostname", dir.path().join("up")).unwrap();
        symlink("/etc/passwd", dir.path().join("host")).unwrap();
        for path in ["/etc/hostname", "etc/hostname", "/absolute", "/up", "/../../etc/hostname"] {
            assert_eq!(read(path).unwrap(), "of the container", "{path}");
            // The second way is for hosts that refuse openat2.
            let found = [root.find(Path::new(path)), root.walk(Path::new(path))];
            let [asked, walked] = found.map(|found| fstat(found.unwrap()).unwrap().st_ino);
            assert_eq!(asked, walked, "{path}");
        }
        symlink("loop", dir.path().join("loop")).unwrap();
        for (path, error) in
            [("/host", Errno::NOENT), ("/loop", Errno::LOOP), ("/up/x", Errno::NOTDIR)]
        {
            let found = root.walk(Path::new(path)).unwrap_err();
            assert_eq!(found.raw_os_error(), Some(error.raw_os_error()), "{path}");
        }
        assert_eq!(read("/host").unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(root.has_directory(Path::new("/etc")));
        assert!(!root.has_directory(Path::new("/usr")));
        assert!(!root.has_directory(Path::new("/etc/hostname")));
    }

    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        symlink("fifo", dir.path().join("link")).unwrap();
        let root = Root::at(dir.path()).unwrap();
        for path in ["/fifo", "/link", "/"] {
            assert!(root.open(Path::new(path)).unwrap().is_none(), "{path}");
        }
        assert!(Root::ours().unwrap().open(Path::new("/dev/null")).unwrap().is_none());
    }
}
