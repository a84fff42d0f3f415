//! The folder of tables: whole files of this machine, and the oldest ones removed.

use crate::{
    daemon::config,
    files::{self, FileError, Owner, Place},
    tables::folders,
};
use ctrace_core::fleet::{
    Table,
    decode::Part,
    partition::{Partition, day_named, folder},
};
use rustix::{
    fs::OFlags,
    rand::{GetRandomFlags, getrandom},
};
use std::{
    ffi::OsStr,
    fs, io,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

const BEGIN: &str = "part-";
const END: &str = ".parquet";

/// See the module.
pub(super) struct Store<'a> {
    pub(super) root: &'a Path,
    pub(super) host: &'a str,
}

/// Files that were removed before they were sent.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unsent {
    pub(super) files: u64,
    pub(super) rows: u64,
}

/// A file of the tables.
struct Stored {
    day: i64,
    modified: SystemTime,
    size: u64,
    place: Place,
}

impl Store<'_> {
    /// Writes a file, whole or not at all.
    pub(super) fn write(
        &self,
        partition: &Partition,
        first_ns: i64,
        content: &[u8],
    ) -> io::Result<()> {
        // Readers are other users. A folder that is there keeps its rights.
        const MODE: u32 = 0o755;
        let folder: PathBuf = self.root.join(partition.folders().iter().collect::<PathBuf>());
        files::make_folder(&folder, MODE)?;
        let mut random = [0; 4];
        getrandom(&mut random, GetRandomFlags::empty())?;
        let (millis, random) = (first_ns / 1_000_000, u32::from_ne_bytes(random));
        let place =
            Place::find(&folder.join(format!("{BEGIN}{millis}-{random:08x}{END}")), Owner::Ours)?;
        let temporary = place.temporary(OFlags::WRONLY)?;
        let mut file = temporary.file()?;
        file.write_all(content)?;
        file.sync_all()?;
        temporary.persist_new(&place)?;
        // The name should survive a crash, too. If it may not, the file is there all the same: as an error it
        // would be written twice.
        let _ = fs::File::open(&folder).and_then(|folder| folder.sync_all());
        Ok(())
    }

    /// Removes files of this machine that are too old or too many, and what a killed daemon left. Returns
    /// the removed files that were to be sent to a store, and their rows; and the first error.
    pub(super) fn prune(&self, config: &config::Fleet, today: i64) -> (Unsent, Option<io::Error>) {
        let (mut unsent, mut failed) = (Unsent::default(), None);
        let mut all = Vec::new();
        for table in Table::ALL {
            let host = self.root.join(table.name()).join(folder("host", self.host));
            for (day, folder) in folders(&host, "day") {
                let Some(day) = day_named(&day) else { continue };
                for (_, folder) in folders(&folder, "unit") {
                    match stored(&folder, day) {
                        Ok(files) => all.extend(files),
                        Err(error) => failed = failed.or(Some(error)),
                    }
                }
            }
        }
        all.sort_by_key(|file| (file.day, file.modified));
        let mut bytes = 0_u64;
        for file in all.into_iter().rev() {
            bytes = bytes.saturating_add(file.size);
            if today - file.day >= i64::from(config.keep_days) || bytes > config.keep_bytes {
                let rows = config.store.as_ref().and_then(|_| rows(&file.place));
                if let Err(error) = file.place.remove() {
                    failed = failed.or(Some(error));
                    continue;
                }
                if let Some(rows) = rows {
                    unsent.files += 1;
                    unsent.rows += rows;
                }
                // Succeeds for an empty folder only.
                let mut folder = file.place.path().parent();
                for _ in ["unit", "day"] {
                    let Some(path) = folder.filter(|path| fs::remove_dir(path).is_ok()) else {
                        break;
                    };
                    folder = path.parent();
                }
            }
        }
        (unsent, failed)
    }
}

/// Returns the rows of a file, or `None` if it is gone: it was sent meanwhile.
fn rows(place: &Place) -> Option<u64> {
    let opened = place.open_to_read();
    if let Err(FileError::Io { error, .. }) = &opened
        && error.kind() == io::ErrorKind::NotFound
    {
        return None;
    }
    let read = opened.ok().and_then(|mut file| {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok().map(|_| bytes)
    });
    // Of a broken file nobody knows.
    Some(read.and_then(|bytes| Part::open(bytes).ok()).map_or(0, |part| part.rows()))
}

/// Returns our files in a folder, and removes half-written ones.
fn stored(path: &Path, day: i64) -> io::Result<Vec<Stored>> {
    let is_ours = |name: &str| name.starts_with(BEGIN) && name.ends_with(END);
    // The name only serves to find the folder.
    let folder = match Place::find(&path.join("x"), Owner::Ours) {
        Err(FileError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Vec::new());
        }
        found => found?,
    };
    let mut all = Vec::new();
    for name in folder.names()? {
        let place = folder.sibling(&name);
        if files::replaced_by(&name).is_some_and(is_ours) {
            if let Ok(file) = place.open_to_read() {
                place.remove_unless_written(&file)?;
            }
        } else if OsStr::to_str(&name).is_some_and(is_ours)
            && let Some(size) = place.size_of_ours()
        {
            let modified = fs::symlink_metadata(place.path()).and_then(|meta| meta.modified());
            let modified = modified.unwrap_or(SystemTime::UNIX_EPOCH);
            all.push(Stored { day, modified, size, place });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::samples;
    use ctrace_core::fleet::{encode, partition::day_name};

    const TODAY: i64 = 20_785;

    fn config(keep_days: u32, keep_bytes: u64) -> config::Fleet {
        config::Fleet { keep_days, keep_bytes, ..config::Fleet::default() }
    }

    fn place(day: i64, unit: &str) -> Partition {
        Partition { table: Table::Functions, host: "h/1".into(), day, unit: unit.into() }
    }

    /// Returns the paths of all files below a folder, sorted.
    fn files(folder: &Path) -> Vec<PathBuf> {
        let inside = fs::read_dir(folder).unwrap().flat_map(|entry| match entry.unwrap().path() {
            path if path.is_dir() => files(&path),
            path => vec![path],
        });
        let mut inside: Vec<_> = inside.collect();
        inside.sort();
        inside
    }

    #[test]
    fn files_are_whole_and_in_their_folders() {
        let root = tempfile::tempdir().unwrap();
        let store = Store { root: root.path(), host: "h/1" };
        for content in ["one", "two"] {
            store.write(&place(TODAY, "../a=b"), 7_000_000, content.as_bytes()).unwrap();
        }
        let folder = root.path().join("functions/host=h%2F1/day=2026-11-28/unit=..%2Fa%3Db");
        let all = files(root.path());
        assert_eq!(all.len(), 2, "{all:?}");
        for path in &all {
            assert_eq!(path.parent(), Some(&*folder));
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(name.starts_with("part-7-") && name.ends_with(END), "{name}");
        }
        let mut contents: Vec<_> = all.iter().map(|path| fs::read(path).unwrap()).collect();
        contents.sort();
        assert_eq!(contents, [b"one", b"two"]);
        let blocked = Store { root: &all[0], host: "h/1" };
        assert!(blocked.write(&place(TODAY, "a"), 0, b"x").is_err());
        assert_eq!(files(root.path()), all, "nothing is left of it");
    }

    #[test]
    fn rows_of_files_that_were_not_sent_are_counted() {
        let root = tempfile::tempdir().unwrap();
        let store = Store { root: root.path(), host: "h/1" };
        let row = samples::target(1, 0);
        let written = encode::targets(&[row.clone(), row.clone(), row]).unwrap();
        for (age, content) in [(40, &written[..]), (41, &b"broken"[..]), (0, &written[..])] {
            store.write(&place(TODAY - age, "a"), age, content).unwrap();
        }
        let unsent = |store_of_config: Option<&str>| {
            let store_of_config = store_of_config.map(str::to_owned);
            let config = config::Fleet { store: store_of_config, ..config(30, 1 << 20) };
            let (unsent, failed) = store.prune(&config, TODAY);
            assert!(failed.is_none(), "{failed:?}");
            unsent
        };
        assert_eq!(unsent(Some("s3://b")), Unsent { files: 2, rows: 3 });
        store.write(&place(TODAY - 40, "a"), 40, &written).unwrap();
        assert_eq!(unsent(None), Unsent::default());
    }

    /// Nobody can remove a file of a folder that is immutable. File systems in memory know no such.
    #[test]
    fn one_that_cannot_be_removed_keeps_no_other_from_it() {
        let root = tempfile::tempdir().unwrap();
        let store = Store { root: root.path(), host: "h/1" };
        for (age, unit) in [(42, "a"), (41, "b"), (40, "c")] {
            store.write(&place(TODAY - age, unit), age, b"broken").unwrap();
        }
        let day = format!("day={}", day_name(TODAY - 41));
        let kept = root.path().join("functions/host=h%2F1").join(day).join("unit=b");
        let change = |how: &str| {
            let done = std::process::Command::new("chattr").arg(how).arg(&kept).output();
            done.is_ok_and(|done| done.status.success())
        };
        if !change("+i") {
            eprintln!("skipped: no folder can be made immutable here");
            return;
        }
        let config = config::Fleet { store: Some("s3://b".to_owned()), ..config(30, 1 << 20) };
        let (unsent, failed) = store.prune(&config, TODAY);
        assert!(change("-i"));
        assert_eq!((unsent, failed.is_some()), (Unsent { files: 2, rows: 0 }, true));
        assert_eq!(files(root.path()).len(), 1);
    }

    #[test]
    fn the_oldest_of_our_own_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let store = Store { root: root.path(), host: "h/1" };
        for (age, unit) in [(40, "a"), (3, "a"), (1, "b"), (0, "a")] {
            store.write(&place(TODAY - age, unit), age, &[7; 100]).unwrap();
        }
        let folder = |age: i64, unit: &str| {
            let day = format!("day={}", day_name(TODAY - age));
            root.path().join("functions/host=h%2F1").join(day).join(format!("unit={unit}"))
        };
        let other = root.path().join("functions/host=other/day=1999-01-01/unit=a");
        fs::create_dir_all(&other).unwrap();
        let strangers = [
            other.join("part-1-00000000.parquet"),
            folder(3, "a").join("notes.txt"),
            folder(0, "a").join("mine.parquet"),
        ];
        strangers.iter().for_each(|path| fs::write(path, [1; 5_000]).unwrap());
        let half = folder(0, "a").join("part-0-00000000.parquet.0123456789abcdef.part");
        fs::write(&half, "half").unwrap();
        let ours = |age: i64, unit: &str| {
            let entries = fs::read_dir(folder(age, unit)).into_iter().flatten().flatten();
            entries.filter(|entry| entry.file_name().to_str().unwrap().starts_with(BEGIN)).count()
        };
        assert!(store.prune(&config(30, 1 << 20), TODAY).1.is_none());
        assert_eq!([ours(40, "a"), ours(3, "a"), ours(1, "b"), ours(0, "a")], [0, 1, 1, 1]);
        assert!(!folder(40, "a").parent().unwrap().exists(), "the folder of the day is gone, too");
        assert!(store.prune(&config(30, 250), TODAY).1.is_none());
        assert_eq!([ours(3, "a"), ours(1, "b"), ours(0, "a")], [0, 1, 1]);
        assert!(strangers.iter().all(|path| path.exists()) && !half.exists());
    }
}
