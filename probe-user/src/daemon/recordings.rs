//! The folder of recordings: names for new ones, and the oldest removed when there are too many.

use super::config::{self, TargetName};
use crate::ui;
use anyhow::Context;
use chrono::Local;
use ctrace_core::units::Pid;
use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt,
    path::PathBuf,
    time::SystemTime,
};

pub struct Recordings {
    config: config::Recordings,
}

/// Where one is going to be.
pub struct Place {
    pub path: PathBuf,
    /// Of the file, at most.
    pub bytes: u64,
}

impl Recordings {
    pub fn new(config: config::Recordings) -> Self {
        Self { config }
    }

    /// The place of a new one; `why` is in its name.
    pub fn next(&self, target: &TargetName, pid: Pid, why: &str) -> anyhow::Result<Place> {
        let folder = &self.config.folder;
        DirBuilder::new()
            .recursive(true)
            .mode(0o750)
            .create(folder)
            .with_context(|| format!("cannot make {} (`recordings`)", folder.display()))?;
        let time = Local::now().format("%Y%m%dT%H%M%S%.3f");
        let name = format!("{target}-{}-{time}-{why}.ctrace", pid.0);
        Ok(Place { path: folder.join(name), bytes: self.config.bytes })
    }

    /// Removes the oldest.
    pub fn prune(&self) {
        let mut all = self.all();
        all.sort();
        let (mut files, mut bytes) = (0, 0);
        for (_, path, size) in all.into_iter().rev() {
            files += 1;
            bytes += size;
            if (files > self.config.files || bytes > self.config.bytes && files > 1)
                && let Err(error) = fs::remove_file(&path)
            {
                ui::say(&format!("cannot remove {}: {error}", path.display()));
            }
        }
    }

    fn all(&self) -> Vec<(SystemTime, PathBuf, u64)> {
        let entries = fs::read_dir(&self.config.folder).into_iter().flatten().flatten();
        let recordings = entries.filter_map(|entry| {
            let path = entry.path();
            let meta = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let is_one = path.extension().is_some_and(|extension| extension == "ctrace");
            is_one.then(|| Some((meta.modified().ok()?, path, meta.len())))?
        });
        recordings.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_strangers_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let config = config::Recordings { folder: folder.path().to_owned(), files: 2, bytes: 1000 };
        let recordings = Recordings::new(config);
        let target = TargetName("web".into());
        let mut paths = Vec::new();
        for number in 0..4 {
            let path = recordings.next(&target, Pid(number), "slow").unwrap().path;
            fs::write(&path, [0; 100]).unwrap();
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number.into());
            fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
            paths.push(path);
        }
        fs::write(folder.path().join("notes.txt"), "mine").unwrap();
        recordings.prune();
        let there: Vec<bool> = paths.iter().map(|path| path.exists()).collect();
        assert_eq!(there, [false, false, true, true]);
        assert!(folder.path().join("notes.txt").exists());
    }
}
