//! Removes leftover breakpoints: attaches to their places, detaches, and looks again.
//!
//! The calling process must not be killed meanwhile, or it leaves breakpoints itself.

use super::{
    HealError, InUse, Outcome, debugger,
    in_use::Place,
    look::{self, Inspection, MarkedFile},
    order, others, semaphores,
};
use crate::bpf::{self, BpfError, LivePlaces, ProbePlace, Touched};
use ctrace_core::units::Pid;
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    thread::sleep,
    time::{Duration, Instant},
};

/// The time limit of a look, which takes milliseconds.
const LOOK_LIMIT: Duration = Duration::from_secs(10);
/// The time that the kernel takes to remove the probes of a link that somebody else held, and
/// between two looks.
const LATE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);
/// What is left stays. The breakpoints of a tracer that is just ending go within this time.
const SETTLE: Duration = Duration::from_millis(300);
/// The limit for a process's places where the kernel takes 0.1 s for each.
pub(super) const ONE_BY_ONE: Duration = Duration::from_secs(30);
/// Limit of files that are named.
const MOST_NAMED: usize = 8;

/// The findings in a process before anything is done.
pub(super) struct Survey {
    pub(super) outcome: Outcome,
    files: Vec<MarkedFile>,
}

/// With a memory, the places that it knows are taken for those of living tracers.
pub(super) fn survey(pid: u32, mut in_use: Option<&mut InUse>) -> Result<Survey, HealError> {
    let mut outcome = Outcome::clean(pid);
    outcome.debugger = debugger::of(pid);
    if outcome.debugger.is_some() {
        return Ok(Survey { outcome, files: Vec::new() });
    }
    let mut look = look::within(LOOK_LIMIT, pid)?;
    let is_clean = |look: &Inspection| look.files.iter().all(|marked| marked.places.is_empty());
    let mut known = 0;
    if let Some(in_use) = &mut in_use {
        known = in_use.leave_out(&mut look.files);
        if !is_clean(&look) {
            in_use.add_events();
            known += in_use.leave_out(&mut look.files);
        }
    }
    // A probe that comes or goes meanwhile must not count as one that was left.
    let mut live = Vec::new();
    if !is_clean(&look) {
        live.push(LivePlaces::of(pid));
        sleep(SETTLE);
        let before = std::mem::replace(&mut look, look::within(LOOK_LIMIT, pid)?);
        keep_those_of(&mut look.files, &before.files);
        live.push(LivePlaces::of(pid));
    }
    let count = |places: fn(&MarkedFile) -> &BTreeSet<u64>| {
        look.files.iter().map(|marked| places(marked).len() as u64).sum()
    };
    outcome.found = known + count(|marked| &marked.places);
    outcome.own = count(|marked| &marked.own);
    outcome.half_written = count(|marked| &marked.half_written);
    outcome.changed_pages = look.changed;
    outcome.unread_pages = look.unread;
    let marked = look.files.iter().filter(|marked| !marked.places.is_empty());
    let names = marked.map(|marked| marked.path.display().to_string());
    outcome.files = names.take(MOST_NAMED).collect();
    let alive = leave_alone(&mut look.files, &live);
    outcome.in_use = known + alive.len() as u64;
    if let Some(in_use) = in_use {
        // Those of a tracer of this process alone tell nothing of another one.
        in_use.add(alive.into_iter().filter(|it| it.1).map(|it| it.0));
    }
    Ok(Survey { outcome, files: look.files })
}

/// Keeps the places that another look found as well.
fn keep_those_of(files: &mut [MarkedFile], other: &[MarkedFile]) {
    for marked in files {
        let same = other.iter().filter(|other| other.identity == marked.identity);
        let places: HashSet<u64> = same.flat_map(|other| &other.places).copied().collect();
        marked.places.retain(|offset| places.contains(offset));
    }
}

/// Takes the places of living tracers out of the findings, and returns them. True: of all processes.
fn leave_alone(files: &mut [MarkedFile], live: &[LivePlaces]) -> Vec<(Place, bool)> {
    let mut in_use = Vec::new();
    for marked in files.iter_mut().filter(|marked| !marked.places.is_empty()) {
        for theirs in live.iter().map(|live| live.within(&marked.file)) {
            let identity = marked.identity;
            let is_alive = |offset: &u64| Some((*offset, *theirs.get(offset)?));
            let alive: Vec<_> = marked.places.iter().filter_map(is_alive).collect();
            marked.places.retain(|offset| !theirs.contains_key(offset));
            let place = |(offset, is_of_all)| (Place { identity, offset }, is_of_all);
            in_use.extend(alive.into_iter().map(place));
        }
    }
    in_use
}

/// Removes leftover breakpoints from one process and thereby from all that map the same files. No
/// place is begun after the limit. Also returns the places that living tracers were found to keep.
pub(super) fn mend(pid: u32, limit: Duration) -> Result<(Outcome, Vec<Place>), HealError> {
    let limit = if bpf::touches_many() { limit } else { ONE_BY_ONE };
    let until = Instant::now() + limit;
    let Survey { mut outcome, files } = survey(pid, None)?;
    let mut in_use = Vec::new();
    // Places touched, and whether the kernel refused them.
    let mut touched = HashMap::new();
    for marked in files.iter().filter(|marked| !marked.places.is_empty()) {
        if Instant::now() >= until {
            outcome.untried += marked.places.len() as u64;
            continue;
        }
        let debugged = places_under_debuggers(marked, pid);
        // Those of a process that could not be looked at may be any.
        let is_debugged = |offset: &u64| debugged.as_ref().is_none_or(|at| at.contains(offset));
        let (spared, left): (Vec<u64>, Vec<u64>) =
            marked.places.iter().copied().partition(is_debugged);
        outcome.spared += spared.len() as u64;
        let (tried, refused) = touch(marked, pid, &left, until)?;
        outcome.untried += (left.len() - tried.len()) as u64;
        let place = |offset| Place { identity: marked.identity, offset };
        touched.extend(tried.into_iter().map(|at| (place(at), refused.contains(&at))));
    }
    if !touched.is_empty() {
        outcome.removed = touched.len() as u64;
        let left = remaining(pid, &touched)?;
        for (_, is_refused) in &left {
            outcome.removed -= 1;
            *(if *is_refused { &mut outcome.refused } else { &mut outcome.in_use }) += 1;
        }
        in_use.extend(left.into_iter().filter(|it| !it.1).map(|it| it.0));
    }
    Ok((outcome, in_use))
}

/// Looks again. Returns the touched places that are left, and whether the kernel refused them.
///
/// Whoever lists links holds each for a moment. If ours was closed then, its probes go when the
/// other one has done with it.
fn remaining(pid: u32, touched: &HashMap<Place, bool>) -> Result<Vec<(Place, bool)>, HealError> {
    let until = Instant::now() + LATE;
    loop {
        let after = look::within(LOOK_LIMIT, pid)?;
        let left = after.files.iter().flat_map(|marked| {
            let place = |offset: &u64| Place { identity: marked.identity, offset: *offset };
            marked.places.iter().map(place).filter_map(|at| Some((at, *touched.get(&at)?)))
        });
        let left: Vec<_> = left.collect();
        if left.iter().all(|(_, is_refused)| *is_refused) || Instant::now() >= until {
            return Ok(left);
        }
        sleep(PAUSE);
    }
}

/// Returns the places that there was time for, and which of them the kernel refused.
fn touch(
    marked: &MarkedFile,
    pid: u32,
    offsets: &[u64],
    until: Instant,
) -> Result<(Vec<u64>, HashSet<u64>), BpfError> {
    let touch = |places: &[ProbePlace]| bpf::touch(&marked.file, Pid(pid), places, until);
    let many = bpf::touches_many();
    let offsets = order::likeliest_first(offsets, &marked.path, &marked.file);
    let places: Vec<ProbePlace> = if many {
        offsets.iter().map(|offset| ProbePlace { offset: *offset, semaphore: 0 }).collect()
    } else {
        let semaphores = semaphores::of(&marked.path, &marked.file);
        in_turn(&offsets, &semaphores, std::process::id() as usize)
    };
    let Touched { tried, refused } = touch(&places)?;
    let again: Vec<ProbePlace> = if refused.is_empty() {
        Vec::new()
    } else if many {
        let semaphores = semaphores::of(&marked.path, &marked.file);
        let raised = |place: &ProbePlace| {
            semaphores
                .get(&place.offset)
                .map(|semaphore| ProbePlace { semaphore: *semaphore, ..*place })
        };
        refused.iter().filter_map(raised).collect()
    } else {
        // A place's semaphore may not have been raised by the tracer.
        let raised = refused.iter().filter(|place| place.semaphore != 0);
        raised.map(|place| ProbePlace { semaphore: 0, ..*place }).collect()
    };
    let mut refused: HashSet<u64> = refused.iter().map(|place| place.offset).collect();
    let second = touch(&again)?;
    for place in again[..second.tried].iter().filter(|place| !second.refused.contains(place)) {
        refused.remove(&place.offset);
    }
    Ok((places[..tried].iter().map(|place| place.offset).collect(), refused))
}

/// Returns the order for touching places one by one. Those with semaphores come first, as they keep
/// a probe of the program switched on. The others follow from `start` on, which varies from try to
/// try: time may not suffice for all, and the first ones may be in use permanently.
fn in_turn(offsets: &[u64], semaphores: &HashMap<u64, u64>, start: usize) -> Vec<ProbePlace> {
    let places = offsets.iter().map(|offset| ProbePlace {
        offset: *offset,
        semaphore: semaphores.get(offset).copied().unwrap_or(0),
    });
    let (mut places, mut others): (Vec<_>, Vec<_>) = places.partition(|place| place.semaphore != 0);
    let start = start % others.len().max(1);
    others.rotate_left(start);
    places.append(&mut others);
    places
}

/// Returns the places of the file where processes under a debugger have breakpoints. The kernel
/// would remove those as well. Returns `None` if one of the processes cannot be looked at.
fn places_under_debuggers(marked: &MarkedFile, except: u32) -> Option<HashSet<u64>> {
    let sharing = others::mapping(&HashSet::from([marked.identity.1]));
    let is_debugged = |pid: u32| debugger::of(pid).is_some();
    let mut places = HashSet::new();
    for pid in sharing.into_iter().filter(|pid| *pid != except && is_debugged(*pid)) {
        let files = match look::within(LOOK_LIMIT, pid) {
            Ok(look) => look.files,
            // It may have ended.
            Err(_) if !is_debugged(pid) => continue,
            Err(_) => return None,
        };
        let same = files.into_iter().filter(|theirs| theirs.identity == marked.identity);
        places.extend(same.flat_map(|theirs| theirs.places.into_iter().chain(theirs.own)));
    }
    Some(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semaphores_come_first_and_the_others_in_turn() {
        let semaphores = HashMap::from([(3, 30), (5, 50), (99, 1)]);
        let order = |start| -> Vec<(u64, u64)> {
            let places = in_turn(&[1, 2, 3, 4, 5], &semaphores, start);
            places.iter().map(|place| (place.offset, place.semaphore)).collect()
        };
        assert_eq!(order(0), [(3, 30), (5, 50), (1, 0), (2, 0), (4, 0)]);
        assert_eq!(order(7), [(3, 30), (5, 50), (2, 0), (4, 0), (1, 0)]);
        assert_eq!(in_turn(&[], &semaphores, 7), []);
        assert_eq!(in_turn(&[3], &semaphores, 7).len(), 1);
    }

    #[test]
    fn a_process_that_is_gone_is_told() {
        assert!(matches!(mend(4_194_305, LOOK_LIMIT), Err(HealError::Process(_))));
    }
}
