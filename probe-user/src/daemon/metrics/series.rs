//! The functions of one target. Each gets its own series, up to a limit, and keeps it.
//!
//! A function gets its series with its first call. So selecting thousands of functions, of which
//! few are ever called, does not exhaust the limit.

use super::{
    amounts::{Amounts, Rising},
    catalog::{FUNCTION_SUMS, FunctionRow, OF_FUNCTION},
    family::Labels,
    latency::{Edges, Latency},
    names::{self, FunctionKey},
};
use crate::session::keep::live::Snapshot;
use ctrace_core::{report::FunctionReport, units::Nanos};
use std::{
    collections::{HashMap, HashSet},
    hash::{BuildHasher as _, RandomState},
    sync::Arc,
};

/// An index into a target's series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeriesIndex(usize);

/// The place of all functions without their own series.
const OTHER: SeriesIndex = SeriesIndex(0);
/// The limit up to which such functions are counted.
const MOST_LEFT_OUT: usize = 1 << 16;

/// The data of a function in a stretch of time.
#[derive(Clone, Debug)]
pub(super) struct SeriesRow {
    pub(super) place: SeriesIndex,
    pub(super) open: u64,
    /// True if its probes were absent for a part of the time.
    pub(super) is_sampled: bool,
    pub(super) sums: Amounts<FUNCTION_SUMS>,
    pub(super) latency: Latency,
}

/// The sums of a function over all finished intervals.
pub(super) struct Series {
    pub(super) labels: Labels,
    pub(super) sums: Rising<FUNCTION_SUMS>,
    pub(super) latency: Latency,
}

impl Series {
    fn new(labels: Labels) -> Self {
        Self { labels, sums: Rising::default(), latency: Latency::default() }
    }
}

pub(super) struct Functions {
    target: Arc<str>,
    most: usize,
    places: HashMap<FunctionKey, SeriesIndex>,
    series: Vec<Series>,
    left_out: HashSet<u64>,
    hasher: RandomState,
}

impl Functions {
    pub(super) fn new(target: Arc<str>, most: usize) -> Self {
        let other = Series::new(names::other(&target));
        Self {
            target,
            most,
            places: HashMap::new(),
            series: vec![other],
            left_out: HashSet::new(),
            hasher: RandomState::new(),
        }
    }

    /// Returns rows for the functions in a snapshot that had calls or were sampled.
    pub(super) fn rows(&mut self, snapshot: &Snapshot, edges: &Edges) -> Vec<SeriesRow> {
        let functions = snapshot.report.functions.iter().enumerate();
        let seen = functions.filter(|(_, f)| f.calls > 0 || f.headless > 0 || f.sampled.is_some());
        let rows = seen.map(|(index, function)| {
            let spent = snapshot.spent.get(index).copied().unwrap_or(Nanos::ZERO);
            let observed = snapshot.report.duration_ns;
            let summary = function.summary.as_ref();
            let row = FunctionRow { report: function, spent, observed };
            SeriesRow {
                place: self.place(function),
                open: function.open,
                is_sampled: function.sampled.is_some(),
                sums: Amounts(OF_FUNCTION.each_ref().map(|sum| sum.value(&row))),
                latency: summary.map_or_else(Latency::default, |calls| Latency::new(calls, edges)),
            }
        });
        rows.collect()
    }

    fn place(&mut self, function: &FunctionReport) -> SeriesIndex {
        let key = FunctionKey::new(function);
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        if self.places.len() >= self.most {
            if self.left_out.len() < MOST_LEFT_OUT {
                self.left_out.insert(self.hasher.hash_one(&key));
            }
            return OTHER;
        }
        let labels = key.labels(&self.target);
        // Cleaned names may become equal, and a series must be unique.
        let same = self.series.iter().position(|series| series.labels == labels);
        let place = SeriesIndex(same.unwrap_or(self.series.len()));
        if same.is_none() {
            self.series.push(Series::new(labels));
        }
        self.places.insert(key, place);
        place
    }

    /// Adds a row to the finished sums.
    pub(super) fn add(&mut self, row: &SeriesRow) {
        let series = &mut self.series[row.place.0];
        series.sums.ended.add(&row.sums);
        series.latency.add(&row.latency);
    }

    /// Returns the series to publish, each with its rows of the current intervals.
    pub(super) fn with<'a>(
        &mut self,
        present: impl Iterator<Item = &'a SeriesRow>,
    ) -> impl Iterator<Item = (&mut Series, Vec<&'a SeriesRow>)> {
        let mut rows = vec![Vec::new(); self.series.len()];
        present.for_each(|row| rows[row.place.0].push(row));
        let skip = usize::from(self.left_out.is_empty());
        self.series.iter_mut().zip(rows).skip(skip)
    }

    /// Returns the number of functions with their own series.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn left_out(&self) -> usize {
        self.left_out.len()
    }
}
