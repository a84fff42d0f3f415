//! Makes few files of many: those of a table, a unit and a finished day.
//!
//! The new file gets its name when it is whole, and the old ones are removed after that. Where this
//! stops in between, the new file says for which files it stands: readers of ours count none twice, and
//! the next pass removes what was left.

use super::folders;
use crate::files::{FileError, Owner, Place};
use ctrace_core::fleet::{
    Table,
    compact::{Rows, compacted_name, first_ms, is_compacted, replaces},
    decode::{Part, PartError},
    partition::{day_named, day_of},
};
use rustix::{
    fs::{FlockOperation, OFlags, flock},
    io::Errno,
    rand::{GetRandomFlags, getrandom},
};
use std::{
    collections::HashSet,
    ffi::OsStr,
    fs::File,
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

/// The memory of rows that is worth a file, in bytes.
const WORTH: usize = 64 << 20;
/// Limit of a file that is put together with others, in bytes. Daemons write about a megabyte at most.
const SMALL: u64 = 8 << 20;

/// The result of a pass over a folder.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The files that others took the place of, and these.
    pub before: u64,
    pub after: u64,
    pub rows: u64,
    /// Files that could not be read, and why. They stay as they are.
    pub damaged: Vec<(PathBuf, String)>,
}

/// Returns the folders of finished days of a machine, each with its table and its day, that a pass has
/// something to do in.
pub(crate) fn due(root: &Path, admits_host: impl Fn(&str) -> bool, today: i64) -> Vec<Due> {
    let mut all = Vec::new();
    for table in Table::ALL {
        let hosts = folders(&root.join(table.name()), "host").filter(|(host, _)| admits_host(host));
        for (day, folder) in hosts.flat_map(|(_, folder)| folders(&folder, "day")) {
            let Some(day) = day_named(&day).filter(|day| *day < today) else { continue };
            let units = folders(&folder, "unit").map(|(_, path)| Due { table, day, path });
            all.extend(units.filter(Due::is_worth_it));
        }
    }
    all
}

/// A folder of a finished day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    pub table: Table,
    pub day: i64,
    pub path: PathBuf,
}

impl Due {
    /// True if there are several files, and not all of them stand for others.
    fn is_worth_it(&self) -> bool {
        let names = super::entries(&self.path).filter_map(|it| it.file_name().into_string().ok());
        let ours: Vec<String> = names.filter(|name| is_ours(name)).collect();
        ours.len() > 1 && !ours.iter().all(|name| is_compacted(name))
    }
}

fn is_ours(name: &str) -> bool {
    name.ends_with(".parquet") && first_ms(name).is_some()
}

/// Returns today, in days since 1970 in UTC.
pub(crate) fn today() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    day_of(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX))
}

/// Puts the small files of a folder together. Does nothing while another process does.
pub(crate) fn compact(Due { table, path, .. }: &Due) -> io::Result<Outcome> {
    let mut pass = Pass {
        table: *table,
        // The name only serves to find the folder.
        folder: Place::find(&path.join("x"), Owner::Ours)?,
        open: None,
        outcome: Outcome::default(),
    };
    let lock = File::open(path)?;
    // Some file systems have no locks.
    if flock(&lock, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Ok(pass.outcome);
    }
    for name in pass.names()? {
        let place = pass.folder.sibling(OsStr::new(&name));
        if place.size_of_ours().is_none_or(|size| size > SMALL) {
            continue;
        }
        match read(&place) {
            Ok(rows) => pass.add(name, rows)?,
            Err(error) => {
                pass.outcome.damaged.push((place.path().to_owned(), error.to_string()));
            }
        }
    }
    pass.close()?;
    Ok(pass.outcome)
}

struct Pass {
    table: Table,
    folder: Place,
    /// The rows of these files wait for more.
    open: Option<(Rows, Vec<String>)>,
    outcome: Outcome,
}

#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Part(#[from] PartError),
}

fn read(place: &Place) -> Result<Rows, ReadError> {
    let mut bytes = Vec::new();
    place.open_to_read()?.take(SMALL).read_to_end(&mut bytes)?;
    Ok(Rows::read(&Part::open(bytes)?)?)
}

impl Pass {
    /// Returns the names of our files, the earliest first. Removes those for which others stand.
    fn names(&self) -> io::Result<Vec<String>> {
        let names = self.folder.names()?.into_iter().filter_map(|name| name.into_string().ok());
        let mut names: Vec<String> = names.filter(|name| is_ours(name)).collect();
        names.sort_by(|a, b| first_ms(a).cmp(&first_ms(b)).then_with(|| a.cmp(b)));
        let mut replaced = HashSet::new();
        for name in names.iter().filter(|name| is_compacted(name)) {
            let place = self.folder.sibling(OsStr::new(name));
            if place.size_of_ours().is_some()
                && let Ok(file) = place.open_to_read()
                && let Ok(files) = replaces(file)
            {
                replaced.extend(files.into_iter().filter(|other| other != name));
            }
        }
        let (gone, there): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| replaced.contains(name));
        self.remove(&gone)?;
        Ok(there)
    }

    fn remove(&self, names: &[String]) -> io::Result<()> {
        names.iter().try_for_each(|name| self.folder.sibling(OsStr::new(name)).remove())
    }

    fn add(&mut self, name: String, rows: Rows) -> io::Result<()> {
        let Some((all, names)) = &mut self.open else {
            self.open = Some((rows, vec![name]));
            return Ok(());
        };
        match all.append(rows).map_err(io::Error::other)? {
            None => names.push(name),
            // A file of another version.
            Some(rows) => {
                self.close()?;
                self.open = Some((rows, vec![name]));
            }
        }
        match self.open.as_ref().is_some_and(|(rows, _)| rows.bytes() >= WORTH) {
            true => self.close(),
            false => Ok(()),
        }
    }

    /// Writes the rows that wait, and removes the files that they are of.
    fn close(&mut self) -> io::Result<()> {
        let Some((rows, names)) = self.open.take() else { return Ok(()) };
        if let [only] = &*names
            && is_compacted(only)
        {
            return Ok(());
        }
        let count = rows.count();
        let first = names.first().and_then(|name| first_ms(name)).unwrap_or(0);
        let content = rows.encode(self.table, &names)?;
        let mut random = [0; 4];
        getrandom(&mut random, GetRandomFlags::empty())?;
        let name = compacted_name(first, u32::from_ne_bytes(random), names.len());
        let place = self.folder.sibling(OsStr::new(&name));
        let temporary = place.temporary(OFlags::WRONLY)?;
        let mut file = temporary.file()?;
        file.write_all(&content)?;
        file.sync_all()?;
        temporary.persist_new(&place)?;
        // A crash must not leave the old files removed and the new one without its name.
        let folder = place.path().parent().map(File::open).transpose()?;
        folder.map_or(Ok(()), |folder| folder.sync_all())?;
        self.remove(&names)?;
        self.outcome.before += names.len() as u64;
        self.outcome.after += 1;
        self.outcome.rows += count as u64;
        Ok(())
    }
}

#[cfg(test)]
#[path = "compact_tests.rs"]
mod tests;
