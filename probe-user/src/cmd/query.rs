//! Turns SELECT, FILTER and lens options into a query for the core.

use super::spec::filter;
use crate::{
    cli::{FilterArgs, QueryArgs},
    target::select::{Patterns, recorded::choose},
    ui::text::units::{Digits, time},
};
use anyhow::{bail, ensure};
use ctrace_core::{
    function::FunctionInfo,
    recording::{Recording, replay::Query},
    report::render::clean::clean,
    units::Nanos,
};
use std::{collections::BTreeSet, ops::Range};

/// The object of a query: a recording, or a report, which has only functions.
pub(super) struct QuerySource<'a> {
    pub(super) functions: &'a [FunctionInfo],
    pub(super) recording: Option<&'a Recording>,
    /// The time to look at, if it is another than that of the query.
    pub(super) time: Option<&'a Range<Nanos>>,
}

impl<'a> From<&'a Recording> for QuerySource<'a> {
    fn from(recording: &'a Recording) -> Self {
        Self { functions: recording.functions(), recording: Some(recording), time: None }
    }
}

/// Returns the query for one recording.
pub(super) fn query(
    args: &QueryArgs,
    recording: &Recording,
    window: Option<Range<Nanos>>,
) -> anyhow::Result<Query> {
    check_threads(&args.filter, &[recording.into()])?;
    query_of(args, recording.functions(), window)
}

fn query_of(
    args: &QueryArgs,
    functions: &[FunctionInfo],
    window: Option<Range<Nanos>>,
) -> anyhow::Result<Query> {
    let of = |texts: &[String]| -> anyhow::Result<Option<Vec<bool>>> {
        if texts.is_empty() {
            return Ok(None);
        }
        Ok(Some(choose(functions, &Patterns { functions: texts, ..Patterns::default() })?))
    };
    let QueryArgs { select, lens, .. } = args;
    let selected = Patterns {
        functions: &select.functions,
        usdt: &select.usdt,
        markers: &select.markers,
        exclude: &select.exclude,
        ..Patterns::default()
    };
    Ok(Query {
        filter: filter(&args.filter),
        functions: match selected.is_empty() {
            true => None,
            false => Some(choose(functions, &selected)?),
        },
        window,
        callers: of(&lens.callers)?,
        callees: of(&lens.callees)?,
        roots: of(&lens.roots)?,
        fold_recursion: lens.fold_recursion,
        ..Query::default()
    })
}

/// Returns the queries for several files. A pattern may match in any of them.
pub(super) fn queries(args: &QueryArgs, files: &[QuerySource<'_>]) -> anyhow::Result<Vec<Query>> {
    let all: Vec<FunctionInfo> =
        files.iter().flat_map(|file| file.functions.iter().cloned()).collect();
    check_threads(&args.filter, files)?;
    let query = query_of(args, &all, None)?;
    let mut first = 0;
    let of_each = files.iter().map(|file| {
        let range = first..first + file.functions.len();
        first = range.end;
        let time = file.time.or(args.lens.time());
        let window = file.recording.map(|r| window(time, r.period())).transpose()?;
        Ok(Query { window: window.flatten(), ..part(&query, &range) })
    });
    of_each.collect()
}

fn part(query: &Query, range: &Range<usize>) -> Query {
    let of = |list: &Option<Vec<bool>>| list.as_ref().map(|list| list[range.clone()].to_vec());
    Query {
        functions: of(&query.functions),
        callers: of(&query.callers),
        callees: of(&query.callees),
        roots: of(&query.roots),
        ..query.clone()
    }
}

/// Checks that each requested thread is in one of the files.
fn check_threads(args: &FilterArgs, files: &[QuerySource<'_>]) -> anyhow::Result<()> {
    let threads = || files.iter().filter_map(|file| file.recording).flat_map(Recording::threads);
    let wanted = filter(args).threads;
    for (wanted, text) in wanted.iter().zip(&args.threads) {
        if !threads().any(|thread| wanted.matches(thread.tid, &thread.name)) {
            let names: BTreeSet<&str> = threads().map(|thread| &*thread.name).collect();
            let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
            bail!("no thread `{text}` was recorded{}", some(&names));
        }
    }
    Ok(())
}

/// Joins the first of some names.
fn some(names: &[&str]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<_> = names.iter().take(SHOWN).map(|name| clean(name)).collect();
    match (names.len(), shown.join(", ")) {
        (0, _) => String::new(),
        (..=SHOWN, all) => format!("; there are {all}"),
        (_, first) => format!("; there are {first}, …"),
    }
}

/// Returns `--time`, counted from the start of a recording.
pub(super) fn window(
    asked: Option<&Range<Nanos>>,
    (start, end): (Nanos, Nanos),
) -> anyhow::Result<Option<Range<Nanos>>> {
    let Some(asked) = asked else { return Ok(None) };
    let from = start.saturating_add(asked.start);
    ensure!(
        from < end,
        "--time begins when the recording is over: it has {}",
        time(end.since(start), Digits::Full)
    );
    Ok(Some(from..start.saturating_add(asked.end).min(end)))
}
