//! A file of reports, with whole lines only. A new one begins when it is large or old, and the
//! oldest are removed. `web.jsonl` is the newest; earlier ones are `web.jsonl.1`, `web.jsonl.2` and
//! so on. The highest number is the latest of those.

use super::pipe::{self, Cut};
use crate::{
    daemon::config::Reports,
    files::{FileError, Owner, Place},
};
use rustix::{fs::OFlags, io::Errno};
use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Instant,
};

pub(super) struct File {
    path: PathBuf,
    open: Option<Open>,
    /// True if the pipe holds half a line.
    is_cut: bool,
}

struct Open {
    file: fs::File,
    place: Place,
    /// False for a pipe, which is not rotated.
    is_file: bool,
    bytes: u64,
    since: Instant,
}

impl File {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), open: None, is_cut: false }
    }

    /// Writes all of it or nothing.
    pub(super) fn write(&mut self, text: &[u8], reports: &Reports) -> io::Result<()> {
        self.leave_if_moved();
        if let Some(open) = self.open.take_if(|open| open.is_due(text.len(), reports)) {
            rotate(&open.place, reports)?;
        }
        let open = match &mut self.open {
            Some(open) => open,
            closed => closed.insert(Open::append(&self.path)?),
        };
        if !open.is_file {
            return self.write_to_pipe(text);
        }
        match open.file.write_all(text) {
            Ok(()) => open.bytes += text.len() as u64,
            Err(error) => {
                // Half a line would spoil the next one. If this fails as well, a reader sees it.
                let _ = open.file.set_len(open.bytes);
                self.open = None;
                return Err(error);
            }
        }
        Ok(())
    }

    fn write_to_pipe(&mut self, text: &[u8]) -> io::Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        let end: &[u8] = if self.is_cut { b"\n" } else { b"" };
        match pipe::write(&open.file, &[end, text].concat()) {
            Ok(()) => self.is_cut = false,
            Err(Cut { error, is_begun }) => {
                self.is_cut |= is_begun;
                // A slow reader must not see the pipe's end.
                if error.kind() != io::ErrorKind::TimedOut {
                    self.open = None;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Closes a file that somebody moved away or removed.
    fn leave_if_moved(&mut self) {
        let Some(open) = &self.open else { return };
        let identity = |meta: fs::Metadata| (meta.dev(), meta.ino());
        let there = fs::metadata(&self.path).map(identity).ok();
        if there != open.file.metadata().map(identity).ok() {
            self.open = None;
        }
    }
}

fn rotate(place: &Place, reports: &Reports) -> io::Result<()> {
    let mut old = rotated(place)?;
    let newest = old.last().map_or(0, |(number, _)| *number);
    let moved = move_away(place, newest)?;
    old.push(moved);
    let (mut files, mut bytes) = (1, 0);
    for (_, place) in old.into_iter().rev() {
        files += 1;
        bytes += place.size_of_ours().unwrap_or_default();
        if files > u64::from(reports.keep_files) || bytes > reports.keep_bytes {
            place.remove()?;
        }
    }
    Ok(())
}

/// Gives the file the first free number after `newest`. Others' files of such names are skipped.
fn move_away(place: &Place, newest: u32) -> io::Result<(u32, Place)> {
    const TRIES: u32 = 1000;
    for number in (newest..).skip(1).take(TRIES as usize) {
        let moved = numbered(place, number);
        match place.rename(&moved) {
            Err(FileError::Io { error, .. }) if error.kind() == io::ErrorKind::AlreadyExists => {}
            renamed => return Ok(renamed.map(|()| (number, moved))?),
        }
    }
    Err(io::Error::other("the numbers of older files are taken; remove some"))
}

/// Returns earlier files, the oldest first, except those that others could have put there.
fn rotated(place: &Place) -> io::Result<Vec<(u32, Place)>> {
    let name = place.name().to_string_lossy().into_owned();
    let names = place.names()?.into_iter();
    let found = names.filter_map(|other| {
        let number: u32 = other.to_str()?.strip_prefix(&name)?.strip_prefix('.')?.parse().ok()?;
        let moved = numbered(place, number);
        let is_one = moved.name() == other && moved.size_of_ours().is_some();
        is_one.then_some((number, moved))
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by_key(|(number, _)| *number);
    Ok(found)
}

fn numbered(place: &Place, number: u32) -> Place {
    let mut name = place.name().to_owned();
    name.push(format!(".{number}"));
    place.sibling(&name)
}

impl Open {
    fn append(path: &Path) -> io::Result<Self> {
        let place = Place::find(path, Owner::Ours)?;
        // A pipe without a reader must not block.
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NONBLOCK;
        let file = place.open(flags).map_err(|error| match io::Error::from(error) {
            error if error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => {
                io::Error::other("it is a pipe that nobody reads, or a socket")
            }
            error => error,
        })?;
        let meta = file.metadata()?;
        let (bytes, is_file) = (meta.len(), meta.is_file());
        Ok(Self { file, place, is_file, bytes, since: Instant::now() })
    }

    fn is_due(&self, more: usize, reports: &Reports) -> bool {
        let is_large = self.bytes > 0 && self.bytes + more as u64 > reports.rotate_bytes;
        self.is_file
            && (is_large || reports.rotate_age.is_some_and(|age| self.since.elapsed() >= age))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn reports(rotate_bytes: u64, keep_files: u32) -> Reports {
        Reports { rotate_bytes, keep_files, keep_bytes: u64::MAX, ..Reports::default() }
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn large_files_make_room_and_the_oldest_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web.jsonl");
        let mut file = File::new(&path);
        for number in 0..7 {
            file.write(format!("report {number}\n").as_bytes(), &reports(20, 3)).unwrap();
        }
        assert_eq!(names(folder.path()), ["web.jsonl", "web.jsonl.2", "web.jsonl.3"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "report 6\n");
        let newest = folder.path().join("web.jsonl.3");
        assert_eq!(fs::read_to_string(newest).unwrap(), "report 4\nreport 5\n");
    }

    #[test]
    fn planted_names_do_not_move_the_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rot.jsonl");
        for planted in ["18446744073709551615", "4294967296", "007", "+9", "x"] {
            fs::write(folder.path().join(format!("rot.jsonl.{planted}")), "planted").unwrap();
        }
        fs::create_dir(folder.path().join("rot.jsonl.1")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("rot.jsonl.2")).unwrap();
        let mut file = File::new(&path);
        for number in 0..4 {
            file.write(format!("report {number}\n").as_bytes(), &reports(10, 2)).unwrap();
        }
        let kept =
            ["", ".+9", ".007", ".1", ".18446744073709551615", ".2", ".4294967296", ".5", ".x"];
        assert_eq!(names(folder.path()), kept.map(|end| format!("rot.jsonl{end}")));
        assert_eq!(fs::read_to_string(folder.path().join("rot.jsonl.5")).unwrap(), "report 2\n");
    }

    #[test]
    fn old_files_make_room_and_the_size_of_all_is_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = File::new(&folder.path().join("web.jsonl"));
        let old = Reports {
            rotate_age: Some(Duration::ZERO),
            keep_bytes: 20,
            ..reports(u64::MAX, u32::MAX)
        };
        for _ in 0..5 {
            file.write(b"ten bytes\n", &old).unwrap();
        }
        assert_eq!(names(folder.path()), ["web.jsonl", "web.jsonl.3", "web.jsonl.4"]);
    }

    #[test]
    fn a_file_that_was_moved_away_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("web.jsonl");
        let mut file = File::new(&path);
        file.write(b"one\n", &reports(1000, 3)).unwrap();
        fs::rename(&path, folder.path().join("elsewhere")).unwrap();
        file.write(b"two\n", &reports(1000, 3)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
    }
}
