//! `ctrace diff`: two recordings, or several of each side, compared.

use super::{Failure, query::query};
use crate::{
    cli::{DiffArgs, DiffFormat},
    session::sink::{Default, Out},
    ui::{self, DiffOptions},
};
use anyhow::{Context, bail};
use ctrace_core::{
    diff::{Content, Diff, Options, ReportFacts, RowSelection, Source, check_column, diff},
    export::json,
    function::FunctionInfo,
    record::{Recording, is_recording},
    replay::Query,
    units::Nanos,
};
use std::{
    fs::File,
    io::Read,
    ops::Range,
    path::{Path, PathBuf},
};

/// The exit status when something got worse.
const WORSE: u8 = 1;
/// No report is as large.
const MOST_JSON: u64 = 256 << 20;

enum Input {
    Recording(Box<Recording<File>>),
    Report(ReportFacts),
}

/// A file, opened.
struct Opened {
    file: String,
    input: Input,
    functions: Vec<FunctionInfo>,
}

pub(super) fn main(args: &DiffArgs) -> Result<u8, Failure> {
    let selection = RowSelection {
        sort: args.output.sort.clone(),
        top: args.output.top,
        min_percent: args.output.min_percent,
    };
    selection.sort.as_deref().map_or(Ok(()), check_column)?;
    let mut out = Out::open(args.output.output.as_deref(), Default::Stdout)?;
    let found = compare(args)?;
    let text = match args.output.format {
        DiffFormat::Json => json::to_pretty(&found),
        DiffFormat::Table => {
            let options = DiffOptions { views: args.output.views.clone(), selection };
            ui::render_diff(&found, &options, &out.style)
        }
    };
    out.write(&text)?;
    Ok(if found.failed { WORSE } else { 0 })
}

fn compare(args: &DiffArgs) -> anyhow::Result<Diff> {
    let open_side = |first: &PathBuf, more: &[PathBuf]| -> anyhow::Result<Vec<Opened>> {
        std::iter::once(first).chain(more).map(|path| Opened::open(path)).collect()
    };
    let old = open_side(&args.old, &args.more_old)?;
    let new = open_side(&args.new, &args.more_new)?;
    if let Some(report) = old.iter().chain(&new).find(|file| matches!(file.input, Input::Report(_)))
    {
        check_report(args, &report.file)?;
    }
    let queries = queries(args, old.iter().chain(&new))?;
    let (of_old, of_new) = queries.split_at(old.len());
    let options = Options {
        metric: args.judge.metric,
        fail_over: args.judge.fail_over,
        margin: args.judge.margin,
    };
    Ok(diff(&sources(&old, of_old), &sources(&new, of_new), &options))
}

impl Opened {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let mut file = File::open(path).with_context(|| format!("cannot open {shown}"))?;
        let mut head = Vec::new();
        let read = |file: &mut File, most, into: &mut Vec<u8>| {
            file.take(most).read_to_end(into).with_context(|| format!("cannot read {shown}"))
        };
        read(&mut file, 16, &mut head)?;
        let (input, functions) = if is_recording(&head) {
            let recording = Recording::open(file).map_err(|e| anyhow::anyhow!("{shown} {e}"))?;
            let functions = recording.functions().to_vec();
            (Input::Recording(Box::new(recording)), functions)
        } else {
            read(&mut file, MOST_JSON, &mut head)?;
            let facts = ReportFacts::parse(&head).map_err(|e| anyhow::anyhow!("{shown} {e}"))?;
            let functions = facts.functions();
            (Input::Report(facts), functions)
        };
        Ok(Self { file: shown.to_string(), input, functions })
    }
}

/// What reports cannot be asked.
fn check_report(args: &DiffArgs, file: &str) -> anyhow::Result<()> {
    let filter = &args.filter;
    let lens = &args.lens;
    let filters = filter.min_duration.is_some()
        || filter.depth.is_some()
        || !filter.threads.is_empty()
        || [&lens.callers, &lens.callees, &lens.roots].iter().any(|list| !list.is_empty())
        || lens.time.is_some()
        || lens.fold_recursion;
    let unable = if args.judge.fail_over.is_some() {
        "--fail-over cannot be told from it"
    } else if filters {
        "only -f, -u, -m and -x can choose from it"
    } else if !args.more_old.is_empty() || !args.more_new.is_empty() {
        "it cannot be put together with others"
    } else {
        return Ok(());
    };
    bail!("{file} is a report, without single calls: {unable}; give recordings of `ctrace record`")
}

/// What to look at in each file. A pattern may match in any of them.
fn queries<'a>(
    args: &DiffArgs,
    files: impl Iterator<Item = &'a Opened> + Clone,
) -> anyhow::Result<Vec<Query>> {
    let all: Vec<FunctionInfo> = files.clone().flat_map(|file| file.functions.clone()).collect();
    let query = query(&args.select, &args.filter, &args.lens, &all, None)?;
    let mut first = 0;
    let of_each = files.map(|file| {
        let range = first..first + file.functions.len();
        first = range.end;
        Query { window: window(args, file), ..part(&query, &range) }
    });
    Ok(of_each.collect())
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

/// `--time`, from the file's own start.
fn window(args: &DiffArgs, file: &Opened) -> Option<Range<Nanos>> {
    let (time, Input::Recording(recording)) = (args.lens.time.as_ref()?, &file.input) else {
        return None;
    };
    let (start, end) = recording.period();
    Some(start.saturating_add(time.start)..start.saturating_add(time.end).min(end))
}

fn sources<'a>(files: &'a [Opened], queries: &'a [Query]) -> Vec<Source<'a, File>> {
    let source = |(file, query): (&'a Opened, &'a Query)| Source {
        file: file.file.clone(),
        content: match &file.input {
            Input::Recording(recording) => Content::Recording { recording, query },
            Input::Report(facts) => {
                Content::Report { facts, functions: query.functions.as_deref() }
            }
        },
    };
    files.iter().zip(queries).map(source).collect()
}
