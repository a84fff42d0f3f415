//! The sums of an interval by call path: what profiles of every format are made of.
//!
//! A call counts in the interval in which it ends. Waits are calls, too, so the time of a path's
//! innermost function is its own.

use super::fold::{Bounds, fold};
use crate::daemon::metrics::names::label;
use ctrace_core::{
    formats::{Coverage, UNKNOWN_FRAMES},
    function::qualified,
    report::{FunctionReport, LossReport, Report},
};
use std::{
    collections::{BTreeMap, HashMap},
    iter::successors,
    sync::Arc,
};

/// The names of the values, and their units.
pub(super) const CALLS: (&str, &str) = ("calls", "count");
pub(super) const WALL: (&str, &str) = ("wall", "nanoseconds");
/// A profile has every call: one sample for each.
pub(super) const PERIOD: ((&str, &str), u64) = (CALLS, 1);

/// See the module. Indices are places in these lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Profile {
    pub(super) objects: Vec<ProfiledObject>,
    pub(super) functions: Vec<ProfiledFunction>,
    pub(super) paths: Vec<ProfiledPath>,
    /// How much is in it, and what is missing, in one line.
    pub(super) comment: String,
}

/// A program or a library.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProfiledObject {
    pub(super) name: Arc<str>,
    pub(super) build_id: Option<Arc<str>>,
}

/// A function. Names are harmless and bounded.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ProfiledFunction {
    pub(super) name: Arc<str>,
    pub(super) object: Option<u32>,
    pub(super) file: Option<Arc<str>>,
    pub(super) line: u32,
}

/// A call path, which ends at a function.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ProfiledPath {
    /// The path of the caller, which comes before this one.
    pub(super) parent: Option<u32>,
    pub(super) function: u32,
    pub(super) calls: u64,
    pub(super) self_ns: u64,
}

impl ProfiledPath {
    pub(super) fn has_values(&self) -> bool {
        self.calls > 0 || self.self_ns > 0
    }
}

impl Profile {
    /// Makes one of a report. `build_id` returns the build id of an object.
    pub(crate) fn of(report: &Report, build_id: &dyn Fn(&str) -> Option<Arc<str>>) -> Self {
        let mut made = Self::default();
        let mut functions = HashMap::new();
        let mut objects = BTreeMap::new();
        for path in &report.paths {
            let function = *functions.entry(path.function).or_insert_with(|| {
                made.add_function(report.functions.get(path.function), &mut objects, build_id)
            });
            made.paths.push(ProfiledPath {
                parent: path.parent.map(|parent| parent as u32),
                function,
                calls: path.calls.saturating_sub(path.open),
                self_ns: path.self_ns.0,
            });
        }
        let others = report.paths_other_calls.saturating_sub(report.paths_other_open);
        if others > 0 {
            made.add_unrecorded(others, 0);
        }
        let folded = fold(&mut made, Bounds::USUAL);
        made.comment = made.told(report, others, folded);
        made
    }

    /// Adds to what is on no known path.
    pub(super) fn add_unrecorded(&mut self, calls: u64, self_ns: u64) {
        let functions = &self.functions;
        let is_it = |path: &&mut ProfiledPath| {
            let function = &functions[path.function as usize];
            path.parent.is_none() && function.object.is_none() && &*function.name == UNKNOWN_FRAMES
        };
        if let Some(path) = self.paths.iter_mut().find(is_it) {
            path.calls = path.calls.saturating_add(calls);
            path.self_ns = path.self_ns.saturating_add(self_ns);
            return;
        }
        let (function, name) = (functions.len() as u32, UNKNOWN_FRAMES.into());
        self.functions.push(ProfiledFunction { name, object: None, file: None, line: 0 });
        self.paths.push(ProfiledPath { parent: None, function, calls, self_ns });
    }

    /// Returns the comment.
    fn told(&self, report: &Report, without_path: u64, folded: u64) -> String {
        let loss = &report.loss;
        let lost = LossReport { calls_untimed: loss.ended_unseen(), ..*loss };
        let calls = self.paths.iter().map(|path| path.calls);
        let coverage = Coverage {
            calls: calls.fold(0, u64::saturating_add),
            lost,
            filtered_calls: report.filtered_calls,
            calls_without_path: without_path,
            ..Coverage::default()
        };
        let sampled = report.functions.iter().filter(|row| row.sampled.is_some()).count();
        let more = [
            (
                sampled as u64,
                "function traced for a part of the time",
                "functions traced for a part of the time",
            ),
            (folded, "path folded into its caller", "paths folded into their callers"),
        ];
        let more = more.into_iter().filter(|(count, ..)| *count > 0);
        let more = more
            .map(|(count, one, many)| format!(", {count} {}", if count == 1 { one } else { many }));
        coverage.in_short() + &more.collect::<String>()
    }

    fn add_function(
        &mut self,
        row: Option<&FunctionReport>,
        objects: &mut BTreeMap<Arc<str>, u32>,
        build_id: &dyn Fn(&str) -> Option<Arc<str>>,
    ) -> u32 {
        let place = self.functions.len() as u32;
        let function = row.map(|row| {
            let object = objects.entry(Arc::clone(&row.object)).or_insert_with(|| {
                let (name, build_id) = (label(&row.object), build_id(&row.object));
                self.objects.push(ProfiledObject { name, build_id });
                self.objects.len() as u32 - 1
            });
            ProfiledFunction {
                name: label(&qualified(row.kind, row.group.as_deref(), &row.name)),
                object: Some(*object),
                file: row.file.as_deref().map(label),
                line: row.line.unwrap_or_default(),
            }
        });
        self.functions.push(function.unwrap_or_else(|| ProfiledFunction {
            name: "?".into(),
            object: None,
            file: None,
            line: 0,
        }));
        place
    }

    /// Returns true if no call has ended.
    pub(super) fn is_empty(&self) -> bool {
        !self.paths.iter().any(ProfiledPath::has_values)
    }

    /// Returns the paths that have a value.
    pub(super) fn samples(&self) -> impl Iterator<Item = &ProfiledPath> {
        self.paths.iter().filter(|path| path.has_values())
    }

    /// Returns the functions of a path, innermost first.
    pub(super) fn stack(&self, path: &ProfiledPath) -> impl Iterator<Item = u32> {
        let caller = |path: &ProfiledPath| self.paths.get(path.parent? as usize).copied();
        successors(Some(*path), caller).map(|path| path.function)
    }

    /// Returns the object of a function.
    pub(super) fn object(&self, function: &ProfiledFunction) -> Option<&ProfiledObject> {
        self.objects.get(function.object? as usize)
    }

    /// Returns about how much memory it needs.
    pub(super) fn bytes(&self) -> usize {
        let names = self.functions.iter().map(|function| {
            100 + function.name.len() + function.file.as_ref().map_or(0, |file| file.len())
        });
        500 + names.sum::<usize>() + size_of::<ProfiledPath>() * self.paths.len()
    }
}
