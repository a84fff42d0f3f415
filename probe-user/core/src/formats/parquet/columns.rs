//! Writes the columns of a row group in the order of their schema.

use super::super::ExportError;
use super::super::out::Out;
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::writer::SerializedRowGroupWriter;

/// A row group that is being written.
pub(super) struct Columns<'a, 'o>(pub(super) SerializedRowGroupWriter<'a, Out<'o>>);

impl Columns<'_, '_> {
    fn write<T: DataType>(
        &mut self,
        values: &[T::T],
        is_there: Option<&[i16]>,
    ) -> Result<&mut Self, ExportError> {
        let column = self.0.next_column()?;
        let mut column = column
            .ok_or_else(|| ParquetError::General("the schema has fewer columns".to_owned()))?;
        column.typed::<T>().write_batch(values, is_there, None)?;
        column.close()?;
        Ok(self)
    }

    pub(super) fn small(&mut self, values: &[i32]) -> Result<&mut Self, ExportError> {
        self.write::<Int32Type>(values, None)
    }

    pub(super) fn large(&mut self, values: &[i64]) -> Result<&mut Self, ExportError> {
        self.write::<Int64Type>(values, None)
    }

    pub(super) fn truth(&mut self, values: &[bool]) -> Result<&mut Self, ExportError> {
        self.write::<BoolType>(values, None)
    }

    pub(super) fn text(&mut self, values: &[ByteArray]) -> Result<&mut Self, ExportError> {
        self.write::<ByteArrayType>(values, None)
    }

    pub(super) fn maybe_text(
        &mut self,
        values: &[Option<ByteArray>],
    ) -> Result<&mut Self, ExportError> {
        let is_there: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
        let values: Vec<_> = values.iter().flatten().cloned().collect();
        self.write::<ByteArrayType>(&values, Some(&is_there))
    }

    pub(super) fn maybe_small(&mut self, values: &[Option<i32>]) -> Result<&mut Self, ExportError> {
        let is_there: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
        let values: Vec<_> = values.iter().flatten().copied().collect();
        self.write::<Int32Type>(&values, Some(&is_there))
    }

    pub(super) fn finish(self) -> Result<(), ExportError> {
        self.0.close()?;
        Ok(())
    }
}

/// Converts with saturation: no time of this century saturates.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
