//! Bounds reads and attempts for one program, whatever its files say.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Limit of libraries that an object asks for and that a program has.
pub(super) const MOST_LIBRARIES: usize = 4096;
/// Bytes that are read or kept: headers, dynamic sections, names, tables and search paths together.
/// A program with five hundred libraries takes five million, most for the loader and the cache.
const MOST_BYTES: u64 = 64 << 20;
/// Limit of tried paths. A program has some hundred libraries, each in one of some ten directories.
const MOST_PATHS: u32 = 200_000;
const LONGEST: Duration = Duration::from_secs(5);

/// The reason why the search for libraries was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TooMuch {
    #[error("there are more than {MOST_LIBRARIES}")]
    Libraries,
    #[error("looking for them takes more than {} MiB", MOST_BYTES >> 20)]
    Bytes,
    #[error("they may be at more than {MOST_PATHS} places")]
    Paths,
    #[error("looking for them takes longer than {} s", LONGEST.as_secs())]
    Time,
}

/// The bytes, paths and time that are left.
pub(super) struct SearchBudget {
    pub(super) bytes: u64,
    paths: u32,
    end: Instant,
}

impl Default for SearchBudget {
    fn default() -> Self {
        Self { bytes: MOST_BYTES, paths: MOST_PATHS, end: Instant::now() + LONGEST }
    }
}

impl SearchBudget {
    /// Charges one path before it is tried.
    pub(super) fn path(&mut self) -> Result<(), TooMuch> {
        self.paths = self.paths.checked_sub(1).ok_or(TooMuch::Paths)?;
        self.time()
    }

    /// Checks the time. Each loop whose length a file decides must call it.
    pub(super) fn time(&self) -> Result<(), TooMuch> {
        if Instant::now() > self.end { Err(TooMuch::Time) } else { Ok(()) }
    }

    /// Charges bytes before they are kept.
    pub(super) fn keep(&mut self, length: usize) -> Result<(), TooMuch> {
        self.bytes = self.bytes.checked_sub(length as u64).ok_or(TooMuch::Bytes)?;
        Ok(())
    }

    /// Reads up to `length` bytes of a file: fewer at its end, none where it cannot be read.
    pub(super) fn read(
        &mut self,
        file: &File,
        offset: u64,
        length: usize,
    ) -> Result<Vec<u8>, TooMuch> {
        self.keep(length)?;
        self.time()?;
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while filled < length {
            match file.read_at(&mut bytes[filled..], offset.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 40).unwrap();
        let mut budget = SearchBudget::default();
        assert_eq!(budget.read(&file, 7, 5).unwrap(), [0; 5]);
        assert_eq!(budget.read(&file, (1 << 40) - 2, 5).unwrap(), [0; 2]);
        assert!(budget.read(&file, u64::MAX, 5).unwrap().is_empty());
        let left = (MOST_BYTES - 15) as usize;
        assert_eq!(budget.read(&file, 0, left + 1), Err(TooMuch::Bytes));
        let mut paths = SearchBudget::default();
        assert!((0..MOST_PATHS).all(|_| paths.path().is_ok()));
        assert_eq!(paths.path(), Err(TooMuch::Paths));
        let mut late = SearchBudget { end: Instant::now() - LONGEST, ..SearchBudget::default() };
        assert_eq!(late.path(), Err(TooMuch::Time));
        assert_eq!(late.time(), Err(TooMuch::Time));
        assert_eq!(late.read(&file, 0, 1), Err(TooMuch::Time));
    }
}
