//! Converts command line options into the specs of sessions and reports.

use super::aggregate;
use crate::{
    bpf::LinkChoice,
    cli::{
        FilterArgs, LinkArg, MostArgs, OnFullArg, OutputArgs, ProbeArgs, ProgramSelectArgs,
        ReportFormat as FormatArg, ReturnsArg, SelectArgs, TraceArgs, ValuesArgs, WhatArgs,
    },
    session::spec::{
        OnFull, ProbeSpec, ReportFormat, ReportSpec, SelectSpec, SelectionLimits, TraceSpec,
    },
    target::{
        place::Returns,
        read::budget::ObjectLimits,
        select::pattern::Pattern,
        values::{asked::RESULT, locks},
    },
    ui::views::{LOCKS, WAKERS},
};
use anyhow::{bail, ensure};
use ctrace_core::{
    filter::{Filter, ThreadFilter},
    report::By,
};

pub(super) fn trace(args: &WhatArgs) -> TraceSpec {
    TraceSpec {
        select: select(&args.select, &args.program, &args.values),
        most: limits(&args.most),
        filter: filter(&args.filter),
        probes: probes(&args.probes),
    }
}

pub(super) fn select(
    args: &SelectArgs,
    program: &ProgramSelectArgs,
    values: &ValuesArgs,
) -> SelectSpec {
    let of_locks = if values.locks { locks::asked() } else { Vec::new() };
    SelectSpec {
        functions: args.functions.clone(),
        usdt: args.usdt.clone(),
        markers: args.markers.clone(),
        exclude: args.exclude.clone(),
        pairs: program.pairs.clone(),
        no_pairs: program.no_pairs,
        providers: program.providers.clone(),
        with_callees: program.with_callees.unwrap_or(0),
        with_callers: program.with_callers.unwrap_or(0),
        values: [values.arguments.as_slice(), &values.results, &values.conditions, &of_locks]
            .concat(),
        locks: values.locks,
    }
}

/// Refuses to follow locks where neither they nor the calls of lock functions would be shown.
pub(super) fn refuse_locks(values: &ValuesArgs) -> anyhow::Result<()> {
    ensure!(
        !values.locks,
        "--locks is not for this command: `ctrace attach PID --locks` shows locks, and `ctrace trace PID \
         --locks` every call"
    );
    Ok(())
}

pub(super) fn limits(args: &MostArgs) -> SelectionLimits {
    SelectionLimits {
        max_functions: args.max_functions,
        object: ObjectLimits { memory: args.max_object_memory, time: args.max_object_time },
    }
}

pub(super) fn filter(args: &FilterArgs) -> Filter {
    Filter {
        min_duration: args.min_duration.unwrap_or_default(),
        max_depth: args.depth,
        threads: args.threads.iter().map(|text| ThreadFilter::new(text)).collect(),
    }
}

pub(super) fn returns(arg: ReturnsArg) -> Returns {
    match arg {
        ReturnsArg::Auto => Returns::Auto,
        ReturnsArg::Uretprobe => Returns::ReturnProbe,
        ReturnsArg::RetSites => Returns::RetSites,
    }
}

pub(super) fn report(args: &OutputArgs, select: &SelectArgs) -> ReportSpec {
    ReportSpec {
        format: match args.format {
            FormatArg::Table => ReportFormat::Table,
            FormatArg::Json => ReportFormat::Json,
            FormatArg::Csv => ReportFormat::Csv,
        },
        views: match (&args.frame, args.views.as_slice()) {
            (Some(_), []) => vec!["frames".to_owned()],
            _ => args.views.clone(),
        },
        sort: args.sort.clone(),
        top: args.top,
        center_cut: args.center,
        min_percent: args.min_percent,
        interval: args.interval,
        cumulative: args.cumulative,
        raw: args.raw,
        frame: args.frame.clone(),
        by: args.by.clone(),
        aggregate: false,
        named: select.functions.iter().filter_map(|text| Pattern::literal_name(text)).collect(),
        output: args.output.clone(),
    }
}

/// Returns what `run` and `attach` trace.
pub(super) fn traced(args: &TraceArgs) -> TraceSpec {
    let mut spec = trace(&args.what());
    spec.probes.aggregate = args.aggregate;
    spec
}

/// Returns the report of `run` and `attach`. Values that are asked for are shown, unless a view was
/// chosen.
pub(super) fn live_report(args: &TraceArgs) -> anyhow::Result<ReportSpec> {
    aggregate::check(args)?;
    let mut spec = report(&args.output, &args.select);
    spec.aggregate = args.aggregate;
    let asks = !args.values.arguments.is_empty() || !args.values.results.is_empty();
    if let Some(by) = &spec.by {
        let ask = match by {
            By::Value { function, argument } if argument == RESULT => format!("--ret '{function}'"),
            By::Value { function, argument } => format!("--arg '{function}: {argument}'"),
            _ => String::new(),
        };
        let unasked = format!(
            "--by takes calls apart by a value: ask for the value as well, as in {ask} (or, without \
             debug information, --arg 'handle: 0:u64' --by 'handle: arg0')"
        );
        let wrong = [
            (spec.interval.is_some(), "--by makes parts of one report: leave out --interval"),
            (
                args.probes.budget.is_some(),
                "--by needs every call: leave out --budget, and trace fewer functions or use \
                 --max-slowdown",
            ),
            (
                matches!(by, By::Value { .. })
                    && !asks
                    && !args.probes.wakers
                    && !may_have_values(&args.select),
                &unasked,
            ),
        ];
        if let Some((_, why)) = wrong.into_iter().find(|(is_so, _)| *is_so) {
            bail!("{why}");
        }
    }
    if args.values.locks && spec.interval.is_some() {
        bail!(
            "--locks needs every call: leave out --interval, or record with `ctrace record --locks` and \
             choose a part of the time with `ctrace report --view locks --time`"
        );
    }
    if args.probes.wakers && spec.interval.is_some() {
        bail!(
            "--wakers needs every call: leave out --interval, or record with `ctrace record --wakers` and \
             choose a part of the time with `ctrace report --view wakers --time`"
        );
    }
    let by_value = matches!(spec.by, Some(By::Value { .. }));
    let shows_values = asks && !by_value && spec.interval.is_none();
    let csv = spec.format == ReportFormat::Csv;
    if spec.views.is_empty() {
        let shows_more = args.values.locks || args.probes.wakers;
        let views: &[&str] = match (shows_values, shows_more) {
            (true, _) if csv => &["values"],
            (true, _) => &["summary", "values", "calls"],
            (false, true) if !csv => &["summary"],
            (false, _) => &[],
        };
        spec.views = views.iter().map(|view| (*view).to_owned()).collect();
    }
    // A table of CSV has room for one view.
    let has_room = !csv || spec.views.is_empty();
    if args.values.locks && has_room && !spec.views.iter().any(|view| view == LOCKS.name) {
        spec.views.push(LOCKS.name.to_owned());
    }
    let has_room = !csv || spec.views.is_empty();
    if args.probes.wakers && has_room && !spec.views.iter().any(|view| view == WAKERS.name) {
        spec.views.push(WAKERS.name.to_owned());
    }
    Ok(spec)
}

/// Refuses to tell who ends waits where that would not be shown.
pub(super) fn refuse_wakers(probes: &ProbeArgs) -> anyhow::Result<()> {
    ensure!(
        !probes.wakers,
        "--wakers is not for this command: `ctrace attach PID --wakers` shows who ends waits, and `ctrace \
         trace PID --wakers` does so for every wait"
    );
    Ok(())
}

/// Returns whether what is chosen may have values that need not be asked for: USDT probes and markers
/// do, and markers are what is traced unless something is chosen.
fn may_have_values(select: &SelectArgs) -> bool {
    let SelectArgs { functions, usdt, markers, .. } = select;
    !usdt.is_empty() || !markers.is_empty() || functions.is_empty()
}

fn probes(args: &ProbeArgs) -> ProbeSpec {
    ProbeSpec {
        returns: returns(args.returns),
        link: match args.link {
            LinkArg::Auto => LinkChoice::Auto,
            LinkArg::Session => LinkChoice::Session,
            LinkArg::Multi => LinkChoice::Multi,
            LinkArg::Perf => LinkChoice::Perf,
        },
        force_perf: args.force_perf,
        follow: args.follow,
        wait: args.wait,
        admits: 0,
        ring_size: args.ring_size,
        on_full: args.on_full.map(|arg| match arg {
            OnFullArg::Drop => OnFull::Drop,
            OnFullArg::Wait => OnFull::Wait,
        }),
        spool: args.spool,
        budget: args.budget,
        waits: args.cpu || args.wakers,
        wakers: args.wakers,
        aggregate: false,
        max_slowdown: args.max_slowdown,
    }
}
