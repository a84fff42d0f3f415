//! What is said around the numbers. This file has the notes after them: what was not called,
//! filtered or followed.

pub(crate) mod exported;
pub(crate) mod few;
pub(crate) mod head;
pub(crate) mod loss;
pub(crate) mod marks;
pub(crate) mod queues;
pub(crate) mod waiting;

use crate::ui::text::names::{plain, shorten};
use crate::ui::text::units::{Digits, count, counted, time};
use ctrace_core::function::FunctionKind;
use ctrace_core::report::render::clean::clean;
use ctrace_core::report::render::rows::is_never_called;
use ctrace_core::report::{FunctionReport, Report};
use std::collections::HashSet;

/// Returns a sentence for each fact. Of functions that were not called, those that somebody named are
/// told first.
pub(crate) fn notes(report: &Report, show_zero: bool, named: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    let called: HashSet<_> =
        selected(report).filter(|f| !is_never_called(f)).map(scope_of).collect();
    let of_pairs: HashSet<_> =
        selected(report).filter(|f| !is_never_called(f)).flat_map(calls_of).collect();
    // A scope whose calls have names of their own, or a pair of probes that tells of methods.
    let is_named_late = |f: &FunctionReport| {
        let is_scope = scope_of(f).is_some() && called.contains(&scope_of(f));
        is_scope || of_pairs.contains(&(&*f.object, f.group.as_deref(), &*f.name))
    };
    let idle = selected(report).filter(|f| is_never_called(f) && !is_named_late(f));
    // A filter may have taken the calls that were counted.
    let is_running = |f: &&_| report.filtered_calls == 0 && was_running(report, f);
    let (running, mut idle): (Vec<_>, Vec<_>) = idle.partition(is_running);
    idle.sort_by_key(|f| !is_named(f, named));
    // What a part has no calls of was called elsewhere.
    let is_told = report.part.is_none() && !show_zero;
    let is_some_called = idle.len() + running.len() < selected(report).count();
    if is_told && is_some_called {
        out.extend(already_running(&running));
    }
    if !idle.is_empty() && is_some_called && is_told {
        let functions = counted(idle.len() as u64, "selected function", "selected functions");
        let what = match (report.filtered_calls, idle.len()) {
            (0, 1) => "was not called while traced",
            (0, _) => "were not called while traced",
            (_, 1) => "has no call that came through the filters",
            (_, _) => "have no call that came through the filters",
        };
        out.push(format!("{functions} {what}: {}.", names(&idle)));
    }
    if report.filtered_calls > 0 {
        let were = if report.filtered_calls == 1 { "was" } else { "were" };
        out.push(format!(
            "{} {were} filtered out; their time counts as their caller's self time.",
            counted(report.filtered_calls, "call", "calls"),
        ));
    }
    if report.paths_other_calls > 0 {
        let were = if report.paths_other_calls == 1 { "was" } else { "were" };
        out.push(format!(
            "{} {were} on paths beyond the bound on paths; the tree and the paths leave them out.",
            counted(report.paths_other_calls, "call", "calls"),
        ));
    }
    out.extend(untraced_children(report.target.untraced_children));
    out.extend(report.notes.iter().map(|note| clean(note).into_owned()));
    out
}

/// Returns a sentence on processes that were started and not followed.
pub(crate) fn untraced_children(children: u64) -> Option<String> {
    let were = if children == 1 { "was" } else { "were" };
    (children > 0).then(|| {
        format!(
            "{} {were} not traced; --follow traces them too.",
            counted(children, "child process", "child processes"),
        )
    })
}

/// Returns the place of a marker scope. Its rows differ in their names.
fn scope_of(function: &FunctionReport) -> Option<(&str, &str, u32)> {
    let (file, line) = (function.file.as_deref()?, function.line?);
    (function.kind == FunctionKind::Marker).then_some((&*function.object, file, line))
}

/// Returns the names of which a call of USDT probes may be, beside its own: a method is a call of its pair.
fn calls_of(function: &FunctionReport) -> impl Iterator<Item = (&str, Option<&str>, &str)> {
    let is_usdt = function.kind == FunctionKind::Usdt;
    let names = function.aliases.iter().filter(move |_| is_usdt);
    names.map(|name| (&*function.object, function.group.as_deref(), &**name))
}

/// Returns whether a thread seems to have been in the function when tracing began.
fn was_running(report: &Report, function: &FunctionReport) -> bool {
    let known = &report.target.already_running;
    known.iter().any(|it| it.name == function.name && it.object == function.object)
}

/// Returns a sentence on functions that seem to have been running already, and have no counted call.
fn already_running(functions: &[&FunctionReport]) -> Option<String> {
    let (seem, have) = if functions.len() == 1 { ("seems", "has") } else { ("seem", "have") };
    (!functions.is_empty()).then(|| {
        format!(
            "{} {seem} to have been running already when tracing began, and {have} no counted call \
             since: {}. A call that began before is not counted.",
            counted(functions.len() as u64, "selected function", "selected functions"),
            names(functions)
        )
    })
}

/// Returns whether one of the names stands for the function, in the ways in which -f takes it.
fn is_named(function: &FunctionReport, names: &[String]) -> bool {
    let (whole, bare) = (&*function.name, plain(&function.name));
    let ends = |text: &str, name: &str| {
        text.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with("::"))
    };
    names.iter().any(|name| ends(whole, name) || ends(&bare, name))
}

/// Returns the functions that somebody chose: waits come with them.
fn selected(report: &Report) -> impl Iterator<Item = &FunctionReport> {
    report.functions.iter().filter(|function| function.wait.is_none())
}

/// Names the first of some functions.
fn names(functions: &[&FunctionReport]) -> String {
    const MOST_NAMED: usize = 3;
    const ROOM: usize = 60;
    // Functions of one name, such as the variants of a destructor, are named once.
    let same: Vec<_> = functions.chunk_by(|a, b| a.name == b.name).collect();
    let first = same.iter().take(MOST_NAMED);
    let name = |same: &&[&FunctionReport]| {
        let name = shorten(&clean(&same[0].name), ROOM);
        if same.len() == 1 { name } else { format!("{name} ({})", same.len()) }
    };
    let mut named: Vec<_> = first.map(name).collect();
    let more = functions.len() - same.iter().take(MOST_NAMED).map(|same| same.len()).sum::<usize>();
    if more > 0 {
        named.push(format!("and {}", counted(more as u64, "more", "more")));
    }
    named.join(", ")
}

/// Returns the text to show instead of tables if no call was seen.
pub(crate) fn nothing_called(report: &Report) -> Vec<String> {
    // As the line above it tells the time.
    let seconds = time(report.duration_ns, Digits::Short);
    let mut out = Vec::new();
    if report.filtered_calls > 0 {
        return vec![format!(
            "No call came through the filters in {seconds}: all {} were filtered out.",
            count(report.filtered_calls),
        )];
    }
    if report.loss.decode_errors > 0 {
        return vec!["No call can be read.".to_owned()];
    }
    match selected(report).count() as u64 {
        0 => return vec!["Nothing was traced: no function was selected.".to_owned()],
        1 => out.push(format!("The selected function was not called in {seconds}.")),
        n => out
            .push(format!("None of the {} selected functions was called in {seconds}.", count(n))),
    }
    let running: Vec<_> = report.functions.iter().filter(|f| was_running(report, f)).collect();
    if let Some(line) = already_running(&running) {
        out.push(line);
        return out;
    }
    // A note says how to trace them, and needs no guesses before it.
    if report.target.untraced_children > 0 {
        return out;
    }
    out.push(
        "The program may do its work elsewhere, or have been idle: trace longer (-d), give it \
         something to do, or look at what else there is with `ctrace list`. Functions that the \
         compiler inlined are never called."
            .to_owned(),
    );
    out
}
