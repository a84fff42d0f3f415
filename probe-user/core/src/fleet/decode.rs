//! Reads the rows of a file that are wanted.
//!
//! The rows of a row group are read some at a time, so that a file of any claims needs little memory.
//! Every claim of a file is checked by us or by its reader. Should that one panic all the same, the
//! file counts as broken.

mod slow;

pub use slow::SlowSeen;

use super::buckets::Buckets;
use super::column::Column;
use super::encode::kind_named;
use super::interned::{Interned, clean};
use super::rows::{FunctionSums, Losses};
use super::{FunctionNames, Wanted};
use crate::stats::Tally;
use crate::waits::Waits;
use bytes::Bytes;
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, FixedLenByteArrayType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Rows that are read at a time.
const SOME: usize = 4_096;
/// Limit of the row groups of a file.
const MOST_GROUPS: usize = 1 << 16;
/// Limit of the frames of a path: more than ctrace records.
const MOST_FRAMES: usize = 4_096;

/// The reason why a file is left out.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    #[error("is no Parquet file that can be read: {0}")]
    Parquet(#[from] ParquetError),
    #[error("is damaged: {0}")]
    Broken(&'static str),
    #[error("has no column `{0}`: it is of another version, or of another program")]
    NoColumn(&'static str),
    #[error("has a column `{0}` of another type")]
    OtherType(&'static str),
    #[error("would unpack to more than any file of ctrace")]
    TooLarge,
}

/// An open file.
pub struct Part {
    pub(super) bytes: Bytes,
    pub(super) reader: SerializedFileReader<Bytes>,
}

/// A row of `functions`.
pub struct FunctionSeen<'a> {
    pub names: &'a Arc<FunctionNames>,
    pub version: Option<&'a Arc<str>>,
    pub start_ns: i64,
    pub end_ns: i64,
    pub sums: &'a FunctionSums,
}

/// A row of `paths`.
pub struct PathSeen<'a> {
    pub path: &'a [Arc<str>],
    pub calls: u64,
    pub total_ns: u64,
    pub self_ns: u64,
}

/// A row of `targets`.
pub struct TargetSeen<'a> {
    pub version: Option<&'a Arc<str>>,
    pub start_ns: i64,
    pub end_ns: i64,
    pub processes: u64,
    pub calls: u64,
    pub cost_ns: u64,
    pub cpu_ns: Option<u64>,
    pub losses: Losses,
}

impl Part {
    /// Opens a file that is in memory.
    pub fn open(bytes: Vec<u8>) -> Result<Self, PartError> {
        let bytes = Bytes::from(bytes);
        let reader = guarded(|| Ok(SerializedFileReader::new(bytes.clone())?))?;
        match reader.metadata().num_row_groups() {
            0..=MOST_GROUPS => Ok(Self { bytes, reader }),
            _ => Err(PartError::TooLarge),
        }
    }

    /// Returns the number of row groups.
    pub fn groups(&self) -> usize {
        self.reader.metadata().num_row_groups()
    }

    /// Returns the number of rows that the file says to have.
    pub fn rows(&self) -> u64 {
        u64::try_from(self.reader.metadata().file_metadata().num_rows()).unwrap_or(0)
    }

    fn column<T: DataType>(
        &self,
        group: usize,
        name: &'static str,
    ) -> Result<Column<T>, PartError> {
        Column::open(&self.bytes, &self.reader, group, name)
    }

    fn numbers<const N: usize>(
        &self,
        group: usize,
        names: [&'static str; N],
    ) -> Result<Numbers<N>, PartError> {
        let columns = names.map(|name| self.column::<Int64Type>(group, name));
        let columns: Vec<_> = columns.into_iter().collect::<Result<_, _>>()?;
        columns.try_into().map(Numbers).map_err(|_| PartError::Broken("columns are missing"))
    }

    /// Visits the wanted rows of a row group of `functions`. Returns how many there were.
    pub fn functions(
        &self,
        group: usize,
        wanted: &Wanted,
        mut visit: impl FnMut(&FunctionSeen<'_>),
    ) -> Result<u64, PartError> {
        guarded(|| {
            let mut numbers = self.numbers(group, FUNCTION_NUMBERS)?;
            let [mut version, mut function, mut object, mut kind, mut marker, mut short, mut full] =
                self.texts(group, FUNCTION_TEXTS)?;
            let mut squares = self.column::<FixedLenByteArrayType>(group, "squares")?;
            let mut min = self.column::<Int64Type>(group, "min_ns")?;
            let mut max = self.column::<Int64Type>(group, "max_ns")?;
            let mut buckets = self.column::<Int32Type>(group, "buckets.list.element")?;
            let mut counts = self.column::<Int64Type>(group, "counts.list.element")?;
            let (mut names, mut versions) = (Interned::default(), Interned::default());
            let mut visited = 0;
            loop {
                let rows = numbers.fill()?;
                let texts = [
                    &mut version,
                    &mut function,
                    &mut object,
                    &mut kind,
                    &mut marker,
                    &mut short,
                    &mut full,
                ];
                texts.into_iter().try_for_each(|column| same(column, rows))?;
                same(&mut squares, rows)?;
                [&mut min, &mut max].into_iter().try_for_each(|column| same(column, rows))?;
                same(&mut buckets, rows)?;
                same(&mut counts, rows)?;
                if rows == 0 {
                    return Ok(visited);
                }
                for row in 0..rows {
                    let of = numbers.row(row);
                    let [
                        start,
                        end,
                        timed,
                        untimed,
                        headless,
                        total,
                        timed_ns,
                        own,
                        active,
                        inner,
                        cost,
                        armed,
                        lost,
                    ] = of;
                    if !wanted.has_time(start) {
                        continue;
                    }
                    let version = versions.text(version.one(row));
                    if !wanted.has_version(version.as_deref()) {
                        continue;
                    }
                    let key = [&function, &object, &kind, &marker, &short, &full]
                        .map(|column| column.one(row).cloned());
                    let names = names.get(key, function_names);
                    if !wanted.has_function(&names) {
                        continue;
                    }
                    let mut sums = FunctionSums {
                        tally: Tally {
                            timed: count(timed),
                            untimed: count(untimed),
                            timed_ns: count(timed_ns),
                            untimed_ns: count(total.saturating_sub(timed_ns)),
                            self_ns: count(own),
                            min_ns: min.one(row).map_or(u64::MAX, |ns| count(*ns)),
                            max_ns: max.one(row).map_or(0, |ns| count(*ns)),
                            squares: squares.one(row).map_or(0, |it| unsigned(it.data())),
                            // The tables have no waits.
                            waits: Waits::default(),
                        },
                        headless: count(headless),
                        active_ns: count(active),
                        innermost_ns: count(inner),
                        buckets: Buckets::default(),
                        cost_ns: count(cost),
                        armed_ns: count(armed),
                        lost_events: count(lost),
                    };
                    for (bucket, calls) in buckets.of(row).iter().zip(counts.of(row)) {
                        let bucket = usize::try_from(*bucket).unwrap_or(usize::MAX);
                        sums.buckets.add(bucket, count(*calls));
                    }
                    visited += 1;
                    visit(&FunctionSeen {
                        names: &names,
                        version: version.as_ref(),
                        start_ns: start,
                        end_ns: end,
                        sums: &sums,
                    });
                }
            }
        })
    }

    /// Visits the wanted rows of a row group of `paths`.
    pub fn paths(
        &self,
        group: usize,
        wanted: &Wanted,
        mut visit: impl FnMut(&PathSeen<'_>),
    ) -> Result<u64, PartError> {
        guarded(|| {
            let mut numbers =
                self.numbers(group, ["start_ns", "end_ns", "calls", "total_ns", "self_ns"])?;
            let [mut version] = self.texts(group, ["version"])?;
            let mut path = self.column::<ByteArrayType>(group, "path.list.element")?;
            let (mut frames, mut versions) = (Interned::default(), Interned::default());
            let mut visited = 0;
            loop {
                let rows = numbers.fill()?;
                same(&mut version, rows)?;
                same(&mut path, rows)?;
                if rows == 0 {
                    return Ok(visited);
                }
                for row in 0..rows {
                    let [start, _, calls, total, own] = numbers.row(row);
                    let version = versions.text(version.one(row));
                    if !wanted.has_time(start) || !wanted.has_version(version.as_deref()) {
                        continue;
                    }
                    let path: Vec<Arc<str>> = (path.of(row).iter().take(MOST_FRAMES))
                        .filter_map(|frame| frames.text(Some(frame)))
                        .collect();
                    visited += 1;
                    visit(&PathSeen {
                        path: &path,
                        calls: count(calls),
                        total_ns: count(total),
                        self_ns: count(own),
                    });
                }
            }
        })
    }

    /// Visits the wanted rows of a row group of `targets`. Functions are not asked for.
    pub fn targets(
        &self,
        group: usize,
        wanted: &Wanted,
        mut visit: impl FnMut(&TargetSeen<'_>),
    ) -> Result<u64, PartError> {
        guarded(|| {
            let mut numbers = self.numbers(group, TARGET_NUMBERS)?;
            let [mut version] = self.texts(group, ["version"])?;
            let mut processes = self.column::<Int32Type>(group, "processes")?;
            let mut cpu = self.column::<Int64Type>(group, "cpu_ns")?;
            let mut versions = Interned::default();
            let mut visited = 0;
            loop {
                let rows = numbers.fill()?;
                same(&mut version, rows)?;
                same(&mut processes, rows)?;
                same(&mut cpu, rows)?;
                if rows == 0 {
                    return Ok(visited);
                }
                for row in 0..rows {
                    let [start, end, calls, cost, losses @ ..] = numbers.row(row);
                    let version = versions.text(version.one(row));
                    if !wanted.has_time(start) || !wanted.has_version(version.as_deref()) {
                        continue;
                    }
                    let [events, late, decode_errors, untimed, open, headless, pathless] =
                        losses.map(count);
                    visited += 1;
                    visit(&TargetSeen {
                        version: version.as_ref(),
                        start_ns: start,
                        end_ns: end,
                        processes: processes.one(row).map_or(0, |n| count(i64::from(*n))),
                        calls: count(calls),
                        cost_ns: count(cost),
                        cpu_ns: cpu.one(row).map(|ns| count(*ns)),
                        losses: Losses {
                            events,
                            late,
                            decode_errors,
                            untimed,
                            open,
                            headless,
                            calls_without_path: pathless,
                        },
                    });
                }
            }
        })
    }

    fn texts<const N: usize>(
        &self,
        group: usize,
        names: [&'static str; N],
    ) -> Result<[Column<ByteArrayType>; N], PartError> {
        let columns = names.map(|name| self.column::<ByteArrayType>(group, name));
        let columns: Vec<_> = columns.into_iter().collect::<Result<_, _>>()?;
        columns.try_into().map_err(|_| PartError::Broken("columns are missing"))
    }
}

const FUNCTION_NUMBERS: [&str; 13] = [
    "start_ns",
    "end_ns",
    "timed",
    "untimed",
    "headless",
    "total_ns",
    "timed_ns",
    "self_ns",
    "active_ns",
    "innermost_ns",
    "cost_ns",
    "armed_ns",
    "lost_events",
];
const FUNCTION_TEXTS: [&str; 7] =
    ["version", "function", "object", "kind", "marker_group", "short_name", "full_name"];
const TARGET_NUMBERS: [&str; 11] = [
    "start_ns",
    "end_ns",
    "calls",
    "cost_ns",
    "lost_events",
    "late_events",
    "decode_errors",
    "untimed",
    "open",
    "headless",
    "calls_without_path",
];

/// Columns of required numbers.
struct Numbers<const N: usize>([Column<Int64Type>; N]);

impl<const N: usize> Numbers<N> {
    fn fill(&mut self) -> Result<usize, PartError> {
        let [first, others @ ..] = self.0.as_mut_slice() else { return Ok(0) };
        let rows = first.fill(SOME)?;
        others.iter_mut().try_for_each(|column| same(column, rows))?;
        Ok(rows)
    }

    fn row(&self, row: usize) -> [i64; N] {
        self.0.each_ref().map(|column| column.one(row).copied().unwrap_or(0))
    }
}

/// Reads as many rows as there are of the other columns.
fn same<T: DataType>(column: &mut Column<T>, rows: usize) -> Result<(), PartError> {
    match column.fill(rows)? == rows {
        true => Ok(()),
        false => Err(PartError::Broken("its columns differ in length")),
    }
}

/// Returns a number that is never negative in our files.
fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn unsigned(bytes: &[u8]) -> u128 {
    bytes.try_into().map_or(0, |bytes| u128::try_from(i128::from_be_bytes(bytes)).unwrap_or(0))
}

fn function_names(key: &[Option<ByteArray>; 6]) -> Arc<FunctionNames> {
    let text = |at: usize| key[at].as_ref().map(clean);
    Arc::new(FunctionNames {
        function: text(0).unwrap_or_default(),
        object: text(1).unwrap_or_default(),
        kind: kind_named(&text(2).unwrap_or_default()),
        group: text(3),
        short_name: text(4),
        full_name: text(5),
    })
}

pub(super) fn guarded<T>(read: impl FnOnce() -> Result<T, PartError>) -> Result<T, PartError> {
    let panicked = |_| Err(PartError::Broken("its reader gave up"));
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(panicked)
}
