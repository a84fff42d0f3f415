//! The folder of files that wait.
//!
//! It is walked by descriptors, folder by folder and without following links: this program is root's,
//! and others may write where an operator lets them. Only files of this user or of root are sent, and
//! none that has another name as well.

use rustix::{
    fs::{
        Access, AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, accessat, fstat, openat, statat,
        unlinkat,
    },
    io::Errno,
    process::geteuid,
};
use std::{
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    time::{SystemTime, UNIX_EPOCH},
};

/// The limit of files that one look finds.
pub(crate) const MOST: usize = 10_000;
/// An empty folder of this age is removed, in seconds: the daemon writes nothing more into it.
const OLD: i64 = 2 * 86_400;
/// The folders of a file, by their names' beginnings. The first is that of a table.
const KEYS: [&str; 4] = ["", "host=", "day=", "unit="];

/// See the module.
pub(crate) struct Spool {
    pub(crate) root: PathBuf,
    /// The machine whose files are sent, as its folder has it; none: of all.
    pub(crate) host: Option<String>,
}

/// A file that waits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Spooled {
    /// The names of its folders, and its own.
    names: [String; 5],
    pub(crate) size: u64,
}

/// A file that is open, in its folder.
pub(crate) struct Opened {
    folder: OwnedFd,
    name: String,
    pub(crate) file: File,
    pub(crate) size: u64,
    /// Its device and number.
    pub(crate) id: (u64, u64),
}

impl Spooled {
    /// Returns its path below the folder.
    pub(crate) fn path(&self) -> String {
        self.names.join("/")
    }

    pub(crate) fn day(&self) -> &str {
        &self.names[2]
    }

    pub(crate) fn name(&self) -> &str {
        &self.names[4]
    }
}

impl Spool {
    /// Returns the files that wait.
    pub(crate) fn look(&self) -> io::Result<Vec<Spooled>> {
        let mut found = Vec::new();
        if let Some(root) = self.open()? {
            self.gather(&root, &mut Vec::new(), &mut found)?;
        }
        Ok(found)
    }

    /// Returns `None` if there is no such folder yet.
    fn open(&self) -> io::Result<Option<OwnedFd>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(CWD, &self.root, flags, Mode::empty()) {
            Err(Errno::NOENT) => Ok(None),
            opened => Ok(Some(opened?)),
        }
    }

    fn gather(
        &self,
        folder: &OwnedFd,
        above: &mut Vec<String>,
        found: &mut Vec<Spooled>,
    ) -> io::Result<()> {
        let depth = above.len();
        for name in names(folder)? {
            if found.len() >= MOST {
                return Ok(());
            }
            if depth == KEYS.len() {
                if let Some(stat) = stat_of_whole(folder, &name) {
                    let names = [&above[..], &[name]].concat();
                    let Ok(names) = names.try_into() else { continue };
                    found.push(Spooled { names, size: stat.st_size as u64 });
                }
            } else if self.is_wanted(depth, &name)
                && let Ok(inner) = below(folder, &name)
            {
                above.push(name.clone());
                self.gather(&inner, above, found)?;
                above.pop();
                if depth >= 2 && is_old(&inner) {
                    // Succeeds for an empty folder only.
                    let _ = unlinkat(folder, &name, AtFlags::REMOVEDIR);
                }
            }
        }
        Ok(())
    }

    fn is_wanted(&self, depth: usize, name: &str) -> bool {
        let Some(value) = name.strip_prefix(KEYS[depth]) else { return false };
        match depth {
            0 => value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
            1 => self.host.as_ref().is_none_or(|host| host == value),
            _ => true,
        }
    }

    /// Opens a file, unless it is gone or another one by now.
    pub(crate) fn file(&self, spooled: &Spooled) -> io::Result<Option<Opened>> {
        let Some(mut folder) = self.open()? else { return Ok(None) };
        let (name, folders) = (spooled.name().to_owned(), &spooled.names[..KEYS.len()]);
        for name in folders {
            match below(&folder, name) {
                Err(Errno::NOENT) => return Ok(None),
                inner => folder = inner?,
            }
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&folder, &name, flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            file => File::from(file?),
        };
        let stat = fstat(&file)?;
        if !is_sent(&stat) {
            return Ok(None);
        }
        let id = (stat.st_dev, stat.st_ino);
        Ok(Some(Opened { folder, name, file, size: stat.st_size as u64, id }))
    }
}

impl Opened {
    /// Makes sure that the file could be removed, as far as one can know without doing it.
    pub(crate) fn can_be_removed(&self) -> io::Result<()> {
        Ok(accessat(&self.folder, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty())?)
    }

    /// Removes the file, if its name is still its own.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(there) if (there.st_dev, there.st_ino) == self.id => {
                Ok(unlinkat(&self.folder, &self.name, AtFlags::empty())?)
            }
            Ok(_) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn below(folder: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty())
}

/// Returns all names in a folder but those that are no UTF-8, in their order.
fn names(folder: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if let Ok(name) = entry.file_name().to_str()
            && !matches!(name, "." | "..")
        {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Returns the facts of a file, if its name is that of a whole one. Those that are being written end
/// in `.part`.
fn stat_of_whole(folder: &OwnedFd, name: &str) -> Option<Stat> {
    let is_whole = name.starts_with("part-") && name.ends_with(".parquet");
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok().filter(|_| is_whole)?;
    is_sent(&stat).then_some(stat)
}

fn is_sent(stat: &Stat) -> bool {
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_file && stat.st_nlink == 1 && [0, geteuid().as_raw()].contains(&stat.st_uid)
}

fn is_old(folder: &OwnedFd) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let changed = fstat(folder).map(|stat| stat.st_mtime);
    changed.is_ok_and(|changed| now as i64 - changed >= OLD)
}
