//! Writes the columns of a row group in the order of their schema.

use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::writer::SerializedRowGroupWriter;
use std::io::Write;

/// A row group that is being written.
pub(crate) struct Columns<'a, W: Write>(pub(crate) SerializedRowGroupWriter<'a, W>);

impl<W: Write + Send> Columns<'_, W> {
    pub(crate) fn write<T: DataType>(
        &mut self,
        values: &[T::T],
        is_there: Option<&[i16]>,
        goes_on: Option<&[i16]>,
    ) -> Result<&mut Self, ParquetError> {
        let column = self.0.next_column()?;
        let mut column = column
            .ok_or_else(|| ParquetError::General("the schema has fewer columns".to_owned()))?;
        column.typed::<T>().write_batch(values, is_there, goes_on)?;
        column.close()?;
        Ok(self)
    }

    pub(crate) fn small(&mut self, values: &[i32]) -> Result<&mut Self, ParquetError> {
        self.write::<Int32Type>(values, None, None)
    }

    pub(crate) fn large(&mut self, values: &[i64]) -> Result<&mut Self, ParquetError> {
        self.write::<Int64Type>(values, None, None)
    }

    pub(crate) fn truth(&mut self, values: &[bool]) -> Result<&mut Self, ParquetError> {
        self.write::<BoolType>(values, None, None)
    }

    pub(crate) fn text(&mut self, values: &[ByteArray]) -> Result<&mut Self, ParquetError> {
        self.write::<ByteArrayType>(values, None, None)
    }

    pub(crate) fn maybe_text(
        &mut self,
        values: &[Option<ByteArray>],
    ) -> Result<&mut Self, ParquetError> {
        let is_there: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
        let values: Vec<_> = values.iter().flatten().cloned().collect();
        self.write::<ByteArrayType>(&values, Some(&is_there), None)
    }

    pub(crate) fn maybe_small(
        &mut self,
        values: &[Option<i32>],
    ) -> Result<&mut Self, ParquetError> {
        let is_there: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
        let values: Vec<_> = values.iter().flatten().copied().collect();
        self.write::<Int32Type>(&values, Some(&is_there), None)
    }

    pub(crate) fn maybe_large(
        &mut self,
        values: &[Option<i64>],
    ) -> Result<&mut Self, ParquetError> {
        let is_there: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
        let values: Vec<_> = values.iter().flatten().copied().collect();
        self.write::<Int64Type>(&values, Some(&is_there), None)
    }

    /// Writes a list for each row.
    pub(crate) fn lists<T: DataType>(
        &mut self,
        rows: impl Iterator<Item = Vec<T::T>>,
    ) -> Result<&mut Self, ParquetError> {
        let (mut values, mut is_there, mut goes_on) = (Vec::new(), Vec::new(), Vec::new());
        for row in rows {
            is_there.extend(std::iter::repeat_n(1, row.len()));
            goes_on.extend((0..row.len()).map(|place| i16::from(place > 0)));
            if row.is_empty() {
                is_there.push(0);
                goes_on.push(0);
            }
            values.extend(row);
        }
        self.write::<T>(&values, Some(&is_there), Some(&goes_on))
    }

    pub(crate) fn finish(self) -> Result<(), ParquetError> {
        self.0.close()?;
        Ok(())
    }
}

/// Converts with saturation: no time of this century saturates.
pub(crate) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
