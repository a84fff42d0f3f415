//! Makes few files of many: those of a table, a unit and a finished day.
//!
//! The new file gets its name when it is whole, and the old ones are removed after that. Where this
//! stops in between, the new file says for which files it stands: readers of ours count none twice, and
//! the next pass removes what was left, once it has read the new file. A pass makes one file, or looks at
//! some hundred, so that whoever waits for its end waits for a second or so.

use super::{
    claims::{Claims, DOUBTFUL},
    folders,
};
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
    collections::HashMap,
    ffi::OsStr,
    fs::File,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

/// The memory of rows that is worth a file, in bytes.
const WORTH: usize = 64 << 20;
/// Limit of a file that is put together with others, in bytes. Daemons write about a megabyte at most.
const SMALL: u64 = 8 << 20;
/// Limit of a file that stands for others.
const LARGE: u64 = 256 << 20;
/// The number of files that a pass looks at.
const AT_ONCE: usize = 256;
/// The name of the lock. No reader takes it for a table, and the daemon removes it with what is half
/// written.
const LOCK: &str = "part-lock.parquet.0000000000000000.part";

/// The result of a pass over a folder.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The files that others took the place of, and these.
    pub before: u64,
    pub after: u64,
    pub rows: u64,
    /// Files that could not be read, and why. They stay as they are.
    pub damaged: Vec<(PathBuf, String)>,
    /// The last file that was looked at, if there are more.
    pub next: Option<String>,
}

/// Returns the folders of finished days of a machine that have several files.
pub(crate) fn due(root: &Path, admits_host: impl Fn(&str) -> bool, today: i64) -> Vec<Due> {
    let mut all = Vec::new();
    for table in Table::ALL {
        let hosts = folders(&root.join(table.name()), "host").filter(|(host, _)| admits_host(host));
        for (day, folder) in hosts.flat_map(|(_, folder)| folders(&folder, "day")) {
            let Some(day) = day_named(&day).filter(|day| *day < today) else { continue };
            let units = folders(&folder, "unit");
            all.extend(units.filter_map(|(_, path)| Due::find(table, day, path)));
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
    /// A number for the names of its files: other names have another one.
    pub state: u64,
    /// The file after which the next pass begins.
    pub after: Option<String>,
}

impl Due {
    fn find(table: Table, day: i64, path: PathBuf) -> Option<Self> {
        let names = super::entries(&path).filter_map(|it| it.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| is_ours(name)).collect();
        names.sort_unstable();
        let mut state = DefaultHasher::new();
        names.hash(&mut state);
        let state = state.finish();
        (names.len() > 1).then_some(Self { table, day, path, state, after: None })
    }
}

/// Our names have no sign that needs care.
fn is_ours(name: &str) -> bool {
    name.ends_with(".parquet")
        && first_ms(name).is_some()
        && name.bytes().all(|sign| sign.is_ascii_graphic())
}

/// Returns what orders files: the earliest first.
fn order(name: &str) -> (Option<i64>, &str) {
    (first_ms(name), name)
}

/// Returns today, in days since 1970 in UTC.
pub(crate) fn today() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    day_of(i64::try_from(now.as_nanos()).unwrap_or(i64::MAX))
}

/// Puts small files of a folder together. Does nothing while another process does.
pub(crate) fn compact(due: &Due) -> io::Result<Outcome> {
    compact_with(due, sync)
}

/// Writes the names in a folder to the disk.
fn sync(place: &Place) -> io::Result<()> {
    place.path().parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn compact_with(
    Due { table, path, after, .. }: &Due,
    sync: fn(&Place) -> io::Result<()>,
) -> io::Result<Outcome> {
    let mut pass = Pass {
        table: *table,
        // The name only serves to find the folder.
        folder: Place::find(&path.join("x"), Owner::Ours)?,
        sync,
        open: None,
        reached: None,
        outcome: Outcome::default(),
    };
    let Some(_lock) = Lock::take(&pass.folder)? else { return Ok(pass.outcome) };
    let names = pass.names()?;
    let is_next = |name: &&String| after.as_ref().is_none_or(|after| order(name) > order(after));
    for (count, name) in names.iter().filter(is_next).enumerate() {
        if count == AT_ONCE || pass.outcome.after > 0 {
            pass.outcome.next = pass.reached.take();
            break;
        }
        pass.look_at(name)?;
    }
    pass.close()?;
    Ok(pass.outcome)
}

/// Keeps other processes away from a folder.
struct Lock {
    place: Place,
    file: File,
}

impl Lock {
    /// Returns `None` while another process has it.
    fn take(folder: &Place) -> io::Result<Option<Self>> {
        let place = folder.sibling(OsStr::new(LOCK));
        // Open to write: network file systems give no other such locks.
        let file = match place.open_locked(OFlags::WRONLY) {
            Err(FileError::Locked { .. } | FileError::Replaced { .. }) => return Ok(None),
            opened => opened?,
        };
        let lock = Self { place, file };
        // The file was opened even where there are no locks.
        flock(&lock.file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| io::Error::other(format!("files cannot be locked there: {error}")))?;
        Ok(Some(lock))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Without its lock the file means nothing.
        let _ = self.place.remove();
    }
}

struct Pass {
    table: Table,
    folder: Place,
    sync: fn(&Place) -> io::Result<()>,
    /// The rows of these files wait for more.
    open: Option<(Rows, Vec<String>)>,
    /// The last file that was looked at.
    reached: Option<String>,
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

fn read(place: &Place, limit: u64) -> Result<Rows, ReadError> {
    let mut bytes = Vec::new();
    place.open_to_read()?.take(limit).read_to_end(&mut bytes)?;
    Ok(Rows::read(&Part::open(bytes)?)?)
}

impl Pass {
    fn place(&self, name: &str) -> Place {
        self.folder.sibling(OsStr::new(name))
    }

    /// Returns the names of our files, the earliest first. Removes those for which others stand, and
    /// leaves out those of which nobody knows.
    fn names(&mut self) -> io::Result<Vec<String>> {
        let names = self.folder.names()?.into_iter().filter_map(|name| name.into_string().ok());
        let mut names: Vec<String> = names.filter(|name| is_ours(name)).collect();
        names.sort_by(|a, b| order(a).cmp(&order(b)));
        let of = |name: &String| {
            let place = self.place(name);
            place.size_of_ours().filter(|size| *size <= LARGE)?;
            Some((name.clone(), replaces(place.open_to_read().ok()?).ok()?))
        };
        let compacted = names.iter().filter(|name| is_compacted(name));
        let Claims { replaced, doubtful, unsure } = Claims::new(compacted.filter_map(of).collect());
        for name in &doubtful {
            self.damaged(name, DOUBTFUL.to_owned());
        }
        // What stands for others is read before they go. If it cannot be, all stay.
        let mut is_whole: HashMap<&str, bool> = HashMap::new();
        let (mut there, mut gone) = (Vec::new(), Vec::new());
        for name in names.iter().filter(|name| !doubtful.contains(*name) && !unsure.contains(*name))
        {
            let Some(by) = replaced.get(name) else {
                there.push(name.clone());
                continue;
            };
            let whole = match is_whole.get(&**by) {
                Some(whole) => *whole,
                None => {
                    let read = read(&self.place(by), LARGE);
                    let whole = read.is_ok();
                    if let Err(error) = read {
                        self.damaged(by, error.to_string());
                    }
                    is_whole.insert(by, whole);
                    whole
                }
            };
            if whole {
                gone.push(name.clone());
            }
        }
        self.remove(&gone)?;
        there.retain(|name| is_whole.get(&**name) != Some(&false));
        Ok(there)
    }

    fn damaged(&mut self, name: &str, why: String) {
        let path = self.place(name).path().to_owned();
        self.outcome.damaged.push((path, why));
    }

    fn remove(&self, names: &[String]) -> io::Result<()> {
        names.iter().try_for_each(|name| self.place(name).remove())
    }

    fn look_at(&mut self, name: &str) -> io::Result<()> {
        let place = self.place(name);
        if place.size_of_ours().is_some_and(|size| size <= SMALL) {
            match read(&place, SMALL) {
                Ok(rows) => {
                    if !self.add(name, rows)? {
                        return Ok(());
                    }
                }
                Err(error) => self.damaged(name, error.to_string()),
            }
        }
        self.reached = Some(name.to_owned());
        Ok(())
    }

    /// Returns false if the rows have to wait for another pass, since this one has made a file.
    fn add(&mut self, name: &str, rows: Rows) -> io::Result<bool> {
        let rest = match &mut self.open {
            Some((all, names)) => {
                let rest = all.append(rows).map_err(io::Error::other)?;
                if rest.is_none() {
                    names.push(name.to_owned());
                }
                rest
            }
            None => Some(rows),
        };
        if let Some(rows) = rest {
            // A file of another version, or there is no room.
            self.close()?;
            if self.outcome.after > 0 {
                return Ok(false);
            }
            self.open = Some((rows, vec![name.to_owned()]));
        }
        if self.open.as_ref().is_some_and(|(rows, _)| rows.bytes() >= WORTH) {
            self.close()?;
        }
        Ok(true)
    }

    /// Writes the rows that wait, and removes the files that they are of. One file alone stays.
    fn close(&mut self) -> io::Result<()> {
        let Some((rows, names)) = self.open.take().filter(|(_, names)| names.len() > 1) else {
            return Ok(());
        };
        let count = rows.count();
        let first = names.first().and_then(|name| first_ms(name)).unwrap_or(0);
        let content = rows.encode(self.table, &names)?;
        let mut random = [0; 4];
        getrandom(&mut random, GetRandomFlags::empty())?;
        let name = compacted_name(first, u32::from_ne_bytes(random), names.len());
        let place = self.place(&name);
        let temporary = place.temporary(OFlags::WRONLY)?;
        let mut file = temporary.file()?;
        file.write_all(&content)?;
        file.sync_all()?;
        temporary.persist_new(&place)?;
        // A crash must not leave the old files removed and the new one without its name.
        if let Err(error) = (self.sync)(&place)
            && !matches!(Errno::from_io_error(&error), Some(Errno::INVAL | Errno::NOTSUP))
        {
            // Engines would count both.
            place.remove()?;
            return Err(error);
        }
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
