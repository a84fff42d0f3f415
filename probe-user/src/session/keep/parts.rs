//! Parts of what was recorded, each with a report of its own: processes, programs, control groups,
//! threads, threads of one name, and the calls of a function with one value.

use super::one_function::one_function;
use crate::ui::{say, text::units::counted};
use anyhow::bail;
use ctrace_core::{
    function::{FunctionInfo, qualified},
    goroutines::common_name,
    recording::{
        Recording, ThreadRecord,
        replay::{Query, WithValue, by_values_of},
    },
    report::{By, PartCalls, PartReport, Report, ThreadReport, render::clean::clean},
    units::{FuncId, Pid, ThreadId, Tid},
    values::Value,
};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

/// Each part takes a pass over the recording.
pub(crate) const MOST_PARTS: usize = 64;

/// Values that have a part; the others have one together.
pub(super) const MOST_VALUES: usize = 16;

pub(super) const HEADLESS: &str = "calls that began before (headless) are counted in the first report only: nothing tells whose they were";

/// A part, with the query that selects it.
struct Part {
    report: PartReport,
    query: Query,
}

#[derive(Default)]
pub(crate) struct Parts {
    each: Vec<Part>,
    /// The number of parts without a report.
    pub(crate) left_out: usize,
    /// The notes of each part.
    notes: Vec<String>,
    /// The reason why there are no parts.
    pub(crate) none: Option<String>,
}

impl Parts {
    /// Returns the parts of what the query selects. `whole` is the report on that.
    pub(crate) fn of(
        recording: &Recording,
        by: &By,
        query: &Query,
        whole: &Report,
    ) -> anyhow::Result<Self> {
        let threads = in_order(recording);
        let by_threads = |key: KeyOf<'_>| by_threads(&threads, key, query, &whole.threads);
        let mut parts = match by {
            By::Process => by_threads(&of_process),
            By::Exe => {
                let programs = programs(&threads);
                by_threads(&|pid, _, name| Key {
                    program: Some(programs.get(&pid).unwrap_or(name).clone()),
                    ..Key::default()
                })
            }
            By::Cgroup => {
                let groups = groups(&threads);
                by_threads(&|pid, _, _| Key {
                    group: Some(groups.get(&pid).cloned().unwrap_or_default()),
                    ..Key::default()
                })
            }
            By::Thread => by_threads(&of_thread),
            By::Name => by_threads(&of_name),
            By::Value { function, argument } => by_value(recording, function, argument, query)?,
        };
        if whole.loss.calls_headless > 0 {
            parts.notes.insert(0, HEADLESS.to_owned());
        }
        Ok(parts)
    }

    /// Returns that there are no parts, for this reason.
    pub(super) fn none(why: String) -> Self {
        Self { none: Some(why), ..Self::default() }
    }

    /// Iterates over the parts, with the query that selects each.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&PartReport, &Query)> {
        self.each.iter().map(|part| (&part.report, &part.query))
    }

    /// Writes the report on each part, which `of` makes of the calls that a query selects. Returns
    /// `false` if the reader went away.
    pub(crate) fn write_each(
        &self,
        of: impl Fn(&Query) -> Report,
        mut write: impl FnMut(Report) -> anyhow::Result<bool>,
    ) -> anyhow::Result<bool> {
        for Part { report: part, query } in &self.each {
            let mut report = of(query);
            report.notes.extend_from_slice(&self.notes);
            if !write(Report { part: Some(part.clone()), ..report })? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns the place of the value with this name, or with this number among the arguments (`arg1`, for which
/// `--arg` has `1`).
pub(super) fn place_of(info: &FunctionInfo, argument: &str) -> anyhow::Result<usize> {
    let is_it = |name: &str| name == argument || name.strip_prefix("arg") == Some(argument);
    let name = clean(&info.name);
    info.values.iter().position(|value| is_it(&value.name)).map_or_else(
        || {
            let there: Vec<_> = info.values.iter().map(|value| clean(&value.name)).collect();
            match there.is_empty() {
                true => {
                    bail!("{name} has no values that are read: ask for them with --arg or --ret")
                }
                false => bail!("{name} has no value `{argument}`; there are {}", there.join(", ")),
            }
        },
        Ok,
    )
}

/// Checks before a trace that the function has the value by which its calls are taken apart. One that is not
/// there yet, as that of a library that comes later, is looked for at the end.
pub(crate) fn check(by: &By, functions: &[FunctionInfo]) -> anyhow::Result<()> {
    let By::Value { function, argument } = by else { return Ok(()) };
    match one_function("--by", function, functions) {
        Ok(id) => place_of(&functions[id.index()], argument).map(drop),
        Err(_) => Ok(()),
    }
}

/// Says how many parts have no report.
pub(crate) fn say_left_out(parts: usize) {
    if parts > 0 {
        let what = "more processes, programs, control groups, threads or names had fewer calls and have no report";
        say(&format!("{parts} {what} of their own"));
    }
}

/// The properties that the threads of a part have in common.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    pid: Option<Pid>,
    tid: Option<Tid>,
    program: Option<Arc<str>>,
    group: Option<Arc<str>>,
    name: Option<Arc<str>>,
}

/// Tells the part of a thread of this name.
type KeyOf<'a> = &'a dyn Fn(Pid, Tid, &Arc<str>) -> Key;

fn of_process(pid: Pid, _: Tid, _: &Arc<str>) -> Key {
    Key { pid: Some(pid), ..Key::default() }
}

fn of_thread(pid: Pid, tid: Tid, _: &Arc<str>) -> Key {
    Key { pid: Some(pid), tid: Some(tid), ..Key::default() }
}

/// Goroutines are one part: their names differ as their ids do.
fn of_name(_: Pid, tid: Tid, name: &Arc<str>) -> Key {
    let name = common_name(tid).map_or_else(|| Arc::clone(name), Arc::from);
    Key { name: Some(name), ..Key::default() }
}

/// Returns the name of each process: that of the program that it executed last, else that of its main
/// thread, else that of another one.
fn programs(threads: &[&ThreadRecord]) -> BTreeMap<Pid, Arc<str>> {
    let mut programs = BTreeMap::<Pid, Arc<str>>::new();
    for thread in threads {
        let is_main = thread.tid.0 == thread.pid.0;
        match &thread.program {
            Some(program) => drop(programs.insert(thread.pid, Arc::clone(program))),
            None if is_main => drop(programs.entry(thread.pid).or_insert(Arc::clone(&thread.name))),
            None => {}
        }
    }
    for thread in threads.iter().filter(|thread| !thread.name.is_empty()) {
        let name = programs.entry(thread.pid).or_default();
        if name.is_empty() {
            *name = Arc::clone(&thread.name);
        }
    }
    programs
}

/// Returns the control group of each process, as far as it is known: the last one that was recorded.
fn groups(threads: &[&ThreadRecord]) -> BTreeMap<Pid, Arc<str>> {
    let of = |thread: &&ThreadRecord| Some((thread.pid, Arc::clone(thread.cgroup.as_ref()?)));
    threads.iter().filter_map(of).collect()
}

/// Returns the threads in the order in which they were first seen.
fn in_order(recording: &Recording) -> Vec<&ThreadRecord> {
    let mut threads: Vec<_> = recording.threads().collect();
    threads.sort_unstable_by_key(|thread| thread.id);
    threads
}

/// Returns the parts that made calls, those with the most first.
fn by_threads(
    threads: &[&ThreadRecord],
    key: KeyOf<'_>,
    query: &Query,
    rows: &[ThreadReport],
) -> Parts {
    let mut calls = BTreeMap::<Key, (u64, HashSet<Pid>)>::new();
    for ThreadReport { pid, tid, name, calls: more, .. } in rows {
        let (sum, processes) = calls.entry(key(*pid, *tid, name)).or_default();
        *sum = sum.saturating_add(*more);
        processes.insert(*pid);
    }
    let mut parts = BTreeMap::<Key, (u64, PartReport, HashSet<ThreadId>)>::new();
    for thread in threads {
        let key = key(thread.pid, thread.tid, &thread.name);
        let Some((calls, processes)) = calls.get(&key) else { continue };
        let Key { pid, tid, program, group, name: common } = key.clone();
        let is_cgroup = group.is_some();
        let shared = program.or(group);
        let name = Arc::clone(shared.as_ref().or(common.as_ref()).unwrap_or(&thread.name));
        let new = || PartReport { pid, tid, name, processes: None, is_cgroup, calls: None };
        let (_, report, of_part) =
            parts.entry(key).or_insert_with(|| (*calls, new(), HashSet::new()));
        of_part.insert(thread.id);
        if shared.is_some() {
            report.processes = Some(processes.len() as u64);
            continue;
        }
        let is_process = report.pid.is_some() && report.tid.is_none();
        let is_first = thread.tid.0 == thread.pid.0;
        let name = match &thread.program {
            // The last one that the process executed.
            Some(program) if is_process => program,
            _ if common.is_none() && (report.name.is_empty() || is_first) => &thread.name,
            _ => continue,
        };
        if !name.is_empty() {
            report.name = Arc::clone(name);
        }
    }
    let mut parts: Vec<_> = parts.into_values().collect();
    parts.sort_by_key(|(calls, ..)| Reverse(*calls));
    let left_out = parts.len().saturating_sub(MOST_PARTS);
    let part = |(_, report, threads)| Part {
        report,
        query: Query { threads: Some(threads), ..query.clone() },
    };
    let each = parts.into_iter().take(MOST_PARTS).map(part).collect();
    Parts { each, left_out, ..Parts::default() }
}

/// Returns a part for each value that took much time, and for the others.
fn by_value(
    recording: &Recording,
    function: &str,
    argument: &str,
    query: &Query,
) -> anyhow::Result<Parts> {
    let id = one_function("--by", function, recording.functions())?;
    let info = &recording.functions()[id.index()];
    let name = clean(&info.name);
    let place = place_of(info, argument)?;
    let values = by_values_of(recording, query, id, place, MOST_VALUES)?;
    let callers = query.callers.clone().or_else(|| Some(only(id, recording.functions().len())));
    let part = |WithValue { value, is_unread, within }| {
        let report = part_of_value(info, place, value, is_unread);
        let (callers, within) = (callers.clone(), Some(within));
        Part { report, query: Query { callers, within, ..query.clone() } }
    };
    let without = (values.without > 0).then(|| {
        let calls = counted(values.without, "call", "calls");
        format!("no part has {calls} of {name}: `{argument}` was lost there, or there is none")
    });
    if values.each.is_empty() {
        let why = || {
            format!("no call of {name} with a `{argument}` is among those that the report counts")
        };
        return Ok(Parts::none(without.unwrap_or_else(why)));
    }
    let unsure = values.unsure.then(|| {
        "there are too many different values to compare all: one of the others may have taken more \
         than one with a part of its own"
            .to_owned()
    });
    let notes = without.into_iter().chain(unsure).collect();
    let each = values.each.into_iter().map(part).collect();
    Ok(Parts { each, notes, ..Parts::default() })
}

/// Describes the part of a function's calls with one value, or with some.
pub(super) fn part_of_value(
    info: &FunctionInfo,
    place: usize,
    value: Option<Value>,
    is_unreadable: bool,
) -> PartReport {
    let argument = Arc::clone(&info.values[place].name);
    let function = qualified(info.kind, info.group.as_deref(), &info.name).into();
    PartReport {
        pid: None,
        tid: None,
        name: Arc::clone(&info.name),
        processes: None,
        is_cgroup: false,
        calls: Some(PartCalls { function, argument, value, is_unreadable }),
    }
}

fn only(function: FuncId, functions: usize) -> Vec<bool> {
    (0..functions).map(|id| id == function.index()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctrace_core::function::{ValueInfo, ValueKind};

    #[test]
    fn a_value_that_is_not_there_is_told_before_the_trace() {
        let values = ["arg2", "len"].map(|name| ValueInfo::new(name, ValueKind::Unsigned));
        let function = FunctionInfo { values: values.into(), ..FunctionInfo::new("f", "app") };
        let functions = [function, FunctionInfo::new("plain", "app")];
        let told = |function: &str, argument: &str| {
            let by = By::Value { function: function.into(), argument: argument.into() };
            check(&by, &functions).map_err(|error| error.to_string())
        };
        for argument in ["arg2", "2", "len"] {
            assert_eq!(told("f", argument), Ok(()), "{argument}");
        }
        assert_eq!(told("f", "1"), Err("f has no value `1`; there are arg2, len".into()));
        assert!(told("plain", "len").is_err_and(|why| why.contains("--arg")));
        assert_eq!(told("of_a_plugin", "len"), Ok(()));
        assert_eq!(check(&By::Process, &functions).map_err(|_| ()), Ok(()));
    }
}
