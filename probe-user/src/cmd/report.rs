//! `ctrace report`: prints a recording like `run` and `attach`.

use super::{
    Failure,
    open::{Files, open},
    query::{query, window},
    spec,
};
use crate::{
    cli::ReportArgs,
    session::keep::sink::{Default, Sink},
    ui::units,
};
use anyhow::ensure;
use ctrace_core::{
    engine::ReportMeta,
    recording::{
        Recording,
        replay::{Query, meta_of, report_with},
    },
    units::{FuncId, Nanos},
};
use std::ops::Range;

/// More than a day of seconds. Nobody reads more, and a file may claim centuries.
const MOST_REPORTS: u64 = 100_000;

pub(super) fn main(args: &ReportArgs) -> Result<u8, Failure> {
    let recording = open(&args.files, &args.query.lens)?;
    let mut sink = Sink::open(&spec::report(&args.output), Default::Stdout)?.paged();
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

/// Returns whether the report would contain calls of the function.
fn is_asked(recording: &Recording<Files>, query: &Query, function: usize) -> bool {
    let is_chosen = query.functions.as_ref().is_none_or(|chosen| chosen[function]);
    let unarmed = recording.end().map_or(&[][..], |end| &end.unarmed);
    is_chosen && unarmed.binary_search(&FuncId(function as u32)).is_err()
}

/// Returns the times of the reports: one, or one for each interval.
fn windows(
    args: &ReportArgs,
    period: (Nanos, Nanos),
) -> anyhow::Result<impl Iterator<Item = Option<Range<Nanos>>>> {
    let asked = window(&args.query.lens, period)?;
    let whole = asked.clone().unwrap_or(period.0..period.1);
    let length = whole.end.since(whole.start);
    let step = args.output.interval.map_or(length.0, |interval| interval.as_nanos() as u64).max(1);
    let count = length.0.div_ceil(step).max(1);
    ensure!(
        count <= MOST_REPORTS,
        "--interval would make {} reports of the {} that the recording says it has; at most {} are \
         made: give a longer --interval, or a part of it with --time",
        units::count(count),
        units::time(length, units::Digits::Full),
        units::count(MOST_REPORTS),
    );
    let (is_one, cumulative) = (args.output.interval.is_none(), args.output.cumulative);
    let part = move |n: u64| {
        let edge =
            |n: u64| Nanos(whole.start.0.saturating_add(n.saturating_mul(step))).min(whole.end);
        let from = if cumulative { whole.start } else { edge(n) };
        if is_one { asked.clone() } else { Some(from..edge(n + 1)) }
    };
    Ok((0..count).map(part))
}
