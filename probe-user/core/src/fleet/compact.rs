//! Makes one file of many: the same rows, sorted anew.
//!
//! Cells are copied as they are, whatever columns there are, so that files of other versions keep what
//! this one does not know. Only files with the very same columns are put together.
//!
//! A file that stands for others has their names in its metadata. As long as some of them are still
//! there, readers of ours pass over them: nothing counts twice, wherever a machine stopped.

use super::Table;
use super::cells::Cells;
use super::decode::{Part, PartError, guarded};
use super::encode::{self, EncodeError, GROUP};
use super::pages;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::schema::types::TypePtr;
use std::cmp::Ordering;
use std::sync::Arc;

/// The key of the names in a file's metadata.
const REPLACES: &str = "ctrace.replaces";
/// Limit of names, and of the bytes of each.
const MOST_NAMES: usize = 100_000;
const LONGEST_NAME: usize = 255;
/// Limit of the files that are put together at a time.
const MOST_FILES: usize = 1_000;
/// Limit of the memory of the rows of a file, in bytes. What is written can be read again.
const MOST_BYTES: usize = 128 << 20;

/// Returns the name of a file that stands for so many others.
pub fn compacted_name(first_ms: i64, random: u32, files: usize) -> String {
    format!("part-{first_ms}-{random:08x}-of-{files}.parquet")
}

/// Returns true for the name of a file that stands for others.
pub fn is_compacted(name: &str) -> bool {
    let count = name.strip_suffix(".parquet").and_then(|name| name.rsplit_once("-of-"));
    count.is_some_and(|(name, count)| name.starts_with("part-") && count.parse::<u32>().is_ok())
}

/// Returns the time in the name of a file, in milliseconds since 1970.
pub fn first_ms(name: &str) -> Option<i64> {
    let rest = name.strip_prefix("part-")?;
    let end = rest.char_indices().skip(1).find(|(_, sign)| *sign == '-')?.0;
    rest[..end].parse().ok()
}

/// Returns the names of the files for which this one stands. Only its end is read.
pub fn replaces(file: impl ChunkReader + 'static) -> Result<Vec<String>, PartError> {
    guarded(|| Ok(names(&SerializedFileReader::new(file)?)))
}

fn names(reader: &impl FileReader) -> Vec<String> {
    let all = reader.metadata().file_metadata().key_value_metadata().into_iter().flatten();
    let names = all.filter(|pair| pair.key == REPLACES).filter_map(|pair| pair.value.as_deref());
    let names = names.flat_map(str::lines).filter(|name| name.len() <= LONGEST_NAME);
    names.take(MOST_NAMES).map(str::to_owned).collect()
}

/// The rows of files with the same columns.
pub struct Rows {
    schema: TypePtr,
    columns: Vec<(String, Cells)>,
    rows: usize,
    /// The files for which those stood that were read.
    replaced: Vec<String>,
}

impl Rows {
    /// Reads a file: all of it, or nothing.
    pub fn read(part: &Part) -> Result<Self, PartError> {
        guarded(|| {
            let metadata = part.reader.metadata().file_metadata();
            let descriptors = metadata.schema_descr().columns();
            let columns =
                descriptors.iter().map(|column| Ok((column.path().string(), Cells::new(column)?)));
            let mut columns = columns.collect::<Result<Vec<_>, PartError>>()?;
            if columns.is_empty() {
                return Err(PartError::Broken("it has no columns"));
            }
            let (mut all, mut bytes) = (0_usize, 0);
            for group in 0..part.groups() {
                let reader = part.reader.get_row_group(group)?;
                let rows = usize::try_from(reader.metadata().num_rows()).unwrap_or(usize::MAX);
                if reader.metadata().num_columns() != columns.len() {
                    return Err(PartError::Broken("a row group has other columns"));
                }
                for (place, (_, cells)) in columns.iter_mut().enumerate() {
                    pages::check(&part.bytes, reader.metadata().column(place))?;
                    bytes -= cells.bytes();
                    let room = MOST_BYTES.saturating_sub(bytes);
                    if cells.read(reader.get_column_reader(place)?, room)? != rows {
                        return Err(PartError::Broken("its columns differ in length"));
                    }
                    bytes += cells.bytes();
                }
                all = all.saturating_add(rows);
            }
            if u32::try_from(all).is_err() {
                return Err(PartError::TooLarge);
            }
            let schema = metadata.schema_descr().root_schema_ptr();
            Ok(Self { schema, columns, rows: all, replaced: names(&part.reader) })
        })
    }

    /// Adds the rows of another file, or returns them if the columns differ, or if there is no room.
    pub fn append(&mut self, other: Self) -> Result<Option<Self>, PartError> {
        let names = self.replaced.len() + other.replaced.len();
        let has_room = self.bytes() + other.bytes() <= MOST_BYTES
            && names <= MOST_NAMES - MOST_FILES
            && u32::try_from(self.rows + other.rows).is_ok();
        if self.schema != other.schema || !has_room {
            return Ok(Some(other));
        }
        for ((_, mine), (_, other)) in self.columns.iter_mut().zip(other.columns) {
            mine.append(other)?;
        }
        self.rows += other.rows;
        self.replaced.extend(other.replaced);
        Ok(None)
    }

    /// Returns the number of rows.
    pub fn count(&self) -> usize {
        self.rows
    }

    /// Returns about how much memory the rows need.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(|(_, cells)| cells.bytes()).sum()
    }

    /// Makes a file of all rows, which stands for these files and for those for which they stood.
    pub fn encode(self, table: Table, files: &[String]) -> Result<Vec<u8>, EncodeError> {
        encode::guarded(|| self.written(table, files))
    }

    fn written(self, table: Table, files: &[String]) -> Result<Vec<u8>, EncodeError> {
        if files.len() + self.replaced.len() > MOST_NAMES {
            return Err(
                ParquetError::General("it would stand for too many files".to_owned()).into()
            );
        }
        let mut order: Vec<u32> = (0..self.rows as u32).collect();
        let keys = table.order().iter().filter_map(|key| {
            self.columns.iter().find(|(name, _)| name == key).map(|(_, cells)| cells)
        });
        let keys: Vec<&Cells> = keys.collect();
        order.sort_by(|a, b| {
            let mut by = keys.iter().map(|cells| cells.compare(*a as usize, *b as usize));
            by.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
        });
        let properties = Arc::new(encode::properties(&self.schema)?);
        let mut file = encode::File::new(Vec::new(), Arc::clone(&self.schema), properties)?;
        for rows in order.chunks(GROUP) {
            let mut group = file.next_row_group()?;
            for (_, cells) in &self.columns {
                let Some(mut column) = group.next_column()? else { break };
                cells.write(rows, &mut column)?;
                column.close()?;
            }
            group.close()?;
        }
        encode::sign(&mut file);
        let names: Vec<&str> = files.iter().chain(&self.replaced).map(String::as_str).collect();
        file.append_key_value_metadata(KeyValue::new(REPLACES.to_owned(), names.join("\n")));
        Ok(file.into_inner()?)
    }
}

#[cfg(test)]
#[path = "compact_tests.rs"]
mod tests;
