//! Compares two recordings by function and path, and separates changes from noise.
//!
//! Calls within a run are not independent: machines warm up, are interrupted and are shared, so
//! calls near in time are slow together. So variation is measured between stretches of time, not
//! between single calls. Each recording is cut into stretches (`stretches`), and the calls of each
//! are summed up and counted in buckets (`gather`). A block bootstrap over stretches (`resample`)
//! estimates how much each number would differ in another recording of the same program (`spread`,
//! `judge`). docs/diff.md explains the choice and its limits.
//!
//! Each file is read twice, in parallel. `survey` finds the functions and paths that are active
//! enough to be compared; `gather` collects their stretches.

mod catalogue;
mod drift;
mod facts;
mod gather;
mod judge;
mod ladder;
pub(crate) mod matching;
mod metric;
mod model;
mod notes;
#[cfg(feature = "parquet")]
pub(crate) mod pooled;
mod resample;
mod rows;
mod same_factor;
mod spread;
mod stretches;
mod student;
mod survey;
mod verdict;

#[cfg(test)]
mod rate_tests;

pub use facts::{FactsError, ReportFacts};
pub use metric::{Metric, UnknownMetric};
pub use model::{
    Change, Changes, Compared, Diff, FunctionDiff, PathDiff, Presence, SCHEMA, SideReport,
    SideTime, SourceKind,
};
pub use notes::ONE_RECORDING;
pub use rows::{DiffRows, Row, RowSelection, check_column, choose, columns};
pub use verdict::Verdict;

use crate::recording::Recording;
use crate::recording::replay::Query;
use catalogue::Catalogue;
use gather::Cells;
use judge::Side;
use survey::{Chosen, Survey, described};

/// Limit of compared functions, and of compared paths: the most active ones.
const MAX_ROWS: usize = 1_000;

/// A file to compare, and its compared part.
pub struct ComparedFile<'a> {
    /// The name that the reader gave.
    pub file: String,
    pub content: Content<'a>,
}

pub enum Content<'a> {
    Recording {
        recording: &'a Recording,
        query: &'a Query,
    },
    /// A JSON report, without single calls. The flags select the functions that count.
    Report {
        facts: &'a ReportFacts,
        functions: Option<&'a [bool]>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// The metric of the verdicts.
    pub metric: Metric,
    /// The metric to sort by, if any.
    pub sort: Option<Metric>,
    /// A significant worsening of the metric by more than this percentage is a failure.
    pub fail_over: Option<f64>,
    /// The percentage of change that does not matter.
    pub margin: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { metric: Metric::P50, sort: None, fail_over: None, margin: 1.0 }
    }
}

impl Options {
    /// Returns the metrics to compute: the usual ones and those asked for.
    fn metrics(&self) -> Vec<Metric> {
        let mut metrics = Metric::USUAL.to_vec();
        for asked in [Some(self.metric), self.sort].into_iter().flatten() {
            if !metrics.contains(&asked) {
                metrics.push(asked);
            }
        }
        metrics
    }
}

/// Compares several files of the new side with those of the old.
pub fn diff<'a>(old: &[ComparedFile<'a>], new: &[ComparedFile<'a>], options: &Options) -> Diff {
    let mut catalogue = Catalogue::new([old, new].map(|side| side.iter().flat_map(described)));
    let mut survey = |sources: &[ComparedFile<'a>]| -> Vec<Survey<'a>> {
        sources.iter().map(|source| Survey::new(source, &mut catalogue)).collect()
    };
    let surveys = [survey(old), survey(new)];
    let chosen = Chosen::new(&surveys, &catalogue, MAX_ROWS);
    let metrics = options.metrics();
    let sides = [0, 1].map(|side: usize| {
        let runs = surveys[side].iter().map(|survey| Cells::gather(survey, &chosen, &metrics));
        Side::new(runs.collect(), side as u64)
    });
    let judged = judge::judge(&sides, &chosen, metrics, options.margin);
    model::assemble(&[old, new], &surveys, &sides, &catalogue, &chosen, judged, options)
}
