//! Makes a Parquet file of rows. All rows of a file are of one partition.

use super::buckets::Buckets;
use super::rows::{FunctionRow, Losses, Origin, PathRow, TargetRow};
use super::schema::SCHEMA;
use super::slow::SlowRow;
use super::{FunctionNames, Table};
use crate::formats::parquet::columns::{Columns, signed};
use crate::function::FunctionKind;
use parquet::basic::{Compression, Encoding, Type, ZstdLevel};
use parquet::data_type::{
    ByteArray, ByteArrayType, FixedLenByteArray, FixedLenByteArrayType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{SchemaDescriptor, TypePtr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Rows of a row group. Several are read in parallel.
pub(super) const GROUP: usize = 32_768;
/// Numbers that are rarely the same twice. With a dictionary they would need half as much again: rows of one
/// function are together, and their numbers are near each other.
const VARIED: [&str; 10] = [
    "total_ns",
    "timed_ns",
    "self_ns",
    "active_ns",
    "innermost_ns",
    "min_ns",
    "max_ns",
    "call_start_ns",
    "duration_ns",
    "buckets.list.element",
];
/// The largest number of 38 decimal digits.
const MOST_SQUARES: u128 = 10_u128.pow(38) - 1;

/// The reason why there is no file.
#[derive(Debug, thiserror::Error)]
#[error("the table cannot be made: {0}")]
pub struct EncodeError(#[from] ParquetError);

impl From<EncodeError> for std::io::Error {
    fn from(error: EncodeError) -> Self {
        Self::other(error)
    }
}

pub(super) type File = SerializedFileWriter<Vec<u8>>;
type Group<'a> = Columns<'a, Vec<u8>>;

/// Makes a file of functions. They are sorted, so that equal names are together.
pub fn functions(rows: &mut [FunctionRow]) -> Result<Vec<u8>, EncodeError> {
    rows.sort_by(|a, b| {
        let key = |row: &FunctionRow| (row.origin.start_ns, row.origin.pid);
        a.names.cmp(&b.names).then_with(|| key(a).cmp(&key(b)))
    });
    file(Table::Functions, rows, |rows, group| {
        origins(group, rows, |row| &row.origin)?;
        version(group, rows, |row| &row.origin)?;
        names(group, rows, |row| &row.names)?;
        group.maybe_text(&all(rows, |row| row.build_id.as_ref().map(text)))?;
        let mut sums =
            |of: fn(&FunctionRow) -> u64| group.large(&all(rows, |row| signed(of(row)))).map(drop);
        sums(|row| row.sums.tally.ended())?;
        sums(|row| row.sums.tally.timed)?;
        sums(|row| row.sums.tally.untimed)?;
        sums(|row| row.sums.headless)?;
        sums(|row| row.sums.tally.total_ns())?;
        sums(|row| row.sums.tally.timed_ns)?;
        sums(|row| row.sums.tally.self_ns)?;
        sums(|row| row.sums.active_ns)?;
        sums(|row| row.sums.innermost_ns)?;
        let squares = all(rows, |row| {
            let squares = row.sums.tally.squares.min(MOST_SQUARES);
            FixedLenByteArray::from(squares.to_be_bytes().to_vec())
        });
        group.write::<FixedLenByteArrayType>(&squares, None, None)?;
        group.maybe_large(&all(rows, |row| row.sums.tally.min().map(signed)))?;
        group.maybe_large(&all(rows, |row| row.sums.tally.max().map(signed)))?;
        histograms(group, rows, |row| &row.sums.buckets)?;
        let mut sums =
            |of: fn(&FunctionRow) -> u64| group.large(&all(rows, |row| signed(of(row)))).map(drop);
        sums(|row| row.sums.cost_ns)?;
        sums(|row| row.sums.armed_ns)?;
        sums(|row| row.sums.lost_events)
    })
}

/// Makes a file of paths, sorted.
pub fn paths(rows: &mut [PathRow]) -> Result<Vec<u8>, EncodeError> {
    rows.sort_by(|a, b| {
        let key = |row: &PathRow| (row.origin.start_ns, row.origin.pid);
        a.path.cmp(&b.path).then_with(|| key(a).cmp(&key(b)))
    });
    file(Table::Paths, rows, |rows, group| {
        origins(group, rows, |row| &row.origin)?;
        version(group, rows, |row| &row.origin)?;
        group.lists::<ByteArrayType>(rows.iter().map(|row| row.path.iter().map(text).collect()))?;
        group.large(&all(rows, |row| signed(row.calls)))?;
        group.large(&all(rows, |row| signed(row.total_ns)))?;
        group.large(&all(rows, |row| signed(row.self_ns)))?;
        group.large(&all(rows, |row| signed(row.lost_events)))?;
        group.large(&all(rows, |row| signed(row.calls.saturating_sub(row.untimed))))?;
        group.large(&all(rows, |row| signed(row.untimed)))?;
        group.maybe_large(&all(rows, |row| row.min_ns.map(signed)))?;
        group.maybe_large(&all(rows, |row| row.max_ns.map(signed)))?;
        histograms(group, rows, |row| &row.buckets)
    })
}

/// Makes a file of slow calls, sorted.
pub fn slow_calls(rows: &mut [SlowRow]) -> Result<Vec<u8>, EncodeError> {
    rows.sort_by(|a, b| {
        let key = |row: &SlowRow| (row.origin.start_ns, row.origin.pid, row.call.start_ns);
        a.names.cmp(&b.names).then_with(|| key(a).cmp(&key(b)))
    });
    file(Table::SlowCalls, rows, |rows, group| {
        origins(group, rows, |row| &row.origin)?;
        version(group, rows, |row| &row.origin)?;
        names(group, rows, |row| &row.names)?;
        group.small(&all(rows, |row| row.call.process.cast_signed()))?;
        group.small(&all(rows, |row| row.call.tid.cast_signed()))?;
        group.text(&all(rows, |row| text(&row.call.thread)))?;
        group.large(&all(rows, |row| row.call.start_ns))?;
        group.large(&all(rows, |row| signed(row.call.duration_ns)))?;
        group.maybe_large(&all(rows, |row| row.call.self_ns.map(signed)))?;
        group.lists::<ByteArrayType>(rows.iter().map(|row| row.path.iter().map(text).collect()))?;
        let inside = |row: &SlowRow| row.inside.iter().map(|it| text(&it.function)).collect();
        group.lists::<ByteArrayType>(rows.iter().map(inside))?;
        let calls = |row: &SlowRow| row.inside.iter().map(|it| signed(it.calls)).collect();
        group.lists::<Int64Type>(rows.iter().map(calls))?;
        let totals = |row: &SlowRow| row.inside.iter().map(|it| signed(it.total_ns)).collect();
        group.lists::<Int64Type>(rows.iter().map(totals))?;
        group.large(&all(rows, |row| signed(row.lost_events))).map(drop)
    })
}

/// Makes a file of targets.
pub fn targets(rows: &[TargetRow]) -> Result<Vec<u8>, EncodeError> {
    file(Table::Targets, rows, |rows, group| {
        origins(group, rows, |row| &row.origin)?;
        group.small(&all(rows, |row| row.processes as i32))?;
        version(group, rows, |row| &row.origin)?;
        group.text(&all(rows, |row| text(&row.program)))?;
        group.large(&all(rows, |row| signed(row.functions)))?;
        group.large(&all(rows, |row| signed(row.calls)))?;
        group.large(&all(rows, |row| signed(row.cost_ns)))?;
        group.maybe_large(&all(rows, |row| row.cpu_ns.map(signed)))?;
        let mut losses = |of: fn(&Losses) -> u64| {
            group.large(&all(rows, |row| signed(of(&row.losses)))).map(drop)
        };
        losses(|all| all.events)?;
        losses(|all| all.late)?;
        losses(|all| all.decode_errors)?;
        losses(|all| all.untimed)?;
        losses(|all| all.open)?;
        losses(|all| all.headless)?;
        losses(|all| all.calls_without_path)
    })
}

fn file<R>(
    table: Table,
    rows: &[R],
    write: impl Fn(&[R], &mut Group<'_>) -> Result<(), ParquetError>,
) -> Result<Vec<u8>, EncodeError> {
    let schema = Arc::new(parse_message_type(table.schema())?);
    let properties = Arc::new(properties(&schema)?);
    let mut file = File::new(Vec::new(), schema, properties)?;
    for rows in rows.chunks(GROUP) {
        let mut columns = Columns(file.next_row_group()?);
        columns.small(&vec![SCHEMA; rows.len()])?;
        write(rows, &mut columns)?;
        columns.finish()?;
    }
    sign(&mut file);
    Ok(file.into_inner()?)
}

/// Returns the way in which a file with these columns is written, be they ours or not.
pub(super) fn properties(schema: &TypePtr) -> Result<WriterProperties, ParquetError> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    for column in SchemaDescriptor::new(Arc::clone(schema)).columns() {
        let path = column.path();
        let is_number = matches!(column.physical_type(), Type::INT32 | Type::INT64);
        let encoding = match &*path.string() {
            name if VARIED.contains(&name) && is_number => Encoding::DELTA_BINARY_PACKED,
            "squares" => Encoding::PLAIN,
            _ => continue,
        };
        properties = properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path.clone(), encoding);
    }
    Ok(properties.build())
}

/// Writes a file of columns that others made. Should the writer panic, there is no file.
pub(super) fn guarded<T>(write: impl FnOnce() -> Result<T, EncodeError>) -> Result<T, EncodeError> {
    let panicked = |_| Err(EncodeError(ParquetError::General("its writer gave up".to_owned())));
    catch_unwind(AssertUnwindSafe(write)).unwrap_or_else(panicked)
}

/// Adds the version of ctrace to the metadata.
pub(super) fn sign(file: &mut File) {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    file.append_key_value_metadata(KeyValue::new("ctrace".to_owned(), version));
}

fn origins<R>(
    group: &mut Group<'_>,
    rows: &[R],
    of: fn(&R) -> &Arc<Origin>,
) -> Result<(), ParquetError> {
    group.large(&all(rows, |row| of(row).start_ns))?;
    group.large(&all(rows, |row| of(row).end_ns))?;
    group.text(&all(rows, |row| text(&of(row).target)))?;
    group.small(&all(rows, |row| of(row).pid.0 as i32)).map(drop)
}

fn version<R>(
    group: &mut Group<'_>,
    rows: &[R],
    of: fn(&R) -> &Arc<Origin>,
) -> Result<(), ParquetError> {
    group.maybe_text(&all(rows, |row| of(row).version.as_ref().map(text))).map(drop)
}

fn names<R>(
    group: &mut Group<'_>,
    rows: &[R],
    of: fn(&R) -> &FunctionNames,
) -> Result<(), ParquetError> {
    group.text(&all(rows, |row| text(&of(row).function)))?;
    group.text(&all(rows, |row| text(&of(row).object)))?;
    group.text(&all(rows, |row| ByteArray::from(kind_name(of(row).kind))))?;
    group.maybe_text(&all(rows, |row| of(row).group.as_ref().map(text)))?;
    group.maybe_text(&all(rows, |row| of(row).short_name.as_ref().map(text)))?;
    group.maybe_text(&all(rows, |row| of(row).full_name.as_ref().map(text))).map(drop)
}

fn histograms<R>(
    group: &mut Group<'_>,
    rows: &[R],
    of: fn(&R) -> &Buckets,
) -> Result<(), ParquetError> {
    let buckets = |row| of(row).used().map(|(bucket, _)| bucket as i32).collect();
    group.lists::<Int32Type>(rows.iter().map(buckets))?;
    let counts = |row| of(row).used().map(|(_, count)| signed(count)).collect();
    group.lists::<Int64Type>(rows.iter().map(counts)).map(drop)
}

fn all<R, T>(rows: &[R], of: impl Fn(&R) -> T) -> Vec<T> {
    rows.iter().map(of).collect()
}

fn text(text: &Arc<str>) -> ByteArray {
    ByteArray::from(&**text)
}

/// The values of the column `kind`.
const KINDS: [(FunctionKind, &str); 3] = [
    (FunctionKind::Function, "function"),
    (FunctionKind::Usdt, "usdt"),
    (FunctionKind::Marker, "marker"),
];

fn kind_name(kind: FunctionKind) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == kind).map_or("", |(_, name)| name)
}

/// Returns the kind of this name. One of a later ctrace is a function.
pub(super) fn kind_named(name: &str) -> FunctionKind {
    KINDS.iter().find(|(_, known)| *known == name).map_or(FunctionKind::Function, |(kind, _)| *kind)
}
