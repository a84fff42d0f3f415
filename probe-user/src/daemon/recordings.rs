//! The folder of recordings: names new ones, and removes the oldest when there are too many.

use super::{config, ids::TargetName};
use crate::{
    files::{self, Owner},
    ui,
};
use anyhow::Context;
use chrono::{DateTime, Local, TimeZone as _};
use ctrace_core::{recording::Start, units::Pid};
use std::{
    ffi::OsStr,
    fs::File,
    io,
    path::PathBuf,
    sync::atomic::{AtomicI64, Ordering},
    time::SystemTime,
};

pub(crate) struct Recordings {
    config: config::Recordings,
    /// The time in the name of the last one, in milliseconds.
    last: AtomicI64,
}

/// The place of a future recording.
pub(crate) struct RecordingPlace {
    pub path: PathBuf,
    pub target: TargetName,
    /// The size limit of the file, in bytes.
    pub bytes: u64,
}

impl Recordings {
    pub(crate) fn new(config: config::Recordings) -> Self {
        Self { config, last: AtomicI64::new(0) }
    }

    /// Returns the place of a new one, with `why` in its name.
    pub(crate) fn next(
        &self,
        target: &TargetName,
        pid: Pid,
        why: &str,
    ) -> anyhow::Result<RecordingPlace> {
        let folder = &self.config.folder;
        files::make_folder(folder, 0o750).context("`recordings` in [daemon]")?;
        let time = self.a_time().format("%Y%m%dT%H%M%S%.3f");
        let name = format!("{target}-{}-{time}-{why}.ctrace", pid.0);
        let (path, target) = (folder.join(name), target.clone());
        Ok(RecordingPlace { path, target, bytes: self.config.bytes })
    }

    /// Returns the time in milliseconds, different for each recording.
    fn a_time(&self) -> DateTime<Local> {
        let now = Local::now();
        let next = |last: i64| now.timestamp_millis().max(last + 1);
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |l| Some(next(l)));
        let own = last.map_or(now.timestamp_millis(), next);
        Local.timestamp_millis_opt(own).single().unwrap_or(now)
    }

    /// Removes a target's oldest ones, and half-written ones of a killed daemon.
    pub(crate) fn prune(&self, target: &TargetName) {
        let removed = |place: &files::Place, removed: io::Result<()>| {
            if let Err(error) = removed {
                ui::say(&format!("cannot remove {}: {error}", place.path().display()));
            }
        };
        for StoredRecording { place, file, .. } in self.of(target, files::replaced_by) {
            removed(&place, place.remove_unless_written(&file));
        }
        let mut all = self.of(target, OsStr::to_str);
        all.sort_by_key(|recording| recording.modified);
        let (mut files, mut bytes) = (0, 0);
        for StoredRecording { place, size, .. } in all.into_iter().rev() {
            files += 1;
            bytes += size;
            if files > self.config.files || bytes > self.config.bytes && files > 1 {
                removed(&place, place.remove());
            }
        }
    }

    /// Returns the target's files, by their names and their contents. `recording` returns the name
    /// that a file has or was to get.
    fn of(
        &self,
        target: &TargetName,
        recording: fn(&OsStr) -> Option<&str>,
    ) -> Vec<StoredRecording> {
        // The name only serves to find the folder.
        let Ok(folder) = files::Place::find(&self.config.folder.join("x"), Owner::Ours) else {
            return Vec::new();
        };
        let begin = format!("{target}-");
        let names = folder.names().unwrap_or_default().into_iter().filter(|name| {
            recording(name)
                .is_some_and(|name| name.starts_with(&begin) && name.ends_with(".ctrace"))
        });
        let recordings = names.filter_map(|name| {
            let place = folder.sibling(&name);
            let size = place.size_of_ours()?;
            let file = place.open_to_read().ok()?;
            let start = Start::read(&file).ok()?;
            let modified = file.metadata().ok()?.modified().ok()?;
            (start.daemon_target.as_deref() == Some(&*target.0)).then_some(StoredRecording {
                place,
                file,
                size,
                modified,
            })
        });
        recordings.collect()
    }
}

struct StoredRecording {
    place: files::Place,
    file: File,
    size: u64,
    modified: SystemTime,
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctrace_core::recording::Writer;
    use std::fs;

    #[test]
    fn the_newest_are_kept_and_strangers_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let config =
            config::Recordings { folder: folder.path().to_owned(), files: 2, bytes: 1 << 20 };
        let recordings = Recordings::new(config);
        let target = TargetName("web".into());
        let recording = |of: Option<&str>| {
            let start = Start { daemon_target: of.map(str::to_owned), ..Start::default() };
            Writer::new(Vec::new(), &start).unwrap().into_inner()
        };
        let strangers = [
            ("notes.txt", b"mine".to_vec()),
            // Another target's file, moved here by hand under another name.
            ("web-1-mine.ctrace", recording(None)),
            ("web-2-x.ctrace", recording(Some("web-2"))),
            ("keep.ctrace", recording(Some("web"))),
            ("web-3-broken.ctrace", vec![7; 100]),
        ];
        for (name, bytes) in &strangers {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        let mut paths = Vec::new();
        for number in 0..4 {
            let path = recordings.next(&target, Pid(number), "slow").unwrap().path;
            fs::write(&path, recording(Some("web"))).unwrap();
            let time = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(number.into());
            fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
            paths.push(path);
        }
        let left = |end: &str, of| {
            let path = folder.path().join(format!("web-7-x-asked.ctrace{end}"));
            fs::write(&path, recording(of)).unwrap();
            path
        };
        let (ours, digits) = (Some("web"), ".0123456789abcdef.part");
        let orphan = left(digits, ours);
        let underway = left(".fedcba9876543210.part", ours);
        let writer = fs::File::open(&underway).unwrap();
        rustix::fs::flock(&writer, rustix::fs::FlockOperation::LockExclusive).unwrap();
        let others =
            [left(".part", ours), left(".0.part", ours), left(".1111111111111111.part", None)];
        recordings.prune(&target);
        assert!(!orphan.exists() && underway.exists());
        drop(writer);
        recordings.prune(&target);
        assert!(!underway.exists() && others.iter().all(|path| path.exists()));
        let there: Vec<bool> = paths.iter().map(|path| path.exists()).collect();
        assert_eq!(there, [false, false, true, true]);
        for (name, _) in strangers {
            assert!(folder.path().join(name).exists(), "{name}");
        }
    }
}
