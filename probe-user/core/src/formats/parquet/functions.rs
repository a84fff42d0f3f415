//! The functions table: a row for each chosen function of the recording, even one that was never
//! called.

use super::super::excerpt::Excerpt;
use super::super::labels::{self, Labels};
use super::super::path_sums::{PathSum, PathSums};
use super::super::{Coverage, ExportError};
use super::File;
use super::columns::{Columns, signed};
use crate::function::FunctionKind;
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

pub(super) fn write(excerpt: &Excerpt<'_>, file: &mut File<'_>) -> Result<Coverage, ExportError> {
    let recording = excerpt.recording;
    let (all, told) = PathSums::of(excerpt)?;
    let functions = recording.functions();
    let mut sums = vec![PathSum::default(); functions.len()];
    for (path, sum) in all.paths() {
        let function = excerpt.nodes()[path as usize].func;
        if let Some(all) = sums.get_mut(function.index()) {
            all.add(&sum);
        }
    }
    let text = |text: &str| ByteArray::from(labels::text(text).as_str());
    let maybe = |some: Option<&str>| some.map(text);
    let build_id = |object: &str| {
        let object = recording.objects().iter().find(|known| *known.name == *object)?;
        maybe(object.build_id.as_deref())
    };
    let labels = Labels::of(recording);
    let labels = labels.all();
    let chosen = excerpt.query.functions.as_deref();
    let is_chosen = |id: &usize| chosen.is_none_or(|chosen| chosen.get(*id) == Some(&true));
    let ids: Vec<usize> = (0..functions.len()).filter(is_chosen).collect();
    let rows = || ids.iter().map(|&id| &functions[id]);
    let of_sums = |value: fn(&PathSum) -> u64| -> Vec<i64> {
        ids.iter().map(|&id| signed(value(&sums[id]))).collect()
    };
    let mut columns = Columns(file.next_row_group()?);
    columns.text(&vec![text(&recording.start().host.name); ids.len()])?;
    columns.small(&ids.iter().map(|&id| id as i32).collect::<Vec<_>>())?;
    columns.text(&ids.iter().map(|&id| text(&labels[id])).collect::<Vec<_>>())?;
    columns.text(&rows().map(|f| text(kind(f.kind))).collect::<Vec<_>>())?;
    columns.text(&rows().map(|f| text(&f.object)).collect::<Vec<_>>())?;
    columns.maybe_text(&rows().map(|f| build_id(&f.object)).collect::<Vec<_>>())?;
    columns.maybe_text(&rows().map(|f| maybe(f.file.as_deref())).collect::<Vec<_>>())?;
    columns.maybe_small(&rows().map(|f| f.line.map(|n| n as i32)).collect::<Vec<_>>())?;
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
