//! Adds the rows of any number of files up to reports.

use super::FunctionNames;
use super::decode::{FunctionSeen, TargetSeen};
use super::rows::{FunctionSums, Losses};
use crate::function::FunctionInfo;
use crate::report::{FunctionReport, LossReport, PointsReport, Report, SCHEMA, TargetReport};
use crate::stats::Summary;
use crate::stats::rank::nearest_rank;
use crate::units::Nanos;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Limit of functions of a part. Further ones are counted.
const MOST_FUNCTIONS: usize = 100_000;
/// Limit of parts.
const MOST_PARTS: usize = 10_000;
/// Limit of versions that are listed.
const MOST_VERSIONS: usize = 1_000;

/// The rule by which sums are divided into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Host,
    Version,
    Unit,
}

/// The name of a part that has none, such as the version of a program without a build id.
pub const UNNAMED: &str = "unknown";

/// The sums, by part.
#[derive(Debug, Default)]
pub struct Sums {
    by: Option<By>,
    parts: HashMap<Arc<str>, PartSums>,
    /// Rows that found no room.
    pub left_out: u64,
}

/// The sums of a part.
#[derive(Debug, Default)]
pub struct PartSums {
    functions: HashMap<Arc<FunctionNames>, FunctionSums>,
    /// The hosts of its intervals, and the versions.
    pub hosts: BTreeSet<Arc<str>>,
    pub versions: BTreeSet<Arc<str>>,
    /// From the beginning of the first interval to the end of the last.
    pub period: Option<(i64, i64)>,
    /// Rows of `targets`: intervals of processes.
    pub intervals: u64,
    /// The lengths of the intervals together.
    pub covered_ns: u64,
    pub calls: u64,
    pub cost_ns: u64,
    pub cpu_ns: u64,
    pub losses: Losses,
}

impl Sums {
    pub fn new(by: Option<By>) -> Self {
        Self { by, ..Self::default() }
    }

    fn part(&mut self, host: &str, unit: &str, version: Option<&str>) -> Option<&mut PartSums> {
        let name = match self.by {
            None => "",
            Some(By::Host) => host,
            Some(By::Unit) => unit,
            Some(By::Version) => version.unwrap_or(UNNAMED),
        };
        // Most rows are of parts that are there.
        if !self.parts.contains_key(name) {
            if self.parts.len() >= MOST_PARTS {
                self.left_out = self.left_out.saturating_add(1);
                return None;
            }
            self.parts.insert(name.into(), PartSums::default());
        }
        self.parts.get_mut(name)
    }

    pub fn add_function(&mut self, host: &str, unit: &str, row: &FunctionSeen<'_>) {
        let mut left_out = 0;
        if let Some(part) = self.part(host, unit, row.version.map(|version| &**version)) {
            let room = part.functions.len() < MOST_FUNCTIONS;
            match part.functions.get_mut(row.names) {
                Some(sums) => sums.add(row.sums),
                None if room => {
                    drop(part.functions.insert(Arc::clone(row.names), row.sums.clone()))
                }
                None => left_out = 1,
            }
        }
        self.left_out += left_out;
    }

    pub fn add_target(&mut self, host: &Arc<str>, unit: &str, row: &TargetSeen<'_>) {
        let Some(part) = self.part(host, unit, row.version.map(|version| &**version)) else {
            return;
        };
        let length = u64::try_from(row.end_ns.saturating_sub(row.start_ns)).unwrap_or(0);
        if !part.hosts.contains(host) {
            part.hosts.insert(Arc::clone(host));
        }
        if let Some(version) = row.version
            && part.versions.len() < MOST_VERSIONS
            && !part.versions.contains(version)
        {
            part.versions.insert(Arc::clone(version));
        }
        let period = part.period.unwrap_or((row.start_ns, row.end_ns));
        part.period = Some((period.0.min(row.start_ns), period.1.max(row.end_ns)));
        part.intervals += 1;
        part.losses.add(&row.losses);
        for (mine, other) in [
            (&mut part.covered_ns, length),
            (&mut part.calls, row.calls),
            (&mut part.cost_ns, row.cost_ns),
            (&mut part.cpu_ns, row.cpu_ns.unwrap_or(0)),
        ] {
            *mine = mine.saturating_add(other);
        }
    }

    /// Adds the sums of other files.
    pub fn merge(mut self, other: Self) -> Self {
        self.left_out = self.left_out.saturating_add(other.left_out);
        for (name, part) in other.parts {
            match self.parts.get_mut(&name) {
                Some(mine) => mine.merge(part),
                None => drop(self.parts.insert(name, part)),
            }
        }
        self
    }

    /// Returns the parts by name.
    pub fn into_parts(self) -> BTreeMap<Arc<str>, PartSums> {
        self.parts.into_iter().collect()
    }
}

impl Losses {
    pub(super) fn add(&mut self, other: &Self) {
        let Self { events, late, decode_errors, untimed, open, headless, calls_without_path } =
            *other;
        for (mine, other) in [
            (&mut self.events, events),
            (&mut self.late, late),
            (&mut self.decode_errors, decode_errors),
            (&mut self.untimed, untimed),
            (&mut self.open, open),
            (&mut self.headless, headless),
            (&mut self.calls_without_path, calls_without_path),
        ] {
            *mine = mine.saturating_add(other);
        }
    }

    /// Returns them as reports have them. Calls that were open at the end of an interval count in the
    /// next one, so they are none.
    pub fn report(&self) -> LossReport {
        LossReport {
            events: self.events,
            late: self.late,
            decode_errors: self.decode_errors,
            calls_untimed: self.untimed,
            calls_headless: self.headless,
            ..LossReport::default()
        }
    }
}

impl PartSums {
    fn merge(&mut self, other: Self) {
        for (names, sums) in other.functions {
            match self.functions.get_mut(&names) {
                Some(mine) => mine.add(&sums),
                None => drop(self.functions.insert(names, sums)),
            }
        }
        self.hosts.extend(other.hosts);
        self.versions.extend(other.versions);
        self.period = match (self.period, other.period) {
            (Some(mine), Some(other)) => Some((mine.0.min(other.0), mine.1.max(other.1))),
            (mine, other) => mine.or(other),
        };
        self.intervals += other.intervals;
        self.losses.add(&other.losses);
        for (mine, other) in [
            (&mut self.covered_ns, other.covered_ns),
            (&mut self.calls, other.calls),
            (&mut self.cost_ns, other.cost_ns),
            (&mut self.cpu_ns, other.cpu_ns),
        ] {
            *mine = mine.saturating_add(other);
        }
    }

    /// Returns the report of the part. Its times are of all processes together, and its beginning is in
    /// nanoseconds since 1970.
    pub fn report(&self, notes: Vec<String>) -> Report {
        let covered = Nanos(self.covered_ns);
        let (start, end) = self.period.unwrap_or_default();
        let nanos = |time: i64| Nanos(u64::try_from(time).unwrap_or(0));
        let mut names: Vec<_> = self.functions.iter().collect();
        names.sort_by(|a, b| a.0.cmp(b.0));
        Report {
            schema: SCHEMA,
            target: TargetReport::default(),
            part: None,
            start_ns: nanos(start),
            end_ns: nanos(end),
            duration_ns: covered,
            tracked_ns: None,
            tracked_percent: None,
            approximate: true,
            counted: false,
            of_fleet: true,
            center_cut_percent: 0.0,
            filtered_calls: 0,
            loss: self.losses.report(),
            functions: names.into_iter().map(|(names, sums)| row(names, sums, covered)).collect(),
            paths: Vec::new(),
            paths_other_calls: 0,
            paths_other_open: 0,
            threads: Vec::new(),
            notes,
            histograms: None,
            slowest_calls: None,
            slow_calls: Vec::new(),
            points: PointsReport::default(),
            timeline: None,
            locks: None,
            trend: None,
            frames: None,
            values: Vec::new(),
            wakers: None,
            plots: Vec::new(),
            ctrack: None,
        }
    }
}

fn row(names: &FunctionNames, sums: &FunctionSums, covered: Nanos) -> FunctionReport {
    let mut info = FunctionInfo::new(Arc::clone(&names.function), Arc::clone(&names.object));
    (info.kind, info.group) = (names.kind, names.group.clone());
    (info.short_name, info.full_name) = (names.short_name.clone(), names.full_name.clone());
    let mut row = FunctionReport::new(&info);
    let FunctionSums { tally, headless, active_ns, innermost_ns, buckets, .. } = sums;
    let summary = Summary {
        tally: *tally,
        open: 0,
        headless: *headless,
        active_ns: *active_ns,
        exclusive_ns: *innermost_ns,
        histogram: None,
    };
    row.render(summary, covered);
    row.durations.set_percentiles(|permille| {
        let value = buckets.at(nearest_rank(tally.timed, permille))?;
        // A file may say that its shortest call is longer than its longest.
        let (min, max) = (tally.min()?, tally.max()?);
        Some(Nanos(value.max(min).min(max)))
    });
    row
}
