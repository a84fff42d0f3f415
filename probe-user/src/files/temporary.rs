//! A file that replaces another when it is complete. Its name cannot be guessed, and an existing
//! file of that name is left alone.

use super::{FileError, FileId, Place};
use rustix::{
    fs::OFlags,
    io::Errno,
    rand::{GetRandomFlags, getrandom},
};
use std::{ffi::OsStr, fs::File};

const SUFFIX: &str = ".part";
/// The number of digits before the suffix.
const DIGITS: usize = 16;

/// Returns the name of the file that a temporary file was to replace, if this is the name of one.
pub(crate) fn replaced_by(temporary: &OsStr) -> Option<&str> {
    let (name, digits) = temporary.to_str()?.strip_suffix(SUFFIX)?.rsplit_once('.')?;
    let is_ours = digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_ours.then_some(name)
}

pub(crate) struct Temporary {
    place: Place,
    file: Option<File>,
}

impl Temporary {
    pub(super) fn create(of: &Place, access: OFlags) -> Result<Self, FileError> {
        let mut random = [0; 8];
        getrandom(&mut random, GetRandomFlags::empty()).map_err(|error| of.io(error))?;
        let mut name = of.name().to_owned();
        name.push(format!(".{:0DIGITS$x}{SUFFIX}", u64::from_ne_bytes(random)));
        let place = of.sibling(&name);
        let file = place.create_new(access)?;
        let temporary = Self { place, file: Some(file) };
        // The lock is held during the write. Without the lock, the file was left behind.
        temporary.file.as_ref().map_or(Ok(()), |file| temporary.place.lock(file))?;
        Ok(temporary)
    }

    pub(crate) fn file(&self) -> std::io::Result<File> {
        match &self.file {
            Some(file) => file.try_clone(),
            None => Err(Errno::BADF.into()),
        }
    }

    /// Replaces `old`, keeping the lock. Fails if another file has the name by now.
    pub(crate) fn persist(mut self, place: &Place, old: FileId) -> Result<(), FileError> {
        match place.id() {
            Some(id) if id == old => self.place.replace(place)?,
            None => self.place.rename(place)?,
            Some(_) => return Err(FileError::Replaced { path: place.path().to_owned() }),
        }
        self.file = None;
        Ok(())
    }
}

impl Temporary {
    /// Gives it its own name, which no file may have, and keeps the lock no longer.
    pub(crate) fn persist_new(mut self, place: &Place) -> Result<(), FileError> {
        self.place.rename(place)?;
        self.file = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if self.file.is_some() {
            // Half of a file is useless, and an error has no receiver here.
            let _ = self.place.remove();
        }
    }
}
