//! The files that a reader asks for, and the rows of them.

use super::FunctionNames;
use super::partition::{Partition, day_of};
use crate::glob::Glob;

/// A choice; the default takes all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// One of several must match.
    pub hosts: Vec<Glob>,
    pub units: Vec<Glob>,
    /// Intervals that begin at or after this time, in nanoseconds since 1970.
    pub since_ns: Option<i64>,
    /// Intervals that begin before this time.
    pub until_ns: Option<i64>,
    pub functions: Vec<Glob>,
    /// The beginning of a build id.
    pub version: Option<String>,
}

fn any(globs: &[Glob], name: &str) -> bool {
    globs.is_empty() || globs.iter().any(|glob| glob.matches(name))
}

impl Wanted {
    pub fn admits_host(&self, host: &str) -> bool {
        any(&self.hosts, host)
    }

    pub fn admits_unit(&self, unit: &str) -> bool {
        any(&self.units, unit)
    }

    /// Returns true if intervals that began on this day may be wanted.
    pub fn admits_day(&self, day: i64) -> bool {
        self.since_ns.is_none_or(|since| day >= day_of(since))
            && self.until_ns.is_none_or(|until| day <= day_of(until))
    }

    /// Returns true if the files of this folder may have rows that are wanted.
    pub fn admits(&self, partition: &Partition) -> bool {
        self.admits_host(&partition.host)
            && self.admits_unit(&partition.unit)
            && self.admits_day(partition.day)
    }

    pub(super) fn has_time(&self, start_ns: i64) -> bool {
        self.since_ns.is_none_or(|since| start_ns >= since)
            && self.until_ns.is_none_or(|until| start_ns < until)
    }

    pub(super) fn has_version(&self, version: Option<&str>) -> bool {
        let Some(wanted) = &self.version else { return true };
        version.is_some_and(|version| version.starts_with(wanted.as_str()))
    }

    /// A pattern matches any of a function's names.
    pub(super) fn has_function(&self, names: &FunctionNames) -> bool {
        let FunctionNames { function, short_name, full_name, .. } = names;
        let mut known = [Some(function), short_name.as_ref(), full_name.as_ref()].into_iter();
        self.functions.is_empty() || known.by_ref().flatten().any(|name| any(&self.functions, name))
    }
}
