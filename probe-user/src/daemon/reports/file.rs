//! A file of reports: whole lines only, another one when it is large or old, and the oldest ones
//! removed. `web.jsonl` is the newest; those before it are `web.jsonl.1`, `web.jsonl.2` and so on,
//! of which the highest number is the latest.

use crate::daemon::config::Reports;
use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Instant,
};

pub(super) struct File {
    path: PathBuf,
    open: Option<Open>,
}

struct Open {
    file: fs::File,
    bytes: u64,
    since: Instant,
}

impl File {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), open: None }
    }

    /// All of it or nothing.
    pub(super) fn write(&mut self, text: &[u8], reports: &Reports) -> io::Result<()> {
        self.leave_if_moved();
        if self.open.as_ref().is_some_and(|open| open.is_due(text.len(), reports)) {
            self.open = None;
            self.rotate(reports)?;
        }
        let open = match &mut self.open {
            Some(open) => open,
            closed => closed.insert(Open::append(&self.path)?),
        };
        let written = open.file.write_all(text);
        match written {
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

    /// Somebody else may have moved the file away, or removed it.
    fn leave_if_moved(&mut self) {
        let Some(open) = &self.open else { return };
        let identity = |meta: fs::Metadata| (meta.dev(), meta.ino());
        let there = fs::metadata(&self.path).map(identity).ok();
        if there != open.file.metadata().map(identity).ok() {
            self.open = None;
        }
    }

    fn rotate(&self, reports: &Reports) -> io::Result<()> {
        let mut old = self.rotated()?;
        let newest = old.last().map_or(0, |(number, _, _)| *number) + 1;
        let size = fs::metadata(&self.path)?.len();
        let moved = self.numbered(newest);
        fs::rename(&self.path, &moved)?;
        old.push((newest, moved, size));
        let (mut files, mut bytes) = (1, 0);
        for (_, path, size) in old.into_iter().rev() {
            files += 1;
            bytes += size;
            if files > u64::from(reports.keep_files) || bytes > reports.keep_bytes {
                fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    /// Number, path and size of those before, the oldest first.
    fn rotated(&self) -> io::Result<Vec<(u64, PathBuf, u64)>> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut found = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let other = entry.file_name();
            let number =
                other.to_str().and_then(|other| other.strip_prefix(&name)?.strip_prefix('.'));
            if let Some(number) = number.and_then(|number| number.parse().ok()) {
                found.push((number, entry.path(), entry.metadata()?.len()));
            }
        }
        found.sort();
        Ok(found)
    }

    fn numbered(&self, number: u64) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

impl Open {
    fn append(path: &Path) -> io::Result<Self> {
        let options = || {
            let mut options = OpenOptions::new();
            options.append(true).create(true).mode(0o640);
            options
        };
        let file = options().open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { file, bytes, since: Instant::now() })
    }

    fn is_due(&self, more: usize, reports: &Reports) -> bool {
        let is_large = self.bytes > 0 && self.bytes + more as u64 > reports.rotate_bytes;
        is_large || reports.rotate_age.is_some_and(|age| self.since.elapsed() >= age)
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
