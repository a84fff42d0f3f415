//! The functions of one target: each has series of its own, up to a bound, and keeps them.
//!
//! A function gets its series with its first call, so that a selection of thousands, few of which
//! are ever called, does not fill the bound.

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

/// Which of a target's series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(usize);

/// All functions that have no series of their own.
const OTHER: Place = Place(0);
/// Of those so many are told apart, to count them.
const MOST_LEFT_OUT: usize = 1 << 16;

/// What a function did in a stretch of time.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) place: Place,
    pub(super) open: u64,
    /// Its probes were away for a part of the time.
    pub(super) is_sampled: bool,
    pub(super) sums: Amounts<FUNCTION_SUMS>,
    pub(super) latency: Latency,
}

/// A function, in all intervals that have ended.
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
    places: HashMap<FunctionKey, Place>,
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

    /// Of the functions in a snapshot that did anything, or could not be seen to.
    pub(super) fn rows(&mut self, snapshot: &Snapshot, edges: &Edges) -> Vec<Row> {
        let functions = snapshot.report.functions.iter().enumerate();
        let seen = functions.filter(|(_, f)| f.calls + f.headless > 0 || f.sampled.is_some());
        let rows = seen.map(|(index, function)| {
            let spent = snapshot.spent.get(index).copied().unwrap_or(Nanos::ZERO);
            let observed = snapshot.report.duration_ns;
            let summary = function.summary.as_ref();
            let row = FunctionRow { report: function, spent, observed };
            Row {
                place: self.place(function),
                open: function.open,
                is_sampled: function.sampled.is_some(),
                sums: Amounts(OF_FUNCTION.each_ref().map(|sum| sum.value(&row))),
                latency: summary.map_or_else(Latency::default, |calls| Latency::new(calls, edges)),
            }
        });
        rows.collect()
    }

    fn place(&mut self, function: &FunctionReport) -> Place {
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
        // Two names may look the same once they are harmless, and a series must be told once.
        let same = self.series.iter().position(|series| series.labels == labels);
        let place = Place(same.unwrap_or(self.series.len()));
        if same.is_none() {
            self.series.push(Series::new(labels));
        }
        self.places.insert(key, place);
        place
    }

    /// What a row tells is past.
    pub(super) fn add(&mut self, row: &Row) {
        let series = &mut self.series[row.place.0];
        series.sums.ended.add(&row.sums);
        series.latency.add(&row.latency);
    }

    /// Those that there is something to tell of, each with its rows of the present.
    pub(super) fn with<'a>(
        &mut self,
        present: impl Iterator<Item = &'a Row>,
    ) -> impl Iterator<Item = (&mut Series, Vec<&'a Row>)> {
        let mut rows = vec![Vec::new(); self.series.len()];
        present.for_each(|row| rows[row.place.0].push(row));
        let skip = usize::from(self.left_out.is_empty());
        self.series.iter_mut().zip(rows).skip(skip)
    }

    /// That have series of their own.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    pub(super) fn left_out(&self) -> usize {
        self.left_out.len()
    }
}
