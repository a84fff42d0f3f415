//! Formats the lines above the views: target and times.

use crate::ui::output::style::{Style, Tone};
use crate::ui::table::grid::{self, ColumnGroup, GridColumn};
use crate::ui::text;
use crate::ui::text::clock::{self, Precision};
use crate::ui::text::units::{Digits, counted, percent, time};
use crate::ui::views::Context;
use ctrace_core::goroutines::id_beside_name;
use ctrace_core::report::render::clean::clean;
use ctrace_core::report::render::rows::is_never_called;
use ctrace_core::report::{
    FunctionReport, MORE_THREADS, PartReport, Report, TargetExit, TargetReport, UNREADABLE,
};
use ctrace_core::units::{Nanos, saturating_sum};
use std::collections::HashSet;

/// Returns the line that names the target; empty if nothing is known of it.
pub(crate) fn target(report: &Report, style: &Style) -> String {
    let target = &report.target;
    let mut parts = Vec::new();
    if !target.command.is_empty() {
        // A process that writes its own title pads it with blanks.
        let words = target.command.iter().map(|word| clean(word).trim().to_owned());
        let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
        parts.push(words.join(" "));
        parts.extend(behind_link(target));
    } else if let Some(exe) = &target.exe {
        parts.push(clean(exe).into_owned());
    }
    if let Some(pid) = target.pid {
        parts.push(format!("pid {}{}", pid.0, others(report)));
    }
    parts.extend(target.exit.map(ending));
    // What it does may go on there. The notes tell more.
    if target.untraced_children > 0 && !parts.is_empty() {
        let children = counted(target.untraced_children, "child process", "child processes");
        parts.push(format!("{children} not traced"));
    }
    if parts.is_empty() {
        return String::new();
    }
    text::paragraph(&parts.join(" · "), Tone::Title, style) + "\n"
}

/// Tells how many processes besides the first one have threads in the report, which are those with calls.
pub(crate) fn others(report: &Report) -> String {
    let processes: HashSet<_> = report.threads.iter().map(|thread| thread.pid).collect();
    let others = processes.iter().filter(|pid| Some(**pid) != report.target.pid).count() as u64;
    let is_cut = report.notes.iter().any(|note| note.ends_with(MORE_THREADS));
    let least = if is_cut { "at least " } else { "" };
    match others {
        0 => String::new(),
        n => {
            let what = counted(n, "other process with calls", "other processes with calls");
            format!(" and {least}{what}")
        }
    }
}

/// Returns the program's file, if a link of another name started it.
fn behind_link(target: &TargetReport) -> Option<String> {
    let (exe, program) = (target.exe.as_deref()?, target.program.as_deref()?);
    let is_other = exe.rsplit('/').next() != Some(program);
    is_other.then(|| clean(exe).into_owned())
}

/// Returns the line that names the part of a target.
pub(crate) fn part(part: &PartReport, style: &Style) -> String {
    let PartReport { pid, tid, name, processes, is_cgroup, calls } = part;
    let name = clean(name);
    let behind = if name.is_empty() { String::new() } else { format!(" · {name}") };
    let line = match (pid, tid, calls) {
        (.., Some(calls)) => {
            let (name, argument) = (clean(&calls.function), clean(&calls.argument));
            match &calls.value {
                Some(value) => format!("Calls of {name} · {argument} = {value}"),
                None if calls.is_unreadable => format!("Calls of {name} · {argument} {UNREADABLE}"),
                None => format!("Calls of {name} · other values of {argument}"),
            }
        }
        (_, Some(tid), None) => match id_beside_name(*tid, &name) {
            Some(id) => format!("Thread {id}{behind}"),
            None => format!("Goroutine{}", name.trim_start_matches("goroutine")),
        },
        (Some(pid), None, None) => format!("Process {}{behind}", pid.0),
        (None, None, None) => match processes {
            Some(number) => {
                let what = match (is_cgroup, &*name) {
                    (false, _) => "Program ",
                    (true, "") => "Control group unknown",
                    (true, _) => "Control group ",
                };
                format!("{what}{name} · {}", counted(*number, "process", "processes"))
            }
            None => format!("Threads {name}"),
        },
    };
    text::paragraph(&line, Tone::Title, style) + "\n"
}

/// Describes how the target ended.
pub(crate) fn ending(exit: TargetExit) -> String {
    match exit {
        TargetExit::Code(code) => format!("exited with {code}"),
        TargetExit::Signal(signal) => format!("killed by {}", name_of(signal)),
        TargetExit::Unknown => "ended".to_owned(),
    }
}

fn name_of(signal: i32) -> String {
    let named = SIGNALS.iter().find(|(number, _)| *number == signal);
    named.map_or_else(|| format!("signal {signal}"), |(_, name)| (*name).to_owned())
}

/// The signals that end programs, with the same number on all traced architectures.
const SIGNALS: [(i32, &str); 12] = [
    (1, "SIGHUP"),
    (2, "SIGINT"),
    (3, "SIGQUIT"),
    (4, "SIGILL"),
    (5, "SIGTRAP"),
    (6, "SIGABRT"),
    (7, "SIGBUS"),
    (8, "SIGFPE"),
    (9, "SIGKILL"),
    (11, "SIGSEGV"),
    (13, "SIGPIPE"),
    (15, "SIGTERM"),
];

/// Returns the line that says when and for how long, and how much was traced. The time of a part is that
/// of the whole.
pub(crate) fn stretch(context: &Context<'_>) -> String {
    let report = context.report;
    let mut parts = Vec::new();
    if report.part.is_none() {
        let mut when = time(report.duration_ns, Digits::Short);
        if let Some(offset) = context.options.epoch_offset_ns {
            let start = clock::date_time(report.start_ns, offset, Precision::Seconds);
            when += &format!(" from {start}");
        }
        parts.push(when);
    }
    let called = report.functions.iter().filter(|row| !is_never_called(row));
    let (waits, called): (Vec<_>, Vec<_>) = called.partition(|row| row.wait.is_some());
    let calls = |rows: &[&FunctionReport]| saturating_sum(rows.iter().map(|row| row.calls));
    let mut counts = Vec::new();
    if calls(&called) > 0 {
        let functions = counted(called.len() as u64, "function", "functions");
        counts.push(format!("{} of {functions}", counted(calls(&called), "call", "calls")));
    }
    if calls(&waits) > 0 {
        counts.push(counted(calls(&waits), "wait", "waits"));
    }
    if !counts.is_empty() {
        parts.push(counts.join(", "));
    }
    text::paragraph(&parts.join(" · "), Tone::Dim, context.style) + "\n"
}

/// Returns start, end, total and tracked time as one row.
pub(crate) fn times(context: &Context<'_>) -> String {
    let Report { tracked_ns, tracked_percent, .. } = context.report;
    match tracked_ns.zip(*tracked_percent) {
        Some((time, share)) => times_with(context, ("time tracked", time), ("tracked %", share)),
        None => stretch(context),
    }
}

/// Returns the same with this tracked time and this share of it, under these headings.
pub(crate) fn times_with(
    context: &Context<'_>,
    (of_time, tracked): (&str, Nanos),
    (of_share, share): (&str, f64),
) -> String {
    let report = context.report;
    let numbers = ColumnGroup::untitled(vec![
        GridColumn::right("time total", [time(report.duration_ns, Digits::Full)]),
        GridColumn::right(of_time, [time(tracked, Digits::Full)]),
        GridColumn::right(of_share, [percent(share)]),
    ]);
    let Some(offset) = context.options.epoch_offset_ns else {
        return grid::draw(&[&numbers]) + "\n";
    };
    let clock = |precision| {
        ColumnGroup::untitled(vec![
            GridColumn::left("start", [clock::date_time(report.start_ns, offset, precision)]),
            GridColumn::left("end", [clock::date_time(report.end_ns, offset, precision)]),
        ])
    };
    let fits = |times: &ColumnGroup| {
        context.style.width.is_none_or(|width| grid::total_width(&[times, &numbers]) <= width)
    };
    let forms = [Precision::Millis, Precision::Seconds].map(clock);
    match forms.iter().find(|times| fits(times)) {
        Some(times) => grid::draw(&[times, &numbers]) + "\n",
        None => grid::draw(&[&forms[1]]) + "\n" + &grid::draw(&[&numbers]) + "\n",
    }
}
