//! Finds the files of a table that may have wanted rows, and reads them in parallel.

use crate::tables::{
    claims::{Claims, DOUBTFUL},
    entries, linked_folders,
};
use anyhow::{Context, ensure};
use ctrace_core::fleet::{
    Table, Wanted,
    compact::{is_compacted, replaces},
    decode::{Part, PartError},
    partition::{Partition, day_named},
};
use rayon::prelude::*;
use serde::Serialize;
use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

/// Limit of a file, in bytes. Those of ctrace have a few megabytes.
const MOST_BYTES: u64 = 256 << 20;
/// Limit of files.
const MOST_FILES: usize = 1_000_000;

/// A file, and where it belongs.
pub(super) struct Found {
    pub path: PathBuf,
    pub host: Arc<str>,
    pub unit: Arc<str>,
    /// It shares rows with another file, and nobody knows which one counts.
    is_doubtful: bool,
}

/// The count of what was read.
#[derive(Default)]
pub(super) struct Read {
    pub files: u64,
    pub rows: u64,
    pub damaged: Vec<(PathBuf, String)>,
}

impl Read {
    pub(super) fn add(&mut self, other: Self) {
        self.files += other.files;
        self.rows += other.rows;
        self.damaged.extend(other.damaged);
    }

    /// Returns what JSON has of the damaged files.
    pub(super) fn damaged(&self) -> Vec<Damaged<'_>> {
        self.damaged.iter().map(|(file, why)| Damaged { file, why }).collect()
    }
}

/// A file that could not be read.
#[derive(Serialize)]
pub(super) struct Damaged<'a> {
    file: &'a Path,
    why: &'a str,
}

#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("is no file")]
    NoFile,
    #[error("has more than 256 MiB, which no file of ctrace has")]
    Large,
    #[error("{}", DOUBTFUL)]
    Doubtful,
    #[error(transparent)]
    Part(#[from] PartError),
}

/// Returns the files of a table that may have wanted rows.
pub(super) fn find(root: &Path, table: Table, wanted: &Wanted) -> anyhow::Result<Vec<Found>> {
    let mut files = Vec::new();
    for (host, folder) in linked_folders(&root.join(table.name()), "host") {
        if !wanted.admits_host(&host) {
            continue;
        }
        for (name, folder) in linked_folders(&folder, "day") {
            let Some(day) = day_named(&name) else { continue };
            for (unit, folder) in linked_folders(&folder, "unit") {
                let place = Partition { table, host: host.clone(), day, unit };
                if !wanted.admits(&place) {
                    continue;
                }
                let (host, unit): (Arc<str>, Arc<str>) = (host.as_str().into(), place.unit.into());
                for (path, is_doubtful) in counted(&folder) {
                    let (host, unit) = (Arc::clone(&host), Arc::clone(&unit));
                    files.push(Found { path, host, unit, is_doubtful });
                    ensure!(files.len() <= MOST_FILES, "more than a million files: choose a part");
                }
            }
        }
    }
    // The same order every time.
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Refuses a folder that has no tables.
pub(super) fn check(root: &Path) -> anyhow::Result<()> {
    let shown = root.display();
    root.read_dir().with_context(|| format!("cannot read the folder {shown}"))?;
    let has_any = Table::ALL.iter().any(|table| root.join(table.name()).is_dir());
    ensure!(
        has_any,
        "{shown} has no tables: they are in {shown}/functions/host=…, where `folder` in [fleet] of a \
         daemon is this folder"
    );
    Ok(())
}

/// Returns the files of a folder, without those for which others stand. True: it is doubtful.
fn counted(folder: &Path) -> Vec<(PathBuf, bool)> {
    let all: Vec<PathBuf> = entries(folder).map(|it| it.path()).filter(|it| is_part(it)).collect();
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let mut claims = Claims::default();
    if all.len() > 1 {
        // One that cannot be read stands for none, and is told later.
        let of = |path: &PathBuf| {
            let name = name(path).filter(|name| is_compacted(name))?;
            Some((name, replaces(file(path).ok()?).ok()?))
        };
        claims = Claims::new(all.iter().filter_map(of).collect());
    }
    let judged = all.into_iter().filter_map(|path| match name(&path) {
        Some(name) if claims.replaced.contains_key(&name) => None,
        Some(name) => Some((path, claims.doubtful.contains(&name))),
        None => Some((path, false)),
    });
    judged.collect()
}

/// Files that are being written have another ending.
fn is_part(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "parquet")
}

/// Reads all files, and reduces what `read` makes of each row group. Returns the number of rows from
/// `read`.
pub(super) fn each<T: Send>(
    files: &[Found],
    new: impl Fn() -> T + Sync,
    read: impl Fn(&mut T, &Found, &Part, usize) -> Result<u64, PartError> + Sync,
    merge: impl Fn(T, T) -> T + Sync + Send,
) -> (T, Read) {
    let damaged = Mutex::new(Vec::new());
    let of_file = |file: &Found| -> (T, u64) {
        let opened = if file.is_doubtful { Err(ReadError::Doubtful) } else { open(&file.path) };
        let opened = opened.and_then(|part| {
            let groups = (0..part.groups()).into_par_iter();
            let groups = groups.map(|group| {
                let mut all = new();
                let rows = read(&mut all, file, &part, group)?;
                Ok((all, rows))
            });
            // Nothing of a damaged file counts: half of an interval would be a wrong number.
            groups.try_reduce(|| (new(), 0), |a, b| Ok((merge(a.0, b.0), a.1 + b.1)))
        });
        opened.unwrap_or_else(|error| {
            let mut damaged = damaged.lock().unwrap_or_else(PoisonError::into_inner);
            damaged.push((file.path.clone(), error.to_string()));
            (new(), 0)
        })
    };
    let (all, rows) =
        files.par_iter().map(of_file).reduce(|| (new(), 0), |a, b| (merge(a.0, b.0), a.1 + b.1));
    let mut damaged = damaged.into_inner().unwrap_or_else(PoisonError::into_inner);
    damaged.sort();
    let files = (files.len() - damaged.len()) as u64;
    (all, Read { files, rows, damaged })
}

/// Opens a file, and nothing that would have us wait, or needs more memory than any file of ctrace.
fn file(path: &Path) -> Result<File, ReadError> {
    let meta = path.metadata()?;
    if !meta.is_file() {
        return Err(ReadError::NoFile);
    }
    if meta.len() > MOST_BYTES {
        return Err(ReadError::Large);
    }
    Ok(File::open(path)?)
}

fn open(path: &Path) -> Result<Part, ReadError> {
    let mut bytes = Vec::new();
    file(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(Part::open(bytes)?)
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
