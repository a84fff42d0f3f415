//! The reasons why a file is not written: one line each, with a remedy.

use crate::user::UserError;
use std::{io, path::PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot write {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error(
        "cannot write {}: {} is a symbolic link that others could have put there; give the path it \
         leads to, or another folder",
        path.display(), link.display()
    )]
    Link { path: PathBuf, link: PathBuf },
    #[error(
        "cannot write {}: it is somebody else's file, in a folder that others can write; remove it, \
         or give another folder",
        path.display()
    )]
    Foreign { path: PathBuf },
    #[error(
        "cannot write {}: the file has other names as well, in a folder that others can write; \
         remove it, or give another folder",
        path.display()
    )]
    HardLink { path: PathBuf },
    #[error(
        "cannot write {}: it is no regular file, in a folder that others can write; remove it, or give \
         another folder",
        path.display()
    )]
    NoFile { path: PathBuf },
    #[error("cannot write {}: another ctrace is writing it", path.display())]
    Locked { path: PathBuf },
    #[error("cannot write {}: somebody replaced it meanwhile", path.display())]
    Replaced { path: PathBuf },
    #[error("cannot listen at {}: {error}", path.display())]
    Socket { path: PathBuf, error: io::Error },
    #[error("cannot listen at {}: another daemon listens there; end it first", path.display())]
    InUse { path: PathBuf },
    #[error("cannot listen at {}: what is there is no socket; remove it", path.display())]
    NoSocket { path: PathBuf },
    #[error("cannot listen at {}: the socket there is user {owner}'s; remove it", path.display())]
    ForeignSocket { path: PathBuf, owner: u32 },
    #[error(
        "cannot listen at {}: others can write the folder, and could take its place; choose a folder \
         that only root can write",
        path.display()
    )]
    SharedFolder { path: PathBuf },
    #[error(transparent)]
    User(#[from] UserError),
}

impl From<FileError> for io::Error {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Io { error, .. } => error,
            other => io::Error::other(other),
        }
    }
}
