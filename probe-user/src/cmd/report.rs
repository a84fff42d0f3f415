//! `ctrace report`: a recording, as `run` and `attach` would have shown it.

use super::{
    Failure,
    open::{Files, open},
    query::{query, window},
};
use crate::{
    cli::ReportArgs,
    session::sink::{Default, Sink},
};
use ctrace_core::{
    engine::ReportMeta,
    record::Recording,
    replay::{Query, meta_of, report_with},
    units::{FuncId, Nanos},
};
use std::ops::Range;

pub(super) fn main(args: &ReportArgs) -> Result<u8, Failure> {
    let recording = open(&args.files)?;
    let mut sink = Sink::open(&args.output, Default::Stdout)?;
    let start = recording.start();
    sink.set_epoch_offset(start.epoch_offset_ns.saturating_add(start.zone_ns));
    for window in windows(args, recording.period())? {
        let meta = meta_of(&recording, args.output.center);
        let meta = ReportMeta { extras: sink.extras(), ..meta };
        let query = query(&args.query, &recording, window)?;
        let mut report = report_with(&recording, &query, meta);
        report.leave_out(|function| !is_asked(&recording, &query, function));
        if !sink.write(&report)? {
            break;
        }
    }
    Ok(0)
}

/// Whether calls of the function would be in the report.
fn is_asked(recording: &Recording<Files>, query: &Query, function: usize) -> bool {
    let is_chosen = query.functions.as_ref().is_none_or(|chosen| chosen[function]);
    let unarmed = recording.end().map_or(&[][..], |end| &end.unarmed);
    is_chosen && unarmed.binary_search(&FuncId(function as u32)).is_err()
}

/// The times that reports are made of: one, or one for each interval.
fn windows(args: &ReportArgs, period: (Nanos, Nanos)) -> anyhow::Result<Vec<Option<Range<Nanos>>>> {
    let asked = window(&args.query.lens, period)?;
    let Some(interval) = args.output.interval else { return Ok(vec![asked]) };
    let whole = asked.unwrap_or(period.0..period.1);
    let step = interval.as_nanos() as u64;
    let count = whole.end.since(whole.start).0.div_ceil(step).max(1);
    let edge = |n: u64| Nanos(whole.start.0.saturating_add(n.saturating_mul(step))).min(whole.end);
    let from = |n: u64| if args.output.cumulative { whole.start } else { edge(n) };
    Ok((0..count).map(|n| Some(from(n)..edge(n + 1))).collect())
}
