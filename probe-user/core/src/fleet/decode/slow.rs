//! Reads the rows of `slow_calls`.

use super::{Numbers, Part, PartError, count, function_names, guarded, same};
use crate::fleet::interned::Interned;
use crate::fleet::slow::{CalleeRow, OneCall};
use crate::fleet::{FunctionNames, Wanted};
use parquet::data_type::{ByteArrayType, Int32Type, Int64Type};
use std::sync::Arc;

/// Limit of the names of a list: more than ctrace records.
const MOST_NAMES: usize = super::MOST_FRAMES;

/// A row of `slow_calls`.
pub struct SlowSeen<'a> {
    pub names: &'a Arc<FunctionNames>,
    pub version: Option<&'a Arc<str>>,
    pub target: &'a Arc<str>,
    pub call: &'a OneCall,
    pub path: &'a [Arc<str>],
    pub inside: &'a [CalleeRow],
    pub lost_events: u64,
}

impl Part {
    /// Visits the wanted rows of a row group of `slow_calls`.
    pub fn slow_calls(
        &self,
        group: usize,
        wanted: &Wanted,
        mut visit: impl FnMut(&SlowSeen<'_>),
    ) -> Result<u64, PartError> {
        guarded(|| {
            let mut numbers: Numbers<4> =
                self.numbers(group, ["start_ns", "call_start_ns", "duration_ns", "lost_events"])?;
            let mut texts = self.texts(group, TEXTS)?;
            let mut process = self.column::<Int32Type>(group, "process")?;
            let mut tid = self.column::<Int32Type>(group, "tid")?;
            let mut own = self.column::<Int64Type>(group, "self_ns")?;
            let mut path = self.column::<ByteArrayType>(group, "path.list.element")?;
            let mut inside = self.column::<ByteArrayType>(group, "inside.list.element")?;
            let mut calls = self.column::<Int64Type>(group, "inside_calls.list.element")?;
            let mut totals = self.column::<Int64Type>(group, "inside_ns.list.element")?;
            let (mut names, mut known) = (Interned::default(), Interned::default());
            let mut visited = 0;
            loop {
                let rows = numbers.fill()?;
                texts.iter_mut().try_for_each(|column| same(column, rows))?;
                [&mut process, &mut tid].into_iter().try_for_each(|column| same(column, rows))?;
                [&mut path, &mut inside].into_iter().try_for_each(|column| same(column, rows))?;
                let lists = [&mut own, &mut calls, &mut totals];
                lists.into_iter().try_for_each(|column| same(column, rows))?;
                if rows == 0 {
                    return Ok(visited);
                }
                for row in 0..rows {
                    let [start, call_start, duration, lost] = numbers.row(row);
                    let [version, target, thread, key @ ..] = &texts;
                    let version = known.text(version.one(row));
                    if !wanted.has_time(start) || !wanted.has_version(version.as_deref()) {
                        continue;
                    }
                    let key = key.each_ref().map(|column| column.one(row).cloned());
                    let names = names.get(key, function_names);
                    if !wanted.has_function(&names) {
                        continue;
                    }
                    let id = |id: Option<&i32>| id.map_or(0, |id| id.cast_unsigned());
                    let call = OneCall {
                        process: id(process.one(row)),
                        tid: id(tid.one(row)),
                        thread: known.text(thread.one(row)).unwrap_or_default(),
                        start_ns: call_start,
                        duration_ns: count(duration),
                        self_ns: own.one(row).map(|own| count(*own)),
                    };
                    let frames = path.of(row).iter().take(MOST_NAMES);
                    let path: Vec<_> = frames.filter_map(|name| known.text(Some(name))).collect();
                    let sums = calls.of(row).iter().zip(totals.of(row));
                    let inside = inside.of(row).iter().take(MOST_NAMES).zip(sums);
                    let inside: Vec<_> = inside
                        .filter_map(|(name, (calls, total))| {
                            let function = known.text(Some(name))?;
                            let (calls, total_ns) = (count(*calls), count(*total));
                            Some(CalleeRow { function, calls, total_ns })
                        })
                        .collect();
                    visited += 1;
                    visit(&SlowSeen {
                        names: &names,
                        version: version.as_ref(),
                        target: &known.text(target.one(row)).unwrap_or_default(),
                        call: &call,
                        path: &path,
                        inside: &inside,
                        lost_events: count(lost),
                    });
                }
            }
        })
    }
}

const TEXTS: [&str; 9] = [
    "version",
    "target",
    "thread",
    "function",
    "object",
    "kind",
    "marker_group",
    "short_name",
    "full_name",
];
