//! Walks a path, link by link, to an open folder and a name in it.

use super::{FileError, trust};
use rustix::{
    fs::{
        AtFlags, CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, Stat, fstat, fstatfs, mkdirat,
        openat, readlinkat, statat,
    },
    io::Errno,
    process::geteuid,
};
use std::{
    ffi::{OsStr, OsString},
    os::{
        fd::OwnedFd,
        unix::ffi::{OsStrExt, OsStringExt},
    },
    path::{Component, Path, PathBuf},
};

/// The kernel's limit.
const MOST_LINKS: usize = 40;
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The links that are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Follow {
    All,
    /// Links that nobody but root and our user can have put there.
    Ours,
}

impl Follow {
    /// Distrusts links only as root, who alone can write more than the link's maker.
    pub(super) fn by_rights() -> Self {
        if geteuid().is_root() { Self::Ours } else { Self::All }
    }
}

/// The end of a path.
pub(super) struct Reached {
    pub(super) folder: OwnedFd,
    /// A name in the folder, which may not exist. It is no link, except in /proc.
    pub(super) name: OsString,
    /// Links that were followed, and their targets.
    pub(super) links: Vec<(PathBuf, PathBuf)>,
}

enum Step {
    Root,
    Up,
    Into(OsString),
}

/// Walks `path` up to the folder of its last name. With `make`, makes missing folders with this
/// mode.
pub(super) fn walk(path: &Path, follow: Follow, make: Option<Mode>) -> Result<Reached, FileError> {
    let io = |error: Errno| FileError::Io { path: path.to_owned(), error: error.into() };
    if path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(io(Errno::ISDIR));
    }
    let mut folder = openat(CWD, ".", FOLDER, Mode::empty()).map_err(io)?;
    let mut so_far = PathBuf::new();
    let mut links = Vec::new();
    let mut left = steps(path);
    while let Some(step) = left.pop() {
        let name = match step {
            Step::Root => {
                folder = openat(CWD, "/", FOLDER, Mode::empty()).map_err(io)?;
                so_far = "/".into();
                continue;
            }
            Step::Up => {
                folder = openat(&folder, "..", FOLDER, Mode::empty()).map_err(io)?;
                so_far.push("..");
                continue;
            }
            Step::Into(name) => name,
        };
        let is_last = left.is_empty();
        if !is_last {
            let opened = openat(&folder, &name, FOLDER | OFlags::NOFOLLOW, Mode::empty());
            match (opened, make) {
                (Ok(next), _) => {
                    folder = next;
                    so_far.push(name);
                    continue;
                }
                (Err(Errno::NOTDIR | Errno::LOOP), _) => {}
                (Err(Errno::NOENT), Some(mode)) => {
                    match mkdirat(&folder, &name, mode) {
                        Ok(()) | Err(Errno::EXIST) => left.push(Step::Into(name)),
                        Err(error) => return Err(io(error)),
                    }
                    continue;
                }
                (Err(error), _) => return Err(io(error)),
            }
        }
        let entry = match statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) if is_last => return Ok(Reached { folder, name, links }),
            entry => entry.map_err(io)?,
        };
        if !is_link(&entry) {
            let reached = Reached { folder, name, links };
            return if is_last { Ok(reached) } else { Err(io(Errno::NOTDIR)) };
        }
        let link = so_far.join(&name);
        let holder = fstat(&folder).map_err(io)?;
        if follow == Follow::Ours && !trust::is_from_us(&holder, &entry) {
            return Err(FileError::Link { path: path.to_owned(), link });
        }
        if links.len() == MOST_LINKS {
            return Err(io(Errno::LOOP));
        }
        if is_proc(&folder).map_err(io)? {
            // The kernel's own links often lead to no path: only the kernel can follow them.
            if is_last {
                return Ok(Reached { folder, name, links });
            }
            folder = openat(&folder, &name, FOLDER, Mode::empty()).map_err(io)?;
            so_far = link;
            continue;
        }
        let target = readlinkat(&folder, &name, Vec::new()).map_err(io)?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        left.extend(steps(&target));
        links.push((link, target));
    }
    Err(io(Errno::ISDIR))
}

/// Returns the steps of a path, the last one first.
fn steps(path: &Path) -> Vec<Step> {
    let steps = path.components().rev().filter_map(|part| match part {
        Component::RootDir => Some(Step::Root),
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => Some(Step::Into(name.to_owned())),
        Component::CurDir | Component::Prefix(_) => None,
    });
    steps.collect()
}

pub(super) fn is_link(entry: &Stat) -> bool {
    FileType::from_raw_mode(entry.st_mode) == FileType::Symlink
}

pub(super) fn is_proc(folder: &OwnedFd) -> rustix::io::Result<bool> {
    Ok(fstatfs(folder)?.f_type == PROC_SUPER_MAGIC)
}

/// Makes a folder and its missing parents.
pub(crate) fn make_folder(path: &Path, mode: u32) -> Result<(), FileError> {
    let inside = path.join(OsStr::new("x"));
    walk(&inside, Follow::by_rights(), Some(Mode::from_raw_mode(mode))).map(drop)
}
