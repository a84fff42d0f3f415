//! The cells of a column in memory, as they were read: of any type, optional, or lists.

use super::decode::PartError;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{
    ByteArray, ByteArrayType, DataType, FixedLenByteArrayType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::ColumnDescriptor;
use std::cmp::Ordering;
use std::collections::HashMap;

/// Rows that are read at a time.
const SOME: usize = 4_096;

/// A column.
pub(super) enum Cells {
    Small(Typed<Int32Type>),
    Large(Typed<Int64Type>),
    Fixed(Typed<FixedLenByteArrayType>),
    /// Texts by their numbers in a list that has each once.
    Texts(Typed<Int32Type>, Texts),
}

#[derive(Default)]
pub(super) struct Texts {
    all: Vec<ByteArray>,
    numbers: HashMap<Vec<u8>, i32>,
    bytes: usize,
}

impl Texts {
    fn number(&mut self, text: &ByteArray) -> Result<i32, PartError> {
        if let Some(number) = self.numbers.get(text.data()) {
            return Ok(*number);
        }
        let number = i32::try_from(self.all.len()).map_err(|_| PartError::TooLarge)?;
        self.bytes += 2 * text.len() + 100;
        self.numbers.insert(text.data().to_vec(), number);
        // A copy: otherwise it would keep its page.
        self.all.push(ByteArray::from(text.data().to_vec()));
        Ok(number)
    }
}

/// Values with the levels by which rows are told apart.
pub(super) struct Typed<T: DataType> {
    values: Vec<T::T>,
    /// Empty where each row has a value.
    levels: Vec<i16>,
    goes_on: Vec<i16>,
    /// Where the levels and the values of each row begin.
    begins: Vec<(u32, u32)>,
    /// The largest levels that there are.
    top: i16,
    repeats: i16,
}

impl<T: DataType> Typed<T> {
    fn new(column: &ColumnDescriptor) -> Self {
        Self {
            values: Vec::new(),
            levels: Vec::new(),
            goes_on: Vec::new(),
            begins: Vec::new(),
            top: column.max_def_level(),
            repeats: column.max_rep_level(),
        }
    }

    fn is_plain(&self) -> bool {
        self.top == 0 && self.repeats == 0
    }

    /// Returns the values of a row.
    fn of(&self, row: usize) -> &[T::T] {
        if self.is_plain() {
            return self.values.get(row..=row).unwrap_or_default();
        }
        let end = self.begins.get(row + 1).map_or(self.values.len(), |(_, value)| *value as usize);
        let begin = self.begins.get(row).map_or(end, |(_, value)| *value as usize);
        self.values.get(begin..end).unwrap_or_default()
    }

    /// Returns the levels of a row.
    fn levels_of(&self, row: usize) -> std::ops::Range<usize> {
        let end = self.begins.get(row + 1).map_or(self.levels.len(), |(level, _)| *level as usize);
        self.begins.get(row).map_or(end, |(level, _)| *level as usize)..end
    }

    /// Takes a batch of rows that was read.
    fn take(
        &mut self,
        rows: usize,
        values: impl ExactSizeIterator<Item = Result<T::T, PartError>>,
        levels: &[i16],
        goes_on: &[i16],
    ) -> Result<(), PartError> {
        let uneven = PartError::Broken("the rows of a column do not add up");
        let is_in = |levels: &[i16], top: i16| levels.iter().all(|level| (0..=top).contains(level));
        if !is_in(levels, self.top) || !is_in(goes_on, self.repeats) {
            return Err(PartError::Broken("a column has levels that its schema has not"));
        }
        let (mut value, count) = (self.values.len(), values.len());
        for read in values {
            self.values.push(read?);
        }
        if self.is_plain() {
            return if count == rows { Ok(()) } else { Err(uneven) };
        }
        let (before, end) = (self.begins.len(), value + count);
        for (place, level) in levels.iter().enumerate() {
            if goes_on.get(place).is_none_or(|level| *level == 0) {
                let begin = u32::try_from(self.levels.len() + place).ok();
                let begin = begin.zip(u32::try_from(value).ok());
                self.begins.push(begin.ok_or(PartError::TooLarge)?);
            }
            value += usize::from(*level == self.top);
        }
        self.levels.extend_from_slice(levels);
        self.goes_on.extend_from_slice(goes_on);
        match self.begins.len() - before == rows && value == end {
            true => Ok(()),
            false => Err(uneven),
        }
    }

    /// Adds the rows of another.
    fn append(&mut self, other: Self) -> Result<(), PartError> {
        let (levels, values) = (self.levels.len(), self.values.len());
        for (level, value) in other.begins {
            let begin = (level as usize + levels, value as usize + values);
            let begin = u32::try_from(begin.0).ok().zip(u32::try_from(begin.1).ok());
            self.begins.push(begin.ok_or(PartError::TooLarge)?);
        }
        self.values.extend(other.values);
        self.levels.extend(other.levels);
        self.goes_on.extend(other.goes_on);
        Ok(())
    }

    /// Writes rows in this order, with values of another type.
    fn write<W: DataType>(
        &self,
        rows: &[u32],
        writer: &mut SerializedColumnWriter<'_>,
        value: impl Fn(&T::T) -> W::T,
    ) -> Result<(), ParquetError> {
        let (mut values, mut levels, mut goes_on) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            let row = *row as usize;
            values.extend(self.of(row).iter().map(&value));
            let of_row = self.levels_of(row);
            levels.extend_from_slice(self.levels.get(of_row.clone()).unwrap_or_default());
            goes_on.extend_from_slice(self.goes_on.get(of_row).unwrap_or_default());
        }
        let levels = (self.top > 0).then_some(&*levels);
        let goes_on = (self.repeats > 0).then_some(&*goes_on);
        writer.typed::<W>().write_batch(&values, levels, goes_on).map(drop)
    }

    /// Returns about how much memory it needs. The sum for two columns is that for both together.
    fn bytes(&self, of_value: usize) -> usize {
        let values = self.values.len() * of_value;
        values + 2 * (self.levels.len() + self.goes_on.len()) + 8 * self.begins.len()
    }

    fn is_list(&self) -> bool {
        self.repeats > 0
    }
}

/// The bytes of a value, with those of its allocation.
const SMALL: usize = 4;
const LARGE: usize = 8;
const FIXED: usize = 80;

fn bounded(bytes: usize, room: usize) -> Result<(), PartError> {
    if bytes > room { Err(PartError::TooLarge) } else { Ok(()) }
}

/// Reads all rows of a column of a row group.
fn each<T: DataType>(
    mut reader: ColumnReaderImpl<T>,
    (top, is_list): (i16, bool),
    mut take: impl FnMut(usize, Vec<T::T>, &[i16], &[i16]) -> Result<(), PartError>,
) -> Result<usize, PartError> {
    let mut all = 0;
    loop {
        let (mut values, mut levels, mut goes_on) = (Vec::new(), Vec::new(), Vec::new());
        let has_levels = (top > 0).then_some(&mut levels);
        let repeats = is_list.then_some(&mut goes_on);
        let (rows, ..) = reader.read_records(SOME, has_levels, repeats, &mut values)?;
        if rows == 0 {
            return Ok(all);
        }
        all += rows;
        take(rows, values, &levels, &goes_on)?;
    }
}

impl Cells {
    /// Makes an empty column, if rows of ctrace have such.
    pub(super) fn new(column: &ColumnDescriptor) -> Result<Self, PartError> {
        use parquet::basic::Type;
        Ok(match column.physical_type() {
            Type::INT32 => Self::Small(Typed::new(column)),
            Type::INT64 => Self::Large(Typed::new(column)),
            Type::FIXED_LEN_BYTE_ARRAY => Self::Fixed(Typed::new(column)),
            Type::BYTE_ARRAY => Self::Texts(Typed::new(column), Texts::default()),
            _ => return Err(PartError::Broken("it has a column of a type that ctrace has not")),
        })
    }

    /// Reads the cells of a row group, and returns how many rows there are. Fails once the column needs more
    /// bytes than there is room for.
    pub(super) fn read(&mut self, reader: ColumnReader, room: usize) -> Result<usize, PartError> {
        fn typed<T: DataType>(
            cells: &mut Typed<T>,
            reader: ColumnReaderImpl<T>,
            (of_value, room): (usize, usize),
        ) -> Result<usize, PartError> {
            each(reader, (cells.top, cells.is_list()), |rows, values, levels, goes_on| {
                cells.take(rows, values.into_iter().map(Ok), levels, goes_on)?;
                bounded(cells.bytes(of_value), room)
            })
        }
        match (self, reader) {
            (Self::Small(cells), ColumnReader::Int32ColumnReader(reader)) => {
                typed(cells, reader, (SMALL, room))
            }
            (Self::Large(cells), ColumnReader::Int64ColumnReader(reader)) => {
                typed(cells, reader, (LARGE, room))
            }
            (Self::Fixed(cells), ColumnReader::FixedLenByteArrayColumnReader(reader)) => {
                typed(cells, reader, (FIXED, room))
            }
            (Self::Texts(cells, texts), ColumnReader::ByteArrayColumnReader(reader)) => {
                each::<ByteArrayType>(
                    reader,
                    (cells.top, cells.is_list()),
                    |rows, values, levels, goes_on| {
                        let numbers = values.iter().map(|text| texts.number(text));
                        cells.take(rows, numbers, levels, goes_on)?;
                        bounded(cells.bytes(SMALL) + texts.bytes, room)
                    },
                )
            }
            _ => Err(PartError::Broken("a column is of another type than its schema says")),
        }
    }

    /// Adds the rows of the same column of another file.
    pub(super) fn append(&mut self, other: Self) -> Result<(), PartError> {
        match (self, other) {
            (Self::Small(mine), Self::Small(other)) => mine.append(other),
            (Self::Large(mine), Self::Large(other)) => mine.append(other),
            (Self::Fixed(mine), Self::Fixed(other)) => mine.append(other),
            (Self::Texts(mine, texts), Self::Texts(mut other, others)) => {
                let numbers = others.all.iter().map(|text| texts.number(text));
                let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
                let new = |number: &i32| numbers.get(*number as usize).copied().unwrap_or(0);
                other.values.iter_mut().for_each(|number| *number = new(number));
                mine.append(other)
            }
            _ => Err(PartError::Broken("columns differ")),
        }
    }

    pub(super) fn compare(&self, a: usize, b: usize) -> Ordering {
        fn typed<T: DataType>(cells: &Typed<T>, a: usize, b: usize) -> Ordering {
            cells.of(a).partial_cmp(cells.of(b)).unwrap_or(Ordering::Equal)
        }
        match self {
            Self::Small(cells) => typed(cells, a, b),
            Self::Large(cells) => typed(cells, a, b),
            Self::Fixed(cells) => typed(cells, a, b),
            Self::Texts(cells, texts) => {
                let of =
                    |row| cells.of(row).iter().map(|number| texts.all[*number as usize].data());
                if cells.of(a) == cells.of(b) { Ordering::Equal } else { of(a).cmp(of(b)) }
            }
        }
    }

    pub(super) fn write(
        &self,
        rows: &[u32],
        writer: &mut SerializedColumnWriter<'_>,
    ) -> Result<(), ParquetError> {
        match self {
            Self::Small(cells) => cells.write::<Int32Type>(rows, writer, |value| *value),
            Self::Large(cells) => cells.write::<Int64Type>(rows, writer, |value| *value),
            Self::Fixed(cells) => {
                cells.write::<FixedLenByteArrayType>(rows, writer, |value| value.clone())
            }
            Self::Texts(cells, texts) => {
                let text = |number: &i32| texts.all[*number as usize].clone();
                cells.write::<ByteArrayType>(rows, writer, text)
            }
        }
    }

    /// Returns about how much memory it needs.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Small(cells) => cells.bytes(SMALL),
            Self::Large(cells) => cells.bytes(LARGE),
            Self::Fixed(cells) => cells.bytes(FIXED),
            Self::Texts(cells, texts) => cells.bytes(SMALL) + texts.bytes,
        }
    }
}
