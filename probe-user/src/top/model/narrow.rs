//! Applies the filter to a report. The matching functions stay, and so do the paths that lead to
//! and from them. Threads are filtered by name.

use crate::top::model::rows::matches;
use crate::ui::text::names;
use ctrace_core::report::{PathReport, Report};

/// `by_thread`: the filter applies to threads, and all functions stay.
pub(crate) fn narrow(report: &Report, filter: &str, by_thread: bool) -> Report {
    let mut report = report.clone();
    if by_thread {
        report.threads.retain(|thread| matches(filter, &thread.name));
        return report;
    }
    let matching: Vec<bool> =
        report.functions.iter().map(|f| matches(filter, &names::label(f))).collect();
    let kept = keep_paths_of(&mut report, &matching);
    let mut places = Vec::with_capacity(kept.len());
    let mut next = 0;
    for kept in &kept {
        places.push(next);
        next += usize::from(*kept);
    }
    if let Some(histograms) = &mut report.histograms {
        histograms.functions.retain(|histogram| kept[histogram.function]);
    }
    let mut keep = kept.iter();
    report.functions.retain(|_| keep.next().copied().unwrap_or(false));
    report.move_functions(&places);
    report
}

/// Returns which paths go through matching functions, or lead there.
pub(crate) fn paths_through(report: &Report, filter: &str) -> Vec<bool> {
    let matching: Vec<bool> =
        report.functions.iter().map(|f| matches(filter, &names::label(f))).collect();
    with_ancestors(&report.paths, wanted(&report.paths, &matching))
}

/// Returns which paths have a matching function.
fn wanted(paths: &[PathReport], matching: &[bool]) -> Vec<bool> {
    let mut wanted: Vec<bool> = Vec::with_capacity(paths.len());
    for (place, path) in paths.iter().enumerate() {
        let parent = path.parent.filter(|&parent| parent < place);
        let below = parent.is_some_and(|parent| wanted[parent]);
        wanted.push(below || matching[path.function]);
    }
    wanted
}

/// Keeps the paths through matching functions. Returns which functions are on these paths.
fn keep_paths_of(report: &mut Report, matching: &[bool]) -> Vec<bool> {
    let mut kept = matching.to_vec();
    for (place, path) in report.paths.iter_mut().enumerate() {
        // Parents come first; other references are invalid and dropped.
        path.parent = path.parent.filter(|&parent| parent < place);
    }
    let wanted = wanted(&report.paths, matching);
    keep_paths(&mut report.paths, wanted);
    report.paths.iter().for_each(|path| kept[path.function] = true);
    kept
}

/// Keeps the wanted paths and their ancestors. Parents come first.
pub(crate) fn keep_paths(paths: &mut Vec<PathReport>, wanted: Vec<bool>) {
    let wanted = with_ancestors(paths, wanted);
    let (mut places, mut next) = (Vec::with_capacity(wanted.len()), 0);
    for wanted in &wanted {
        places.push(next);
        next += usize::from(*wanted);
    }
    let mut keep = wanted.iter();
    paths.retain(|_| keep.next().copied().unwrap_or(false));
    for path in paths {
        path.parent = path.parent.map(|parent| places[parent]);
    }
}

/// Adds the ancestors of the wanted paths.
fn with_ancestors(paths: &[PathReport], mut wanted: Vec<bool>) -> Vec<bool> {
    for place in (0..wanted.len()).rev() {
        let parent = paths[place].parent.filter(|&parent| parent < place);
        if let (true, Some(parent)) = (wanted[place], parent) {
            wanted[parent] = true;
        }
    }
    wanted
}
