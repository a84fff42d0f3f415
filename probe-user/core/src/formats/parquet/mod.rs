//! Parquet, for DuckDB, Polars, Spark and others. A file has one table, the calls or the functions.
//!
//! Each row has the host's name, and each call the wall-clock time, so that recordings of many
//! machines can form one table. The file's key-value metadata list what is missing.

mod calls;
pub(crate) mod columns;
mod functions;

use super::excerpt::Excerpt;
use super::labels;
use super::out::Out;
use super::{Coverage, ExportError, ExportTable};
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::parser::parse_message_type;
use std::io;
use std::sync::Arc;

pub(super) fn write(excerpt: &Excerpt<'_>, out: Out<'_>) -> Result<Coverage, ExportError> {
    let (schema, write): (_, fn(&_, &mut _) -> _) = match excerpt.options.table {
        ExportTable::Calls => (calls::SCHEMA, calls::write),
        ExportTable::Functions => (functions::SCHEMA, functions::write),
    };
    let compression = Compression::ZSTD(ZstdLevel::try_new(1)?);
    let properties = WriterProperties::builder().set_compression(compression).build();
    let schema = Arc::new(parse_message_type(schema)?);
    let mut file = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    let told = write(excerpt, &mut file)?;
    let start = excerpt.recording.start();
    let facts = [
        ("ctrace", env!("CARGO_PKG_VERSION").to_owned()),
        ("command", labels::text(&start.target.command.join(" "))),
        ("start_ns", start.start_ns.0.to_string()),
        ("epoch_offset_ns", start.epoch_offset_ns.to_string()),
    ];
    let facts = facts.into_iter().map(|(key, value)| (key.to_owned(), value));
    for (key, value) in facts.chain(told.pairs()) {
        file.append_key_value_metadata(KeyValue::new(key, value));
    }
    file.into_inner()?.finish()?;
    Ok(told)
}

type File<'a> = SerializedFileWriter<Out<'a>>;

impl From<ParquetError> for ExportError {
    fn from(error: ParquetError) -> Self {
        Self::Write(match error {
            ParquetError::External(error) => match error.downcast::<io::Error>() {
                Ok(error) => *error,
                Err(error) => io::Error::other(error),
            },
            error => io::Error::other(error),
        })
    }
}
