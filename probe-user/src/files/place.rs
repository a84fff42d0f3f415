//! A name in an open folder. Opening, renaming and removing stay in that folder, whatever becomes
//! of its path.

use super::{
    FileError, Owner,
    owner::{Ids, PRIVATE, PUBLIC},
    temporary::Temporary,
    trust,
    walk::{Follow, Reached, is_link, is_proc, walk},
};
use rustix::{
    fs::{
        AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat, fchown, flock, fstat,
        linkat, openat, renameat_with, statat, unlinkat,
    },
    io::Errno,
};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
};

/// Limit of retries, because somebody may remove or make a file again and again.
const TRIES: u32 = 100;

/// The identity of a file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        Ok(Self::from(&fstat(file)?))
    }
}

impl From<&Stat> for FileId {
    fn from(stat: &Stat) -> Self {
        Self { device: stat.st_dev, inode: stat.st_ino }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Place {
    folder: Arc<OwnedFd>,
    name: OsString,
    /// For messages only.
    path: PathBuf,
    /// The owner of new files.
    owner: Ids,
    is_strict: bool,
    /// True if only regular files are written in places where others could have put the file. It is
    /// false if a user named the file and waits for it.
    takes_files_only: bool,
}

impl Place {
    /// Finds the place that `path` leads to. New files there will be `owner`'s.
    pub(crate) fn find(path: &Path, owner: Owner) -> Result<Self, FileError> {
        let follow = Follow::by_rights();
        let Reached { folder, name, .. } = walk(path, follow, None)?;
        let (takes_files_only, is_strict) = (owner == Owner::Ours, follow == Follow::Ours);
        let (folder, owner, path) = (Arc::new(folder), owner.ids()?, path.to_owned());
        Ok(Self { folder, name, path, owner, is_strict, takes_files_only })
    }

    /// Returns the links that root's daemon would follow for `path`, with their targets, or why it
    /// would not write there. Does nothing else.
    pub(crate) fn judge(path: &Path) -> Result<Vec<(PathBuf, PathBuf)>, FileError> {
        let Reached { folder, name, links } = walk(path, Follow::Ours, None)?;
        let path = path.to_owned();
        let (folder, owner) = (Arc::new(folder), None);
        let (is_strict, takes_files_only) = (true, true);
        let place = Self { folder, name, path, owner, is_strict, takes_files_only };
        if let Some(entry) = place.stat().filter(|_| !place.is_proc()) {
            place.check(&entry)?;
        }
        Ok(links)
    }

    /// Returns another name in the same folder.
    pub(crate) fn sibling(&self, name: &OsStr) -> Self {
        Self { name: name.to_owned(), path: self.path.with_file_name(name), ..self.clone() }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn name(&self) -> &OsStr {
        &self.name
    }

    /// Opens the existing file, or makes one.
    pub(crate) fn open(&self, access: OFlags) -> Result<File, FileError> {
        self.open_with(access, PRIVATE)
    }

    /// Like [`Self::open`], but a new file is readable by everybody.
    pub(crate) fn open_public(&self) -> Result<File, FileError> {
        self.open_with(OFlags::WRONLY, PUBLIC)
    }

    fn open_with(&self, access: OFlags, mode: u32) -> Result<File, FileError> {
        for _ in 0..TRIES {
            match self.create(access, mode) {
                Err(FileError::Io { error, .. })
                    if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created,
            }
            match self.open_existing(access) {
                Err(FileError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
                opened => return opened,
            }
        }
        Err(FileError::Replaced { path: self.path.clone() })
    }

    /// Like [`Self::open`], and holds the file's lock as long as it is open.
    pub(crate) fn open_locked(&self, access: OFlags) -> Result<File, FileError> {
        for _ in 0..TRIES {
            let file = self.open(access)?;
            self.lock(&file)?;
            if self.is_still(&file) || self.is_proc() {
                return Ok(file);
            }
        }
        Err(FileError::Replaced { path: self.path.clone() })
    }

    /// Opens the file to read, without following a link and without waiting.
    pub(crate) fn open_to_read(&self) -> Result<File, FileError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = openat(&*self.folder, &self.name, flags, Mode::empty());
        opened.map(File::from).map_err(|error| self.io(error))
    }

    /// Makes a file that does not exist yet.
    pub(crate) fn create_new(&self, access: OFlags) -> Result<File, FileError> {
        self.create(access, PRIVATE)
    }

    fn create(&self, access: OFlags, mode: u32) -> Result<File, FileError> {
        let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        let file = openat(&*self.folder, &self.name, access | new, mode);
        let file = File::from(file.map_err(|error| self.io(error))?);
        if let Some((uid, gid)) = self.owner {
            // By descriptor: the name may by now be another file's.
            fchown(&file, Some(uid), Some(gid)).map_err(|error| self.io(error))?;
        }
        Ok(file)
    }

    fn open_existing(&self, access: OFlags) -> Result<File, FileError> {
        let io = |error| self.io(error);
        if self.is_proc() {
            // A link such as /proc/self/fd/1, where /dev/stdout leads.
            let opened = openat(&*self.folder, &self.name, access | OFlags::CLOEXEC, Mode::empty());
            return opened.map(File::from).map_err(io);
        }
        // Opening by O_PATH has no effect on a file whose kind is not known yet.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let seen = openat(&*self.folder, &self.name, flags, Mode::empty()).map_err(io)?;
        self.check(&fstat(&seen).map_err(io)?)?;
        let same = format!("/proc/self/fd/{}", seen.as_raw_fd());
        let opened = openat(rustix::fs::CWD, same, access | OFlags::CLOEXEC, Mode::empty());
        opened.map(File::from).map_err(io)
    }

    /// Checks whether to write to an entry that somebody may have put there.
    fn check(&self, entry: &Stat) -> Result<(), FileError> {
        let path = || self.path.clone();
        if is_link(entry) {
            return Err(FileError::Link { path: path(), link: path() });
        }
        let folder = fstat(&*self.folder).map_err(|error| self.io(error))?;
        if !self.is_strict || !trust::others_write(&folder) {
            return Ok(());
        }
        let is_file = FileType::from_raw_mode(entry.st_mode) == FileType::RegularFile;
        if !is_file && self.takes_files_only {
            return Err(FileError::NoFile { path: path() });
        }
        if is_file && entry.st_nlink > 1 {
            return Err(FileError::HardLink { path: path() });
        }
        let is_callers = self.owner.is_some_and(|(uid, _)| uid.as_raw() == entry.st_uid);
        if !trust::is_ours(entry) && !is_callers && entry.st_uid != folder.st_uid {
            return Err(FileError::Foreign { path: path() });
        }
        Ok(())
    }

    /// Takes the lock, or fails at once if it is taken. Succeeds where there are no locks.
    pub(super) fn lock(&self, file: &File) -> Result<(), FileError> {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Err(FileError::Locked { path: self.path.clone() }),
            _ => Ok(()),
        }
    }

    /// Removes the file if it still has its name and nobody holds its lock to write it. Without
    /// support for locks, the file stays.
    pub(crate) fn remove_unless_written(&self, file: &File) -> io::Result<()> {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if self.is_still(file) => self.remove(),
            _ => Ok(()),
        }
    }

    /// Removes the file if it still has its name and nothing is in it.
    pub(crate) fn remove_if_empty(&self, file: &File) {
        let is_empty = file.metadata().is_ok_and(|file| file.is_file() && file.len() == 0);
        if is_empty && self.is_still(file) {
            // What remains is an empty file.
            _ = self.remove();
        }
    }

    /// Returns whether the name is still this file's.
    pub(crate) fn is_still(&self, file: &File) -> bool {
        FileId::of(file).is_ok_and(|id| self.id() == Some(id))
    }

    /// Returns the identity of the file that has the name.
    pub(crate) fn id(&self) -> Option<FileId> {
        self.stat().as_ref().map(FileId::from)
    }

    fn stat(&self) -> Option<Stat> {
        statat(&*self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Returns the size of the file with this name, if nobody else can have put it there.
    pub(crate) fn size_of_ours(&self) -> Option<u64> {
        let entry = self.stat()?;
        let folder = fstat(&*self.folder).ok()?;
        let is_file = FileType::from_raw_mode(entry.st_mode) == FileType::RegularFile;
        let is_ours =
            !trust::others_write(&folder) || trust::is_ours(&entry) && entry.st_nlink == 1;
        (is_file && is_ours).then_some(entry.st_size as u64)
    }

    /// Gives the file another unused name in its folder.
    pub(crate) fn rename(&self, to: &Self) -> Result<(), FileError> {
        self.rename_with(to, RenameFlags::NOREPLACE)
    }

    /// Like [`Self::rename`], but replaces a file of that name.
    pub(super) fn replace(&self, other: &Self) -> Result<(), FileError> {
        self.rename_with(other, RenameFlags::empty())
    }

    fn rename_with(&self, to: &Self, flags: RenameFlags) -> Result<(), FileError> {
        let (from, into) = (&*self.folder, &*to.folder);
        let renamed = match renameat_with(from, &self.name, into, &to.name, flags) {
            // NFS cannot check for an existing file. A second link cannot replace one.
            Err(Errno::INVAL) => linkat(from, &self.name, into, &to.name, AtFlags::empty())
                .and_then(|()| unlinkat(from, &self.name, AtFlags::empty())),
            renamed => renamed,
        };
        renamed.map_err(|error| to.io(error))
    }

    /// Removes the name. A missing one is no error.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match unlinkat(&*self.folder, &self.name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// Lists all names in the folder.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = openat(&*self.folder, ".", flags, Mode::empty())?;
        let entries = rustix::fs::Dir::new(folder)?;
        let names = entries.map(|entry| {
            let name = entry?.file_name().to_bytes().to_vec();
            Ok(std::os::unix::ffi::OsStringExt::from_vec(name))
        });
        names.collect()
    }

    /// Creates a file in the same folder that will replace this one.
    pub(crate) fn temporary(&self, access: OFlags) -> Result<Temporary, FileError> {
        Temporary::create(self, access)
    }

    fn is_proc(&self) -> bool {
        is_proc(&self.folder).unwrap_or(false)
    }

    pub(super) fn io(&self, error: Errno) -> FileError {
        FileError::Io { path: self.path.clone(), error: error.into() }
    }
}
