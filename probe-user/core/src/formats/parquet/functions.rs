//! The functions table: a row for each function of the recording, also one that was never called.

use super::super::labels::Labels;
use super::super::totals::{Sum, Totals};
use super::super::{Export, ExportError, Told};
use super::File;
use super::columns::{Columns, signed};
use crate::function::FunctionKind;
use crate::record::ReadAt;
use ::parquet::data_type::ByteArray;

pub(super) const SCHEMA: &str = "message functions {
    required binary host (STRING);
    required int32 function_id (INTEGER(32, false));
    required binary function (STRING);
    required binary kind (STRING);
    required binary object (STRING);
    optional binary build_id (STRING);
    optional binary file (STRING);
    optional int32 line (INTEGER(32, false));
    required int64 calls;
    required int64 timed;
    required int64 untimed;
    required int64 open;
    required int64 total_ns;
    required int64 self_ns;
}";

pub(super) fn write<R: ReadAt>(
    export: &Export<'_, R>,
    file: &mut File<'_>,
) -> Result<Told, ExportError> {
    let recording = export.recording;
    let (totals, told) = Totals::of(export)?;
    let functions = recording.functions();
    let mut sums = vec![Sum::default(); functions.len()];
    for (path, sum) in totals.paths() {
        let function = recording.nodes()[path as usize].func;
        if let Some(all) = sums.get_mut(function.index()) {
            all.add(&sum);
        }
    }
    let text = |text: &str| ByteArray::from(text);
    let maybe = |text: Option<&str>| text.map(ByteArray::from);
    let build_id = |object: &str| {
        let object = recording.objects().iter().find(|known| *known.name == *object)?;
        maybe(object.build_id.as_deref())
    };
    let of_sums = |value: fn(&Sum) -> u64| -> Vec<i64> {
        sums.iter().map(|sum| signed(value(sum))).collect()
    };
    let labels = Labels::of(recording);
    let mut columns = Columns(file.next_row_group()?);
    columns.text(&vec![text(&recording.start().host.name); functions.len()])?;
    columns.small(&(0..functions.len() as i32).collect::<Vec<_>>())?;
    columns.text(&labels.all().iter().map(|name| text(name)).collect::<Vec<_>>())?;
    columns.text(&functions.iter().map(|f| text(kind(f.kind))).collect::<Vec<_>>())?;
    columns.text(&functions.iter().map(|f| text(&f.object)).collect::<Vec<_>>())?;
    columns.maybe_text(&functions.iter().map(|f| build_id(&f.object)).collect::<Vec<_>>())?;
    columns.maybe_text(&functions.iter().map(|f| maybe(f.file.as_deref())).collect::<Vec<_>>())?;
    columns.maybe_small(&functions.iter().map(|f| f.line.map(|n| n as i32)).collect::<Vec<_>>())?;
    columns.large(&of_sums(|sum| sum.calls))?;
    columns.large(&of_sums(|sum| sum.calls - sum.untimed - sum.open))?;
    columns.large(&of_sums(|sum| sum.untimed))?;
    columns.large(&of_sums(|sum| sum.open))?;
    columns.large(&of_sums(|sum| sum.total))?;
    columns.large(&of_sums(|sum| sum.own))?;
    columns.finish()?;
    Ok(told)
}

fn kind(kind: FunctionKind) -> &'static str {
    match kind {
        FunctionKind::Function => "function",
        FunctionKind::Usdt => "usdt",
        FunctionKind::Marker => "marker",
    }
}
