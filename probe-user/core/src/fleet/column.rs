//! Reads a column of a row group, some rows at a time.

use super::decode::PartError;
use super::pages;
use bytes::Bytes;
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::DataType;
use parquet::file::reader::{FileReader, SerializedFileReader};

/// A column, and the rows of it that were read last.
pub(super) struct Column<T: DataType> {
    reader: ColumnReaderImpl<T>,
    /// The level of a value that is there.
    top: i16,
    is_list: bool,
    values: Vec<T::T>,
    levels: Vec<i16>,
    goes_on: Vec<i16>,
    /// Where the values of each row end, unless each row has one.
    ends: Vec<usize>,
}

impl<T: DataType> Column<T> {
    /// Opens the column of this name. A list's name ends in `.list.element`.
    pub(super) fn open(
        file: &Bytes,
        reader: &SerializedFileReader<Bytes>,
        group: usize,
        name: &'static str,
    ) -> Result<Self, PartError> {
        let columns = reader.metadata().file_metadata().schema_descr().columns();
        let place = columns.iter().position(|column| column.path().string() == name);
        let place = place.ok_or(PartError::NoColumn(name))?;
        let column = &columns[place];
        let is_list = name.ends_with(".list.element");
        let fits = column.physical_type() == T::get_physical_type()
            && column.max_rep_level() == i16::from(is_list)
            && column.max_def_level() <= 3;
        if !fits {
            return Err(PartError::OtherType(name));
        }
        let group = reader.get_row_group(group)?;
        if group.metadata().num_columns() <= place {
            return Err(PartError::NoColumn(name));
        }
        pages::check(file, group.metadata().column(place))?;
        Ok(Self {
            reader: get_typed_column_reader(group.get_column_reader(place)?),
            top: column.max_def_level(),
            is_list,
            values: Vec::new(),
            levels: Vec::new(),
            goes_on: Vec::new(),
            ends: Vec::new(),
        })
    }

    /// Reads the next rows, and returns how many there were.
    pub(super) fn fill(&mut self, rows: usize) -> Result<usize, PartError> {
        let Self { reader, top, is_list, values, levels, goes_on, ends } = self;
        values.clear();
        levels.clear();
        goes_on.clear();
        ends.clear();
        let has_levels = (*top > 0).then_some(&mut *levels);
        let repeats = is_list.then_some(&mut *goes_on);
        let (read, ..) = reader.read_records(rows, has_levels, repeats, values)?;
        if *top == 0 {
            return Ok(read);
        }
        let mut seen = 0;
        for (place, level) in levels.iter().enumerate() {
            let is_new = goes_on.get(place).is_none_or(|level| *level == 0);
            seen += usize::from(level == top);
            match (is_new, ends.last_mut()) {
                (false, Some(end)) => *end = seen,
                _ => ends.push(seen),
            }
        }
        match seen == values.len() && ends.len() == read {
            true => Ok(read),
            false => Err(PartError::Broken("the rows of a column do not add up")),
        }
    }

    /// Returns the values of a row: one, unless the column is optional or a list.
    pub(super) fn of(&self, row: usize) -> &[T::T] {
        if self.top == 0 {
            return self.values.get(row..=row).unwrap_or_default();
        }
        let begin = row.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied());
        let range = begin.zip(self.ends.get(row).copied()).map(|(begin, end)| begin..end);
        range.and_then(|range| self.values.get(range)).unwrap_or_default()
    }

    /// Returns the value of a row, if it has one.
    pub(super) fn one(&self, row: usize) -> Option<&T::T> {
        self.of(row).first()
    }
}
