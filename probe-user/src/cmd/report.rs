//! `ctrace report`: a recording, as `run` and `attach` would have shown it.

use super::Failure;
use crate::{
    cli::ReportArgs,
    session::{
        filter,
        sink::{Default, Sink},
    },
    target::recorded::{Choice, choose},
};
use anyhow::Context;
use ctrace_core::{
    engine::ReportMeta,
    record::Recording,
    replay::{Query, meta_of, report_with},
    units::Nanos,
};
use std::{fs::File, ops::Range, path::Path};

pub(super) fn main(args: &ReportArgs) -> Result<u8, Failure> {
    let recording = open(&args.file)?;
    let mut sink = Sink::open(&args.output, Default::Stdout)?;
    sink.set_epoch_offset(recording.start().epoch_offset_ns);
    let (start, end) = recording.period();
    for window in windows(args, start, end) {
        let query = query(args, &recording, window)?;
        let meta = meta_of(&recording, args.output.center);
        let meta = ReportMeta { extras: sink.extras(), ..meta };
        let report = report_with(&recording, &query, meta);
        if !sink.write(&report)? {
            break;
        }
    }
    Ok(0)
}

/// Opens a recording; an error is one line that names it.
pub(super) fn open(path: &Path) -> anyhow::Result<Recording<File>> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    Recording::open(file).map_err(|error| anyhow::anyhow!("{} {error}", path.display()))
}

/// The times that reports are made of: one, or one for each interval.
fn windows(args: &ReportArgs, start: Nanos, end: Nanos) -> Vec<Option<Range<Nanos>>> {
    let asked = args.lens.time.as_ref();
    let at = |offset: Nanos| start.saturating_add(offset);
    let whole = asked.map_or(start..end, |time| at(time.start)..at(time.end).min(end));
    let Some(interval) = args.output.interval else {
        return vec![asked.map(|_| whole)];
    };
    let step = interval.as_nanos() as u64;
    let count = whole.end.since(whole.start).0.div_ceil(step).max(1);
    let edge = |n: u64| Nanos(whole.start.0.saturating_add(n.saturating_mul(step))).min(whole.end);
    let from = |n: u64| if args.output.cumulative { whole.start } else { edge(n) };
    (0..count).map(|n| Some(from(n)..edge(n + 1))).collect()
}

fn query(
    args: &ReportArgs,
    recording: &Recording<File>,
    window: Option<Range<Nanos>>,
) -> anyhow::Result<Query> {
    let functions = recording.functions();
    let select = &args.select;
    let of = |texts: &[String]| -> anyhow::Result<Option<Vec<bool>>> {
        if texts.is_empty() {
            return Ok(None);
        }
        Ok(Some(choose(functions, &Choice { functions: texts, ..Choice::default() })?))
    };
    let selected = Choice {
        functions: &select.functions,
        usdt: &select.usdt,
        markers: &select.markers,
        exclude: &select.exclude,
    };
    Ok(Query {
        filter: filter(&args.filter),
        functions: match selected.is_empty() {
            true => None,
            false => Some(choose(functions, &selected)?),
        },
        window,
        callers: of(&args.lens.callers)?,
        callees: of(&args.lens.callees)?,
        roots: of(&args.lens.roots)?,
        fold_recursion: args.lens.fold_recursion,
    })
}
