//! A socket for clients. Others who can replace it could answer for the daemon, so its folder is
//! checked. Only the daemon's own socket is replaced or removed.

use super::{
    FileError, Owner, Place, trust,
    walk::{Follow, Reached, walk},
};
use rustix::{
    fs::{
        AtFlags, FileType, Gid, Mode, OFlags, Stat, Uid, chmod, chownat, fchmod, fstat, openat,
        statat, unlinkat,
    },
    io::Errno,
    net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with,
    },
    process::geteuid,
};
use std::{
    ffi::OsString,
    fs::File,
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::net::UnixListener,
    },
    path::{Path, PathBuf},
};

/// Limit of connections not accepted yet.
const BACKLOG: i32 = 128;
/// Nobody else connects before owner and group are set.
const OURS_ALONE: Mode = Mode::from_raw_mode(0o600);
const OURS_AND_THE_GROUPS: Mode = Mode::from_raw_mode(0o660);

/// The file of a socket, which is removed on drop.
pub(crate) struct SocketFile {
    folder: OwnedFd,
    name: OsString,
    path: PathBuf,
    /// Device and inode.
    id: (u64, u64),
}

impl SocketFile {
    /// Listens at `path` for root and the members of `group`. Makes the folder if it is missing,
    /// and removes a socket that was left behind.
    pub(crate) fn listen(
        path: &Path,
        group: Option<u32>,
    ) -> Result<(UnixListener, Self), FileError> {
        let failed =
            |error: Errno| FileError::Socket { path: path.to_owned(), error: error.into() };
        let Reached { folder, name, .. } =
            walk(path, Follow::by_rights(), Some(Mode::from_raw_mode(0o755)))?;
        let holder = fstat(&folder).map_err(failed)?;
        if Follow::by_rights() == Follow::Ours && trust::others_remove(&holder) {
            return Err(FileError::SharedFolder { path: path.to_owned() });
        }
        // While another daemon starts or ends, its socket looks stale.
        let starting = Starting::alone(path)?;
        let mut file = Self { folder, name, path: path.to_owned(), id: (0, 0) };
        file.remove_stale()?;
        let socket = stream_socket(SocketFlags::empty()).map_err(failed)?;
        // The file gets this mode, less the umask.
        fchmod(&socket, OURS_ALONE).map_err(failed)?;
        bind(&socket, &file.address().map_err(failed)?).map_err(failed)?;
        file.id = id(&file.entry().map_err(failed)?);
        file.admit(group)?;
        listen(&socket, BACKLOG).map_err(failed)?;
        drop(starting);
        Ok((UnixListener::from(socket), file))
    }

    /// Changes the group that may connect. The mode keeps all others out.
    pub(crate) fn admit(&self, group: Option<u32>) -> Result<(), FileError> {
        let failed = |error: Errno| self.failed(error);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.folder, &self.name, flags, Mode::empty()).map_err(failed)?;
        if id(&fstat(&file).map_err(failed)?) != self.id {
            return Err(FileError::Replaced { path: self.path.clone() });
        }
        let group = Some(Gid::from_raw(group.unwrap_or(0)));
        chownat(&file, "", None::<Uid>, group, AtFlags::EMPTY_PATH).map_err(failed)?;
        // A descriptor made with O_PATH allows no other way.
        let by_descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
        chmod(by_descriptor, OURS_AND_THE_GROUPS).map_err(failed)
    }

    /// Removes the socket that a killed daemon left behind.
    fn remove_stale(&self) -> Result<(), FileError> {
        let found = match self.entry() {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(self.failed(error)),
        };
        let path = || self.path.clone();
        if FileType::from_raw_mode(found.st_mode) != FileType::Socket {
            return Err(FileError::NoSocket { path: path() });
        }
        if found.st_uid != geteuid().as_raw() {
            return Err(FileError::ForeignSocket { path: path(), owner: found.st_uid });
        }
        // Nonblocking: a daemon that hangs accepts nobody.
        let answer = stream_socket(SocketFlags::NONBLOCK)
            .and_then(|probe| connect(&probe, &self.address()?));
        match answer {
            Ok(()) | Err(Errno::AGAIN) => Err(FileError::InUse { path: path() }),
            Err(_) => unlinkat(&self.folder, &self.name, AtFlags::empty())
                .map_err(|error| self.failed(error)),
        }
    }

    /// Returns the address in the folder that was walked to, whatever its path is by now.
    fn address(&self) -> Result<SocketAddrUnix, Errno> {
        let folder = self.folder.as_raw_fd().to_string();
        SocketAddrUnix::new(Path::new("/proc/self/fd").join(folder).join(&self.name))
    }

    fn entry(&self) -> Result<Stat, Errno> {
        statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW)
    }

    fn failed(&self, error: Errno) -> FileError {
        FileError::Socket { path: self.path.clone(), error: io::Error::from(error) }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another daemon may listen there by now.
        if self.entry().is_ok_and(|found| id(&found) == self.id) {
            let _ = unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

/// The right to begin to listen at a path, for one daemon at a time. It is the lock of a file
/// beside the socket, which is removed on drop.
struct Starting {
    lock: Place,
    _held: File,
}

impl Starting {
    fn alone(path: &Path) -> Result<Self, FileError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".lock");
        let lock = Place::find(Path::new(&name), Owner::Ours)?;
        let _held = lock.open_locked(OFlags::RDWR).map_err(|error| match error {
            FileError::Locked { .. } => FileError::InUse { path: path.to_owned() },
            error => error,
        })?;
        Ok(Self { lock, _held })
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        // The lock is still held, so the file is nobody else's. A file that stays is harmless.
        let _ = self.lock.remove();
    }
}

fn id(entry: &Stat) -> (u64, u64) {
    (entry.st_dev, entry.st_ino)
}

fn stream_socket(flags: SocketFlags) -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags | SocketFlags::CLOEXEC, None)
}

/// Judges a path of root's without changes, like [`Place::judge`](super::Place::judge).
pub(crate) fn judge_socket(path: &Path) -> Result<Vec<(PathBuf, PathBuf)>, FileError> {
    let Reached { folder, links, .. } = walk(path, Follow::Ours, None)?;
    let holder = fstat(&folder)
        .map_err(|error| FileError::Socket { path: path.to_owned(), error: error.into() })?;
    if trust::others_remove(&holder) {
        return Err(FileError::SharedFolder { path: path.to_owned() });
    }
    Ok(links)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::{
        fs::{PermissionsExt, symlink},
        net::UnixStream,
    };

    fn refusal(path: &Path) -> String {
        SocketFile::listen(path, None).err().expect("it is refused").to_string()
    }

    #[test]
    fn the_mode_is_right_and_the_file_goes_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/socket");
        let (listener, file) = SocketFile::listen(&path, None).unwrap();
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o660);
        assert!(UnixStream::connect(&path).is_ok() && listener.accept().is_ok());
        assert!(refusal(&path).contains("another daemon listens there"));
        drop((listener, file));
        assert!(!path.exists());
    }

    #[test]
    fn only_a_stale_socket_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        // Dropping a listener leaves its file.
        drop(UnixListener::bind(&path).unwrap());
        let (_listener, file) = SocketFile::listen(&path, None).unwrap();
        std::fs::remove_file(&path).unwrap();
        let _other = UnixListener::bind(&path).unwrap();
        assert!(file.admit(None).is_err(), "the mode of another's is left alone");
        drop(file);
        assert!(path.exists(), "another's is not removed");

        let text = folder.path().join("text");
        std::fs::write(&text, "kept").unwrap();
        assert!(refusal(&text).contains("no socket"), "{}", refusal(&text));
        let link = folder.path().join("link");
        symlink(&text, &link).unwrap();
        assert!(SocketFile::listen(&link, None).is_err());
        assert_eq!(std::fs::read_to_string(&text).unwrap(), "kept");
    }

    /// A daemon has its socket and does not listen yet.
    #[test]
    fn who_begins_to_listen_is_somebody_who_listens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let starting = Starting::alone(&path).unwrap();
        let socket = stream_socket(SocketFlags::empty()).unwrap();
        bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        assert!(refusal(&path).contains("another daemon listens there"));
        listen(&socket, BACKLOG).unwrap();
        drop(starting);
        assert!(refusal(&path).contains("another daemon listens there"));
        assert!(UnixStream::connect(&path).is_ok(), "it has its socket still");
        let names = || std::fs::read_dir(&folder).unwrap().count();
        assert_eq!(names(), 1, "no lock is left");
    }

    #[test]
    fn of_many_at_once_one_listens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        // A killed daemon leaves this.
        drop(UnixListener::bind(&path).unwrap());
        let all = std::thread::scope(|scope| {
            let listen = || SocketFile::listen(&path, None);
            let started: Vec<_> = (0..16).map(|_| scope.spawn(listen)).collect();
            started.into_iter().map(|one| one.join().unwrap()).collect::<Vec<_>>()
        });
        let listening = all.iter().filter(|one| one.is_ok()).count();
        assert_eq!(listening, 1);
        assert!(UnixStream::connect(&path).is_ok(), "its socket is there");
        for refused in all.iter().filter_map(|one| one.as_ref().err()) {
            assert!(refused.to_string().contains("another daemon listens there"), "{refused}");
        }
    }

    #[test]
    fn a_full_queue_is_somebody_who_listens() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let hung = stream_socket(SocketFlags::empty()).unwrap();
        bind(&hung, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&hung, 0).unwrap();
        let _first = UnixStream::connect(&path).unwrap();
        assert!(refusal(&path).contains("another daemon listens there"));
    }
}
