//! The names of a recording's files, and the rules on which files may be overwritten.

use crate::files::{FileError, Place};
use rustix::fs::OFlags;
use std::{
    ffi::OsStr,
    fs::File,
    io::{self, ErrorKind, Read, Seek},
    path::{Path, PathBuf},
};

/// Returns `trace.ctrace`, `trace.1.ctrace`, …
pub(super) fn numbered(path: &Path, number: u32) -> PathBuf {
    match (number, path.extension()) {
        (0, _) => path.to_owned(),
        (_, Some(extension)) => {
            let mut name = std::ffi::OsString::from(format!("{number}."));
            name.push(extension);
            path.with_extension(name)
        }
        (_, None) => path.with_extension(number.to_string()),
    }
}

/// The files that a recording may overwrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replace {
    /// Nothing but an empty file.
    Nothing,
    /// Another recording (`--force`).
    Recordings,
}

/// The reason why a recording cannot be written to a path.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    #[error(transparent)]
    Refused(#[from] FileError),
    #[error("cannot write {}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error("cannot write {}: a recording needs a file", path.display())]
    NoFile { path: PathBuf },
    #[error("{} is there already and is no recording; remove it first", path.display())]
    NoRecording { path: PathBuf },
    #[error("{} is there already; --force replaces it, and -o gives another name", path.display())]
    IsThere { path: PathBuf },
}

impl OpenError {
    /// True if something under this name must be left alone, so that another name would do.
    pub(super) fn is_taken(&self) -> bool {
        match self {
            Self::Refused(FileError::Io { error, .. }) => error.kind() == ErrorKind::IsADirectory,
            Self::Refused(
                FileError::Link { .. }
                | FileError::Foreign { .. }
                | FileError::HardLink { .. }
                | FileError::Locked { .. }
                | FileError::Replaced { .. },
            ) => true,
            Self::Refused(_) | Self::Io { .. } => false,
            Self::NoFile { .. } | Self::NoRecording { .. } | Self::IsThere { .. } => true,
        }
    }
}

/// Opens a file for writing, by nobody else at the same time. A file that is no recording stays
/// untouched.
pub(super) fn open(place: &Place, replace: Replace) -> Result<File, OpenError> {
    let path = || place.path().to_owned();
    let failed = |error| OpenError::Io { path: path(), error };
    let mut file = place.open_locked(OFlags::RDWR)?;
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() {
        return Err(OpenError::NoFile { path: path() });
    }
    if meta.len() == 0 {
        return Ok(file);
    }
    let mut head = [0; 8];
    let is_recording = match file.read_exact(&mut head) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => false,
        read => read.map_err(failed).map(|()| ctrace_core::recording::is_recording(&head))?,
    };
    if !is_recording {
        return Err(OpenError::NoRecording { path: path() });
    }
    if replace != Replace::Recordings {
        return Err(OpenError::IsThere { path: path() });
    }
    file.rewind().map_err(failed)?;
    Ok(file)
}

/// Checks that later files of the recording that exist already may be overwritten, and that no
/// other ctrace is writing them.
pub(super) fn check_later(place: &Place, replace: Replace) -> Result<(), OpenError> {
    let failed = |error| OpenError::Io { path: place.path().to_owned(), error };
    for name in place.names().map_err(failed)? {
        let other = place.sibling(&name);
        let is_later =
            later(place.path(), &name) && other.size_of_ours().is_some_and(|size| size > 0);
        if is_later {
            open(&other, replace)?;
        }
    }
    Ok(())
}

/// True for the name of a further file of the recording.
fn later(path: &Path, name: &OsStr) -> bool {
    let digits = || {
        let rest = name.to_str()?.strip_prefix(path.file_stem()?.to_str()?)?.strip_prefix('.')?;
        rest.split('.').next()?.parse().ok().filter(|number| *number > 0)
    };
    digits().is_some_and(|number| numbered(path, number).file_name() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_further_files_are_known() {
        let is_later = |path: &str, name: &str| later(Path::new(path), OsStr::new(name));
        assert!(is_later("/x/trace.ctrace", "trace.1.ctrace"));
        assert!(is_later("a.b.ctrace", "a.b.17.ctrace"));
        assert!(is_later("trace", "trace.3"));
        for name in
            ["trace.ctrace", "trace.0.ctrace", "trace.01.ctrace", "trace.1.json", "t.1.ctrace"]
        {
            assert!(!is_later("trace.ctrace", name), "{name}");
        }
    }
}
