//! `ctrace trace`: every call as a line, of a process, a command, or a recording. `ctrace log` prints
//! its lines by the same way.

use super::{
    Failure, attach, log,
    open::open,
    process,
    query::{query, window},
    run, spec,
};
use crate::{
    bpf,
    cli::{LensArgs, LinesArgs, QueryArgs, TraceLinesArgs, ValuesArgs},
    session::{
        keep::{
            lines::{LineKind, Printer},
            output::Output,
            sink::{self, Out},
            stream::Stream,
        },
        run::signals,
    },
    target::{process::lookup::ProcessName, read::regular::open_regular},
    ui,
};
use anyhow::{Context as _, anyhow, ensure};
use ctrace_core::{formats::stream::replay, recording};
use std::{
    io::Read as _,
    path::{Path, PathBuf},
};

/// The contents of lines, and whether each is a JSON object.
type Form = (LineKind, bool);

pub(super) fn main(args: TraceLinesArgs, verbose: u8) -> Result<u8, Failure> {
    lines(args.lines, "trace", (LineKind::Calls, args.json), verbose)
}

/// Prints the lines of a subcommand.
pub(super) fn lines(
    args: LinesArgs,
    subcommand: &str,
    form: Form,
    verbose: u8,
) -> Result<u8, Failure> {
    if is_recording(&args.subject) {
        of_recording(args, form)?;
        return Ok(0);
    }
    check_live(&args)?;
    signals::await_trace()?;
    let mut spec = spec::trace(&args.what);
    if !args.command.is_empty() {
        let (resolved, user) = run::resolve(subcommand, &args.command, args.user.user.as_deref())?;
        bpf::require()?;
        let output = output(&args, form, sink::Default::Stderr)?;
        let program = run::program(&args.command, &resolved, &user);
        return Ok(run::launch(&spec, &program, output, args.duration, verbose)?);
    }
    let names = processes_of(&args)?;
    bpf::require()?;
    let chosen = process::choose(names, args.user.later, args.duration, &mut spec.probes)?;
    let output = output(&args, form, sink::Default::Stdout)?;
    Ok(attach::attach(&spec, chosen, output, args.duration, verbose)?)
}

/// Returns whether words on the command line are the files of a recording.
pub(super) fn is_recording(words: &[PathBuf]) -> bool {
    let Some(word) = words.first() else { return false };
    let is_ours = || {
        let mut head = Vec::new();
        open_regular(word).ok()??.take(16).read_to_end(&mut head).ok()?;
        Some(recording::is_recording(&head))
    };
    is_ours() == Some(true) || word.extension().is_some_and(|end| end == "ctrace")
}

fn processes_of(args: &LinesArgs) -> anyhow::Result<Vec<ProcessName>> {
    let words = process_names(&args.subject)?;
    args.by.all_of_user(&words, args.user.user.as_deref())
}

/// Returns the processes that words on the command line name, where they could be files as well.
pub(super) fn process_names(words: &[PathBuf]) -> anyhow::Result<Vec<ProcessName>> {
    let parse = |word: &PathBuf| {
        let word = word.to_str().context("no process has such a name")?;
        ProcessName::parse(word).map_err(|why| anyhow!("{word}: {why}"))
    };
    words.iter().map(parse).collect()
}

fn output(args: &LinesArgs, form: Form, default: sink::Default) -> anyhow::Result<Output> {
    let printer = printer(args.output.as_deref(), form, default)?;
    let min_duration = args.what.filter.min_duration.unwrap_or_default();
    Ok(Output::Stream(Box::new(Stream::new(printer, min_duration))))
}

fn printer(
    output: Option<&Path>,
    (kind, json): Form,
    default: sink::Default,
) -> anyhow::Result<Printer> {
    Ok(Printer::new(Out::open(output, default)?, kind, json))
}

/// Refuses what is for recordings.
fn check_live(args: &LinesArgs) -> anyhow::Result<()> {
    let LensArgs { callers, callees, roots, times, fold_recursion, max_calls } = &args.lens;
    let names = [callers, callees, roots].iter().any(|list| !list.is_empty());
    ensure!(
        !names && times.is_empty() && !fold_recursion && max_calls.is_none(),
        "--time, --caller, --callee, --root, --fold-recursion and --max-calls are for a recording: \
         `ctrace record` makes one"
    );
    ensure!(
        args.what.probes.budget.is_none(),
        "--budget is for reports: the lines could not tell calls that were not seen from calls that \
         were not made; trace fewer functions, or use --max-slowdown"
    );
    Ok(())
}

/// Refuses what is for a process or a command.
fn check_recorded(args: &LinesArgs) -> anyhow::Result<()> {
    run::check_no_user(args.user.user.as_deref())?;
    let ValuesArgs { arguments, results, conditions, locks } = &args.what.values;
    let probes = &args.what.probes;
    ensure!(
        arguments.is_empty() && results.is_empty() && conditions.is_empty() && !locks,
        "--arg, --ret, --where and --locks are for a process: the lines of a recording have the values that \
         `ctrace record` read"
    );
    ensure!(
        args.duration.is_none() && !probes.follow && probes.budget.is_none(),
        "--duration, --follow and --budget are for a process: --time chooses a part of a recording"
    );
    Ok(())
}

fn of_recording(args: LinesArgs, form: Form) -> anyhow::Result<()> {
    check_recorded(&args)?;
    let LinesArgs { subject, output, what, lens, .. } = args;
    let mut args = QueryArgs { select: what.select, filter: what.filter, lens };
    let recording = open(&subject, &args.lens)?;
    if let (LineKind::Messages(_), _) = form {
        log::keep_messages(&mut args.select, |kind| {
            recording.functions().iter().any(|function| function.kind == kind)
        });
    }
    let (start, end) = recording.period();
    let window = window(args.lens.time(), (start, end))?;
    let took = window.as_ref().map_or(end.since(start), |part| part.end.since(part.start));
    let query = query(&args, &recording, window)?;
    let mut printer = printer(output.as_deref(), form, sink::Default::Stdout)?;
    let told = replay(&recording, &query, &mut printer);
    if let Some(told) = printer.is_read_after(told)? {
        let notes = recording.end().map_or(&[][..], |end| &end.notes);
        notes.iter().chain(&printer.summary(&told, took)).for_each(|line| ui::say(line));
    }
    Ok(())
}
