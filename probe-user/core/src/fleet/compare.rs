//! Compares two sides of a fleet, such as two builds, by the statistics of [`diff`](crate::diff).
//!
//! A stretch is some time on some hosts. Hosts take the place of recordings: each in turn is left out to
//! see what differs from host to host. A thousand of them would need a thousand times the memory, so
//! there are at most [`GROUPS`] groups of hosts, and each in turn is left out (the grouped jackknife).

use super::buckets::SUB_BITS;
use super::decode::{FunctionSeen, TargetSeen};
use super::rows::{FunctionSums, Losses};
use super::{FunctionNames, sums::UNNAMED};
use crate::diff::matching::Description;
use crate::diff::pooled::{self, Pooled, PooledSide, PooledStretch};
use crate::diff::{Diff, Options};
use crate::stats::Summary;
use crate::units::Nanos;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The most groups of hosts.
const GROUPS: usize = 64;
/// The most stretches of a side, and of a group of hosts.
const STRETCHES: usize = 512;
const OF_GROUP: usize = 48;

/// The hosts and the time of a side, by which it is cut into stretches.
#[derive(Debug, Default)]
pub struct Survey {
    hosts: BTreeSet<Arc<str>>,
    period: Option<(i64, i64)>,
    intervals: u64,
    covered_ns: u64,
}

impl Survey {
    pub fn add(&mut self, host: &Arc<str>, row: &TargetSeen<'_>) {
        if !self.hosts.contains(host) {
            self.hosts.insert(Arc::clone(host));
        }
        let (start, end) = self.period.unwrap_or((row.start_ns, row.start_ns));
        self.period = Some((start.min(row.start_ns), end.max(row.start_ns)));
        self.intervals += 1;
        self.covered_ns = self.covered_ns.saturating_add(length(row));
    }

    pub fn merge(mut self, other: Self) -> Self {
        self.hosts.extend(other.hosts);
        self.period = match (self.period, other.period) {
            (Some(mine), Some(other)) => Some((mine.0.min(other.0), mine.1.max(other.1))),
            (mine, other) => mine.or(other),
        };
        self.intervals += other.intervals;
        self.covered_ns = self.covered_ns.saturating_add(other.covered_ns);
        self
    }

    /// Returns the number of hosts.
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// Returns the side without data.
    pub fn side(&self) -> Side {
        let groups = self.hosts.len().clamp(1, GROUPS);
        let (start, end) = self.period.unwrap_or_default();
        let length = u64::try_from(end.saturating_sub(start)).unwrap_or(0);
        // A stretch has an interval of each host at least.
        let each = (self.covered_ns / self.intervals.max(1)).max(1);
        let fit = (length / each).saturating_add(1).min(OF_GROUP as u64) as usize;
        let hosts = self.hosts.iter().enumerate();
        Side {
            groups: Arc::new(
                hosts.map(|(place, host)| (Arc::clone(host), place % groups)).collect(),
            ),
            start,
            length: length.saturating_add(1),
            slices: fit.min(STRETCHES / groups).max(1) as u64,
            ..Side::default()
        }
    }
}

fn length(row: &TargetSeen<'_>) -> u64 {
    u64::try_from(row.end_ns.saturating_sub(row.start_ns)).unwrap_or(0)
}

/// A side that is to be compared.
#[derive(Debug, Default)]
pub struct Side {
    groups: Arc<HashMap<Arc<str>, usize>>,
    start: i64,
    length: u64,
    slices: u64,
    cells: BTreeMap<(usize, u64), Cell>,
    versions: BTreeSet<Arc<str>>,
    losses: Losses,
}

/// A group of hosts in a slice of the time.
#[derive(Debug, Default)]
struct Cell {
    covered_ns: u64,
    functions: HashMap<Arc<FunctionNames>, FunctionSums>,
}

impl Side {
    /// Returns a side of the same stretches without data, for another thread.
    pub fn empty(&self) -> Self {
        let Self { start, length, slices, .. } = *self;
        Self { groups: Arc::clone(&self.groups), start, length, slices, ..Self::default() }
    }

    fn cell(&mut self, host: &str, start_ns: i64) -> Option<&mut Cell> {
        let group = *self.groups.get(host)?;
        let since = u64::try_from(start_ns.saturating_sub(self.start)).unwrap_or(0);
        let slice = u128::from(since) * u128::from(self.slices) / u128::from(self.length.max(1));
        let slice = (slice as u64).min(self.slices.saturating_sub(1));
        Some(self.cells.entry((group, slice)).or_default())
    }

    pub fn add_target(&mut self, host: &str, row: &TargetSeen<'_>) {
        if let Some(cell) = self.cell(host, row.start_ns) {
            cell.covered_ns = cell.covered_ns.saturating_add(length(row));
        }
        self.losses.add(&row.losses);
        if self.versions.len() < 2 {
            let version = row.version.map_or_else(|| UNNAMED.into(), Arc::clone);
            self.versions.insert(version);
        }
    }

    pub fn add_function(&mut self, host: &str, row: &FunctionSeen<'_>) {
        let Some(cell) = self.cell(host, row.start_ns) else { return };
        match cell.functions.get_mut(row.names) {
            Some(sums) => sums.add(row.sums),
            None => drop(cell.functions.insert(Arc::clone(row.names), row.sums.clone())),
        }
    }

    pub fn merge(mut self, other: Self) -> Self {
        self.losses.add(&other.losses);
        self.versions.extend(other.versions);
        for (place, cell) in other.cells {
            let mine = self.cells.entry(place).or_default();
            mine.covered_ns = mine.covered_ns.saturating_add(cell.covered_ns);
            for (names, sums) in cell.functions {
                match mine.functions.get_mut(&names) {
                    Some(mine) => mine.add(&sums),
                    None => drop(mine.functions.insert(names, sums)),
                }
            }
        }
        self
    }

    fn names(&self) -> Vec<Arc<FunctionNames>> {
        let all = self.cells.values().flat_map(|cell| cell.functions.keys());
        let all: BTreeSet<&Arc<FunctionNames>> = all.collect();
        all.into_iter().cloned().collect()
    }

    fn pooled(self, name: &str, functions: &[Arc<FunctionNames>]) -> PooledSide {
        let places: HashMap<_, _> = functions.iter().zip(0..).collect();
        let (mut groups, mut duration) = (BTreeMap::<usize, Vec<_>>::new(), Nanos::ZERO);
        for ((group, _), cell) in self.cells {
            // Functions without a row of their process have no time to be compared by.
            if cell.covered_ns == 0 {
                continue;
            }
            duration = duration.saturating_add(Nanos(cell.covered_ns));
            let rows = cell.functions.iter();
            let rows = rows.filter_map(|(names, sums)| Some((*places.get(names)?, of_sums(sums))));
            let mut rows: Vec<_> = rows.collect();
            rows.sort_by_key(|(place, _)| *place);
            groups
                .entry(group)
                .or_default()
                .push(PooledStretch { seconds: cell.covered_ns as f64 / 1e9, rows });
        }
        let loss = self.losses.report();
        PooledSide { name: name.to_owned(), duration, loss, groups: groups.into_values().collect() }
    }
}

fn of_sums(sums: &FunctionSums) -> Pooled {
    let summary = Summary {
        tally: sums.tally,
        open: 0,
        headless: sums.headless,
        active_ns: sums.active_ns,
        exclusive_ns: sums.innermost_ns,
        histogram: None,
    };
    Pooled { summary, histogram: sums.buckets.histogram() }
}

/// Compares two sides, each with its name for the reader.
pub fn diff(old: (String, Side), new: (String, Side), options: &Options) -> Diff {
    let notes = notes([&old.1, &new.1]);
    let names = [&old.1, &new.1].map(Side::names);
    let functions = names
        .each_ref()
        .map(|names| names.iter().map(|names| described(names)).collect::<Vec<_>>());
    let sides = [old.1.pooled(&old.0, &names[0]), new.1.pooled(&new.0, &names[1])];
    pooled::diff(functions, sides, SUB_BITS, options, notes)
}

fn described(names: &FunctionNames) -> Description<'_> {
    let FunctionNames { function, object, kind, group, short_name, full_name } = names;
    let others = [short_name, full_name, group].map(Option::as_ref);
    Description::of_names([function, object], others, *kind)
}

fn notes(sides: [&Side; 2]) -> Vec<String> {
    let mut notes = Vec::new();
    if sides.iter().any(|side| side.groups.len() < 2) {
        notes.push(
            "One host of a side does not show what differs from host to host: compare several of each."
                .to_owned(),
        );
    }
    if sides.iter().any(|side| side.versions.len() > 1) {
        notes.push(
            "A side has several builds: what differs may be the share of each (--version compares two)."
                .to_owned(),
        );
    }
    notes
}
