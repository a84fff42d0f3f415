//! `ctrace report`: prints a recording like `run` and `attach`.

use super::{
    Failure,
    open::open,
    query::{query, window},
    spec,
};
use crate::{
    cli::{FramesLimit, ReportArgs},
    session::{
        keep::{
            one_function::{frame_function, marked_frame},
            parts::{self, MOST_PARTS, Parts},
            replayed::report_of,
            sink::{Default, Sink},
        },
        spec::ReportSpec,
    },
    ui::{
        self,
        text::units,
        views::{FRAMES, TREND, frames::over_budget},
    },
};
use anyhow::{anyhow, ensure};
use ctrace_core::{
    function::FunctionInfo,
    recording::replay::Query,
    report::{Extras, FramesAsked, Report, TrendAsked},
    units::Nanos,
};
use std::{ops::Range, time::Duration};

/// More than a day of seconds. Nobody reads more, and a file may claim centuries.
const MOST_REPORTS: u64 = 100_000;

/// Told to who asks a report for what only a trace can tell.
const OF_RECORDINGS: &str = "--cpu and --wakers are for `ctrace record`: a report of such a recording shows waits \
    without an option, and --view wakers who ended them";

pub(super) fn main(args: &ReportArgs) -> Result<u8, Failure> {
    if args.cpu || args.wakers {
        return Err(anyhow!(OF_RECORDINGS).into());
    }
    let recording = open(&args.files, &args.query.lens)?;
    let (interval, trend) = intervals(args, recording.period())?;
    let frames = frames_asked(args, recording.functions())?;
    let spec = ReportSpec { interval, ..spec::report(&args.output, &args.query.select) };
    let spec = with_frames(spec, frames, recording.functions());
    let mut sink = Sink::open(&spec, Default::Stdout)?.paged();
    let start = recording.start();
    sink.set_epoch_offset(start.epoch_offset_ns.saturating_add(start.zone_ns));
    let (mut verdicts, mut most_left_out) = (Vec::new(), 0);
    let extras = Extras { frames, trend, ..sink.extras() };
    let report_of = |query: &Query| report_of(&recording, query, args.output.center, extras);
    for window in windows(args, interval, recording.period())? {
        let query = query(&args.query, &recording, window)?;
        let whole = report_of(&query);
        let mut goes_on = sink.write(&whole)?;
        if let Some(limit) = &args.fail_frames_over {
            verdicts.extend(exceeds(&whole, limit));
        }
        let parts = match &args.output.by {
            Some(by) => Parts::of(&recording, by, &query, &whole)?,
            None => Parts::default(),
        };
        parts.none.iter().for_each(|why| ui::say(why));
        goes_on = goes_on && parts.write_each(report_of, |report| sink.write(&report))?;
        most_left_out = most_left_out.max(parts.left_out);
        if !goes_on {
            break;
        }
    }
    parts::say_left_out(most_left_out);
    if args.fail_frames_over.is_some() && verdicts.is_empty() {
        return Err(
            anyhow!("--fail-frames-over cannot be judged: no frame has a known duration").into()
        );
    }
    Ok(verdicts.contains(&true).into())
}

/// Returns the frames that are asked for. Without a name, they are those that the program marks.
fn frames_asked(
    args: &ReportArgs,
    functions: &[FunctionInfo],
) -> anyhow::Result<Option<FramesAsked>> {
    let budget = args.fail_frames_over.as_ref().map(|limit| limit.time);
    let function = match &args.output.frame {
        Some(pattern) => frame_function(pattern, functions)?,
        None if budget.is_some() || args.output.views.iter().any(|name| name == FRAMES.name) => {
            marked_frame(functions)?
        }
        None => return Ok(None),
    };
    Ok(Some(FramesAsked { function, budget }))
}

/// Names the frames that were found without a name, and shows them if nothing else is to be shown.
fn with_frames(
    mut spec: ReportSpec,
    frames: Option<FramesAsked>,
    functions: &[FunctionInfo],
) -> ReportSpec {
    let Some(frames) = frames else { return spec };
    spec.frame.get_or_insert_with(|| functions[frames.function.index()].full().to_string());
    if spec.views.is_empty() {
        spec.views.push(FRAMES.name.to_owned());
    }
    spec
}

/// Returns whether too many frames took too long, and says so. `None` if there are no frames.
fn exceeds(report: &Report, limit: &FramesLimit) -> Option<bool> {
    let frames = report.frames.as_ref()?;
    let has_failed = frames.over_percent()? > limit.percent;
    if has_failed {
        let told = over_budget(frames).unwrap_or_default();
        ui::say(&format!("FAILED: {told}; at most {} may", units::percent(limit.percent)));
    }
    Some(has_failed)
}

/// Returns the time between reports, and what is asked of a trend: it takes `--interval` for itself.
fn intervals(
    args: &ReportArgs,
    period: (Nanos, Nanos),
) -> anyhow::Result<(Option<Duration>, Option<TrendAsked>)> {
    if !args.output.views.iter().any(|name| name == TREND.name) {
        return Ok((args.output.interval, None));
    }
    ensure!(
        !args.output.cumulative,
        "--cumulative is for several reports, and --view {} divides one: leave one of them out",
        TREND.name
    );
    let Some(interval) = args.output.interval.map(|interval| Nanos(interval.as_nanos() as u64))
    else {
        return Ok((None, Some(TrendAsked::default())));
    };
    let whole = window(args.query.lens.time(), period)?.unwrap_or(period.0..period.1);
    let length = whole.end.since(whole.start);
    check_count(length.0.div_ceil(interval.0.max(1)), "intervals", TrendAsked::MOST, length)?;
    Ok((None, Some(TrendAsked { interval: Some(interval) })))
}

fn check_count(count: u64, what: &str, most: u64, length: Nanos) -> anyhow::Result<()> {
    ensure!(
        count <= most,
        "--interval would make {} {what} of the {} that the recording says it has; at most {} are \
         made: give a longer --interval, or a part of it with --time",
        units::count(count),
        units::time(length, units::Digits::Full),
        units::count(most),
    );
    Ok(())
}

/// Returns the times of the reports: one, or one for each interval.
fn windows(
    args: &ReportArgs,
    interval: Option<Duration>,
    period: (Nanos, Nanos),
) -> anyhow::Result<impl Iterator<Item = Option<Range<Nanos>>>> {
    let asked = window(args.query.lens.time(), period)?;
    let whole = asked.clone().unwrap_or(period.0..period.1);
    let length = whole.end.since(whole.start);
    let step = interval.map_or(length.0, |interval| interval.as_nanos() as u64).max(1);
    let count = length.0.div_ceil(step).max(1);
    let most = if args.output.by.is_some() {
        MOST_REPORTS / (MOST_PARTS as u64 + 1)
    } else {
        MOST_REPORTS
    };
    check_count(count, "reports", most, length)?;
    let (is_one, cumulative) = (interval.is_none(), args.output.cumulative);
    let part = move |n: u64| {
        let edge =
            |n: u64| Nanos(whole.start.0.saturating_add(n.saturating_mul(step))).min(whole.end);
        let from = if cumulative { whole.start } else { edge(n) };
        if is_one { asked.clone() } else { Some(from..edge(n + 1)) }
    };
    Ok((0..count).map(part))
}
