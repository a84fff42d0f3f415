//! Finds the running process that a command line names, and tells the user which it is.

use super::Failure;
use crate::{
    session::{
        run::{
            chosen::{Chosen, First},
            later::Later,
        },
        spec::ProbeSpec,
    },
    target::process::{
        Process,
        lookup::{LookupError, ProcessCandidate, ProcessName},
    },
    ui::{
        self,
        text::{first_few, units},
    },
};
use anyhow::anyhow;
use ctrace_core::report::render::clean::clean;
use std::time::Duration;

/// Process ids in the line on a name.
const MOST_NAMED: usize = 16;

/// Opens a process. Where several are meant, they are listed before the failure.
pub(super) fn open(name: &ProcessName) -> Result<Process, Failure> {
    let process = name.open().inspect_err(list)?;
    tell(name, std::slice::from_ref(&process));
    Ok(process)
}

/// Opens the processes that are traced together, and prepares to find later ones if `later`. Of those,
/// the first is awaited, for as long as `limit` says, if none runs yet.
pub(super) fn choose(
    names: Vec<ProcessName>,
    later: bool,
    limit: Option<Duration>,
    probes: &mut ProbeSpec,
) -> Result<Chosen, Failure> {
    if !later {
        let mut others = open_all(&names, probes, false)?;
        let first = First::look(others.remove(0))?;
        return Ok(Chosen { first, others, later: None });
    }
    if names.iter().any(|name| matches!(name, ProcessName::Pid(_))) {
        let why = "--later awaits processes by what they have in common: leave out PIDs, and choose \
                   with --exe, --cgroup, --container, --user, a name or a unit";
        return Err(anyhow!(why).into());
    }
    probes.follow = true;
    let mut later = Later::new(names.clone(), limit)?;
    probes.admits = later.meant().admits();
    let mut found = open_all(&names, probes, true)?.into_iter();
    // One that ends now is not awaited any more.
    let mut first = found.by_ref().find_map(|process| First::look(process).ok());
    let wanted = || names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if first.is_none() {
        let wanted = wanted();
        ui::say(&format!("no process is there yet; the first is awaited: {wanted} (Ctrl-C ends)"));
        first = later.first();
    }
    let none = || anyhow!("nothing was traced, as no process came: {}", wanted());
    let first = first.ok_or_else(none)?;
    Ok(Chosen { first, others: found.collect(), later: Some(later) })
}

/// Opens the processes that are traced together. More than one, those of `--follow` and those of a
/// group are followed with all that they start. `may_lack`: a name may mean none.
fn open_all(
    names: &[ProcessName],
    probes: &mut ProbeSpec,
    may_lack: bool,
) -> Result<Vec<Process>, Failure> {
    if let [name] = names
        && !probes.follow
        && !name.means_all()
    {
        return Ok(vec![open(name)?]);
    }
    let mut processes = Vec::<Process>::new();
    for name in names {
        let all = probes.follow || name.means_all();
        let found = match all {
            true => match name.open_all() {
                Err(LookupError::None { .. }) if may_lack => Vec::new(),
                found => found?,
            },
            false => vec![open(name)?],
        };
        let is_new = |process: &Process| processes.iter().all(|it| it.pid() != process.pid());
        let new: Vec<Process> = found.into_iter().filter(is_new).collect();
        if all {
            tell(name, &new);
        }
        processes.extend(new);
    }
    probes.follow = true;
    Ok(processes)
}

/// Tells which processes a name means.
fn tell(name: &ProcessName, processes: &[Process]) {
    match processes {
        _ if matches!(name, ProcessName::Pid(_)) => {}
        [] => {}
        [process] => {
            let command = shortened(&process.command().join(" "));
            ui::say(&format!("{name} is process {}: {command}", process.pid()));
        }
        several => {
            let pids: Vec<String> = several.iter().map(|it| it.pid().to_string()).collect();
            let (count, pids) = (several.len(), first_few(MOST_NAMED, &pids));
            ui::say(&format!("{name} is {count} processes: {pids}"));
        }
    }
}

/// Returns the id of a process that may be one that cannot be traced.
pub(super) fn id(name: &ProcessName) -> Result<u32, Failure> {
    Ok(name.pid().inspect_err(list)?)
}

fn list(error: &LookupError) {
    let LookupError::Several { count, first, .. } = error else { return };
    first.iter().map(line).for_each(|line| ui::say(&line));
    if *count > first.len() {
        ui::say(&format!("… and {} more", count - first.len()));
    }
}

fn line(ProcessCandidate { pid, command, age }: &ProcessCandidate) -> String {
    let age = units::time(*age, units::Digits::Short);
    format!("{pid:>8}  {}  (started {age} ago)", shortened(command))
}

/// Cuts what a process says of itself.
fn shortened(command: &str) -> String {
    const LONGEST: usize = 80;
    // Programs that show their state there fill up with blanks.
    let command = clean(command.trim_end());
    match command.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &command[..at]),
        None => command.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctrace_core::units::Nanos;

    #[test]
    fn a_candidate_is_one_harmless_line() {
        assert_eq!(shortened("nginx: worker process    "), "nginx: worker process");
        let command = format!("nginx: master\n 815  forged \x1b[2J{}", "x".repeat(2000));
        let line = line(&ProcessCandidate { pid: 812, command, age: Nanos(7_200_000_000_000) });
        assert!(line.starts_with("     812  nginx: master\\u{a} 815  forged \\u{1b}[2J"), "{line}");
        assert!(line.ends_with("x…  (started 2 h 00 min ago)"), "{line}");
        assert!(line.chars().count() < 140 && !line.contains(['\n', '\x1b']), "{line}");
    }
}
