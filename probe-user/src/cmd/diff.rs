//! `ctrace diff`: compares two recordings, or several of each side.

use super::{
    Failure,
    open::{open_file, open_several},
    query::{QuerySource, queries},
};
use crate::{
    cli::{DiffArgs, DiffFormat, LensArgs, QueryArgs},
    session::keep::{
        parts::Parts,
        sink::{Default, Out},
    },
    ui::{self, DiffOptions, text::units::counted},
};
use anyhow::{Context, bail, ensure};
use ctrace_core::{
    diff::{ComparedFile, Content, Diff, ReportFacts, RowSelection, check_column, diff},
    function::FunctionInfo,
    recording::{
        Recording, is_recording,
        replay::{Query, report},
    },
    report::{By, PartReport, render::json},
    units::Nanos,
};
use std::{
    collections::HashSet,
    fs::{self, File},
    io::Read,
    iter,
    ops::Range,
    path::{Path, PathBuf},
};

/// The exit status when something got worse.
pub(super) const WORSE: u8 = 1;
/// Larger than any report, in bytes.
const MOST_JSON: u64 = 256 << 20;

enum Input {
    Recording(Box<Recording>),
    Report(ReportFacts),
}

/// An opened file.
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
    let out = Out::open(args.output.output.as_deref(), Default::Stdout)?;
    let found = compare(args)?;
    if args.judge.fail_over.is_some() {
        found.iter().try_for_each(check_whole)?;
    }
    let options = DiffOptions { views: args.output.views.clone(), selection };
    let texts = found.iter().map(|found| match args.output.format {
        // Several documents have a line each.
        DiffFormat::Json if args.output.by.is_some() => json::line(found),
        DiffFormat::Json => json::to_pretty(found),
        DiffFormat::Table => ui::render_diff(found, &options, &out.style),
    });
    let between = match args.output.format {
        DiffFormat::Json => "",
        DiffFormat::Table => "\n",
    };
    let text = texts.collect::<Vec<_>>().join(between);
    out.paged().write(&text)?;
    Ok(if found.iter().any(|found| found.failed) { WORSE } else { 0 })
}

/// Returns the comparison of everything, and that of each part.
fn compare(args: &DiffArgs) -> anyhow::Result<Vec<Diff>> {
    let sides = args.sides()?;
    let [old, new] = [&sides[0], &sides[1]].map(|files| open_side(files, &args.query.lens));
    let (old, new) = (old?, new?);
    if let Some(report) = old.iter().chain(&new).find(|file| matches!(file.input, Input::Report(_)))
    {
        check_report(args, &report.file, sides.iter().any(|side| side.len() > 1))?;
    }
    let [time_of_old, time_of_new] = args.times();
    let of_old = old.iter().map(|file| file.asked(time_of_old));
    let asked: Vec<_> = of_old.chain(new.iter().map(|file| file.asked(time_of_new))).collect();
    let queries = queries(&args.query, &asked)?;
    let (of_old, of_new) = queries.split_at(old.len());
    let options = args.judge.options(args.output.sort.as_deref());
    let whole = diff(&sources(&old, of_old), &sources(&new, of_new), &options);
    let parts = match &args.output.by {
        Some(by) => parts_of_all(old.iter().chain(&new).zip(&queries), by)?,
        None => Vec::new(),
    };
    let parts = parts.into_iter().map(|(part, queries)| {
        let (of_old, of_new) = queries.split_at(old.len());
        let found = diff(&sources(&old, of_old), &sources(&new, of_new), &options);
        // Notes on the files are told once.
        let is_new = |note: &String| !whole.notes.contains(note);
        let notes = found.notes.into_iter().filter(is_new).collect();
        Diff { part: Some(part), notes, ..found }
    });
    let parts: Vec<Diff> = parts.collect();
    Ok(iter::once(whole).chain(parts).collect())
}

/// Returns the parts that all files have, each with its query for every file.
fn parts_of_all<'a>(
    files: impl Iterator<Item = (&'a Opened, &'a Query)>,
    by: &By,
) -> anyhow::Result<Vec<(PartReport, Vec<Query>)>> {
    if matches!(by, By::Process | By::Thread) {
        bail!("ids differ from run to run: give --by exe, cgroup or name, or 'FUNCTION: ARG'");
    }
    let of_file = |(file, query): (&Opened, &Query)| {
        let Input::Recording(recording) = &file.input else {
            bail!("{} is a report, without single calls: --by needs recordings", file.file);
        };
        let whole = report(recording, query, 0.0);
        let parts = Parts::of(recording, by, query, &whole)?;
        parts.none.iter().for_each(|why| ui::say(&format!("{}: {why}", file.file)));
        Ok(parts)
    };
    let parts = files.map(of_file).collect::<anyhow::Result<Vec<_>>>()?;
    let of = |parts: &Parts, wanted: &PartReport| {
        let found = parts.each().find(|(part, _)| is_same(part, wanted));
        found.map(|(_, query)| query.clone())
    };
    let of_all = |wanted: &PartReport| parts.iter().map(|parts| of(parts, wanted)).collect();
    let mut found = Vec::<(PartReport, Vec<Query>)>::new();
    let mut left_out = Vec::<PartReport>::new();
    for (part, _) in parts.iter().flat_map(Parts::each) {
        let is_known = found.iter().map(|(known, _)| known).chain(&left_out);
        if is_known.clone().any(|known| is_same(known, part)) {
            continue;
        }
        match of_all(part) {
            Some(queries) => {
                let same = parts.iter().flat_map(Parts::each).filter(|(it, _)| is_same(it, part));
                let processes = part.processes.map(|_| same.filter_map(|it| it.0.processes).sum());
                found.push((PartReport { processes, ..part.clone() }, queries));
            }
            None => left_out.push(part.clone()),
        }
    }
    if !left_out.is_empty() {
        let parts = counted(left_out.len() as u64, "part is", "parts are");
        ui::say(&format!("{parts} not among those of every file, and not compared"));
    }
    Ok(found)
}

/// Returns whether two recordings have this part in common. The full name of a function may have changed.
fn is_same(one: &PartReport, other: &PartReport) -> bool {
    one.calls == other.calls && (one.calls.is_some() || one.name == other.name)
}

/// Opens reports and recordings. The files of a rotated recording are one.
fn open_side(files: &[PathBuf], lens: &LensArgs) -> anyhow::Result<Vec<Opened>> {
    let (mut reports, mut recordings) = (Vec::new(), Vec::new());
    let mut given = HashSet::new();
    for path in files {
        // Twice the same calls would look like two runs that agree.
        let file = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        ensure!(given.insert(file), "{} is given twice for one side; give it once", path.display());
        match Opened::report(path)? {
            Some(report) => reports.push(report),
            None => recordings.push(path),
        }
    }
    if !recordings.is_empty() {
        let opened = open_several(&recordings, lens)?.into_iter();
        reports.extend(opened.map(|(file, recording)| Opened::recording(file, recording)));
    }
    Ok(reports)
}

impl Opened {
    /// Opens a report. Returns `None` for a recording.
    fn report(path: &Path) -> anyhow::Result<Option<Self>> {
        let shown = path.display();
        let mut file = open_file(path)?;
        let mut head = Vec::new();
        let read = |file: &mut File, most, into: &mut Vec<u8>| {
            file.take(most).read_to_end(into).with_context(|| format!("cannot read {shown}"))
        };
        read(&mut file, 16, &mut head)?;
        if is_recording(&head) {
            return Ok(None);
        }
        read(&mut file, MOST_JSON, &mut head)?;
        let facts = ReportFacts::parse(&head).map_err(|e| anyhow::anyhow!("{shown} {e}"))?;
        let functions = facts.functions();
        Ok(Some(Self { file: shown.to_string(), input: Input::Report(facts), functions }))
    }

    fn recording(file: String, recording: Recording) -> Self {
        let functions = recording.functions().to_vec();
        Self { file, input: Input::Recording(Box::new(recording)), functions }
    }

    fn asked<'a>(&'a self, time: Option<&'a Range<Nanos>>) -> QuerySource<'a> {
        let recording = match &self.input {
            Input::Recording(recording) => Some(&**recording),
            Input::Report(_) => None,
        };
        QuerySource { functions: &self.functions, recording, time }
    }
}

/// Refuses damaged recordings for --fail-over: a reliable verdict needs all calls.
fn check_whole(found: &Diff) -> anyhow::Result<()> {
    let Some(damaged) = [&found.old, &found.new].into_iter().find(|side| side.loss.is_damage())
    else {
        return Ok(());
    };
    let files = damaged.files.join(", ");
    bail!("{files} cannot be read as a whole; without --fail-over what is left is compared")
}

/// Refuses options that a report cannot answer. `several`: a side has more than one file.
fn check_report(args: &DiffArgs, file: &str, several: bool) -> anyhow::Result<()> {
    let QueryArgs { filter, lens, .. } = &args.query;
    let filters = filter.min_duration.is_some()
        || filter.depth.is_some()
        || !filter.threads.is_empty()
        || [&lens.callers, &lens.callees, &lens.roots].iter().any(|list| !list.is_empty())
        || !lens.times.is_empty()
        || lens.fold_recursion;
    let unable = if args.judge.fail_over.is_some() {
        "--fail-over cannot be told from it"
    } else if filters {
        "only -f, -u, -m and -x can choose from it"
    } else if several {
        "it cannot be put together with others"
    } else {
        return Ok(());
    };
    bail!("{file} is a report, without single calls: {unable}; give recordings of `ctrace record`")
}

fn sources<'a>(files: &'a [Opened], queries: &'a [Query]) -> Vec<ComparedFile<'a>> {
    let source = |(file, query): (&'a Opened, &'a Query)| ComparedFile {
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
