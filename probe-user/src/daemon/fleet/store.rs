//! The folder of tables: whole files of this machine, and the oldest ones removed.

use crate::{
    daemon::config,
    files::{self, FileError, Owner, Place},
};
use ctrace_core::fleet::{
    Table,
    partition::{Partition, day_named, folder, value},
};
use rustix::{
    fs::OFlags,
    rand::{GetRandomFlags, getrandom},
};
use std::{
    ffi::OsStr,
    fs, io,
    io::Write as _,
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
        // The name itself must survive a crash, too.
        fs::File::open(&folder)?.sync_all()
    }

    /// Removes files of this machine that are too old or too many, and what a killed daemon left.
    pub(super) fn prune(&self, config: &config::Fleet, today: i64) -> io::Result<()> {
        let mut all = Vec::new();
        for table in Table::ALL {
            let host = self.root.join(table.name()).join(folder("host", self.host));
            for (day, folder) in folders(&host, "day") {
                let Some(day) = day_named(&day) else { continue };
                for (_, folder) in folders(&folder, "unit") {
                    all.extend(stored(&folder, day)?);
                }
            }
        }
        all.sort_by_key(|file| (file.day, file.modified));
        let mut bytes = 0_u64;
        for file in all.into_iter().rev() {
            bytes = bytes.saturating_add(file.size);
            if today - file.day >= i64::from(config.keep_days) || bytes > config.keep_bytes {
                file.place.remove()?;
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
        Ok(())
    }
}

/// Returns the folders of a key, with their values. Links are none.
fn folders(path: &Path, key: &str) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let named =
        folders.filter_map(|entry| Some((value(key, entry.file_name().to_str()?)?, entry.path())));
    named.collect()
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
