//! The result of a comparison. Its serialisation is the JSON interface `ctrace.diff.v1`
//! (`docs/diff.schema.json`): keys are only added, and unknown values are null.

use super::catalogue::{Catalogue, Named};
use super::judge::{CONFIDENCE, Judged, Side, Verdicts};
use super::metric::Metric;
use super::resample::ROUNDS;
use super::survey::{Chosen, Survey, Surveyed};
use super::verdict::Verdict;
use super::{ComparedFile, Content, Options, drift, notes, same_factor};
use crate::function::{FunctionKind, qualified};
use crate::report::{LossReport, PartReport};
use crate::units::{FuncId, Nanos};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::sync::Arc;

/// Value of the key `schema`.
pub const SCHEMA: &str = "ctrace.diff.v1";

/// Two sides compared.
#[derive(Clone, Debug, Serialize)]
pub struct Diff {
    pub schema: &'static str,
    /// The part of both sides that this is about; `None`: all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<PartReport>,
    pub old: SideReport,
    pub new: SideReport,
    /// The metric of the verdicts.
    pub metric: Metric,
    /// All metrics of its rows.
    #[serde(skip)]
    pub metrics: Vec<Metric>,
    /// Certainty that nothing is falsely called changed.
    pub confidence_percent: f64,
    pub margin_percent: f64,
    pub rounds: u64,
    pub fail_over_percent: Option<f64>,
    /// True if a function got worse by more than that.
    pub failed: bool,
    /// Sorted by activity, the most active first.
    pub functions: Vec<FunctionDiff>,
    /// The number of functions not active enough to be compared.
    pub functions_left_out: u64,
    pub paths: Vec<PathDiff>,
    pub paths_left_out: u64,
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct SideReport {
    pub files: Vec<String>,
    pub kind: SourceKind,
    /// The part of the time that was asked for; `None`: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<SideTime>,
    /// The sum over all files.
    pub duration_ns: Nanos,
    /// The number of stretches in them.
    pub stretches: u64,
    pub loss: LossReport,
}

/// A part of the time of a recording, from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SideTime {
    pub from_ns: Nanos,
    pub to_ns: Nanos,
}

impl SideTime {
    /// Returns the time that is compared, if that is not all of it.
    fn of(source: &ComparedFile<'_>) -> Option<Self> {
        let Content::Recording { recording, query } = source.content else { return None };
        let (window, start) = (query.window.as_ref()?, recording.period().0);
        Some(Self { from_ns: window.start.since(start), to_ns: window.end.since(start) })
    }

    pub(super) fn overlaps(&self, other: &Self) -> bool {
        self.from_ns < other.to_ns && other.from_ns < self.to_ns
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    Recording,
    Report,
    /// Tables of a fleet.
    Fleet,
}

/// The sides on which something was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    Both,
    Old,
    New,
}

#[derive(Clone, Debug, Serialize)]
pub struct FunctionDiff {
    pub name: Arc<str>,
    pub object: Arc<str>,
    pub kind: FunctionKind,
    pub group: Option<Arc<str>>,
    /// The function's ids in the first file of each side. Functions that are alike are taken together.
    #[serde(skip)]
    pub ids: [Vec<FuncId>; 2],
    #[serde(flatten)]
    pub compared: Compared,
}

#[derive(Clone, Debug, Serialize)]
pub struct PathDiff {
    /// Functions from root to leaf.
    pub path: Vec<Arc<str>>,
    /// The same with groups, as tables show them.
    #[serde(skip)]
    pub labels: Vec<String>,
    #[serde(flatten)]
    pub compared: Compared,
}

/// The changes of a function or a path.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    #[serde(rename = "in")]
    pub presence: Presence,
    pub old_calls: u64,
    pub new_calls: u64,
    /// The verdict on the chosen metric.
    pub verdict: Verdict,
    pub failed: bool,
    pub changes: Changes,
}

/// The change of each metric that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes(Vec<(Metric, Change)>);

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    pub old: Option<f64>,
    pub new: Option<f64>,
    pub change_percent: Option<f64>,
    /// Bounds of the change, with the stated confidence.
    pub low_percent: Option<f64>,
    pub high_percent: Option<f64>,
    pub verdict: Verdict,
}

impl Changes {
    #[cfg(test)]
    pub(super) fn of_one(metric: Metric, change: Change) -> Self {
        Self(vec![(metric, change)])
    }

    /// Returns the change of a metric: nothing is known of one that was not asked for.
    pub fn of(&self, metric: Metric) -> &Change {
        let found = self.0.iter().find(|(known, _)| *known == metric);
        found.map_or(&Change::UNKNOWN, |(_, change)| change)
    }
}

impl Serialize for Changes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (metric, change) in &self.0 {
            map.serialize_entry(&metric.key(), change)?;
        }
        map.end()
    }
}

pub(super) fn assemble(
    sources: &[&[ComparedFile<'_>]; 2],
    surveys: &[Vec<Survey<'_>>; 2],
    sides: &[Side; 2],
    catalogue: &Catalogue,
    chosen: &Chosen,
    Verdicts { metrics, judged }: Verdicts,
    options: &Options,
) -> Diff {
    let mut rows = judged.iter().enumerate().map(|(slot, judged)| {
        let calls = [0, 1].map(|side: usize| -> u64 {
            surveys[side].iter().map(|survey| survey.index.of_slot(chosen, slot).calls).sum()
        });
        Compared::new(calls, &metrics, judged, options)
    });
    let named = |id: &FuncId| &catalogue.functions[id.index()];
    let ids = surveys.each_ref().map(|side| ids(side, catalogue.functions.len()));
    let functions: Vec<FunctionDiff> = chosen
        .functions
        .iter()
        .zip(&mut rows)
        .map(|(id, compared)| {
            let Named { name, object, kind, group } = named(id).clone();
            let ids = ids.each_ref().map(|of_side| of_side[id.index()].clone());
            FunctionDiff { name, object, kind, group, ids, compared }
        })
        .collect();
    let label = |id: &FuncId| {
        let named = named(id);
        qualified(named.kind, named.group.as_deref(), &named.name).into_owned()
    };
    let paths = chosen.paths.iter().zip(&mut rows).map(|(path, compared)| {
        let functions = catalogue.path(*path);
        let path = functions.iter().map(|id| named(id).name.clone()).collect();
        PathDiff { path, labels: functions.iter().map(label).collect(), compared }
    });
    let [old, new] =
        [0, 1].map(|side: usize| SideReport::new(sources[side], &surveys[side], &sides[side]));
    let mut notes = notes::notes(sources, surveys, [&old, &new]);
    notes.extend(drift::notes(sides, &functions, options.metric));
    notes.extend(notes::by_address(functions.iter().map(|it| &*it.name)));
    notes.extend(same_factor::note(functions.iter().map(|it| &it.compared), options.metric));
    Diff {
        schema: SCHEMA,
        part: None,
        metric: options.metric,
        metrics: metrics.clone(),
        confidence_percent: CONFIDENCE * 100.0,
        margin_percent: options.margin,
        rounds: ROUNDS as u64,
        fail_over_percent: options.fail_over,
        failed: functions.iter().any(|function| function.compared.failed),
        paths: paths.collect(),
        functions,
        functions_left_out: chosen.functions_left_out,
        paths_left_out: chosen.paths_left_out,
        notes,
        old,
        new,
    }
}

/// Returns the ids that each function of the catalogue has in the first file of a side.
fn ids(side: &[Survey<'_>], functions: usize) -> Vec<Vec<FuncId>> {
    let mut ids = vec![Vec::new(); functions];
    let first = side.first().map_or(&[][..], |survey| &survey.index.functions);
    for (of_file, known) in (0..).map(FuncId).zip(first) {
        ids[known.index()].push(of_file);
    }
    ids
}

impl SideReport {
    fn new(sources: &[ComparedFile<'_>], surveys: &[Survey<'_>], side: &Side) -> Self {
        let mut report = Self {
            files: sources.iter().map(|source| source.file.clone()).collect(),
            kind: SourceKind::Recording,
            time: sources.iter().filter_map(SideTime::of).max_by_key(|time| time.to_ns),
            duration_ns: Nanos::ZERO,
            stretches: side.stretches() as u64,
            loss: LossReport::default(),
        };
        for survey in surveys {
            let (duration, loss) = match &survey.content {
                Surveyed::Recording(read) => (read.duration(), read.loss()),
                Surveyed::Report(facts) => {
                    report.kind = SourceKind::Report;
                    (facts.duration_ns, facts.loss)
                }
            };
            report.duration_ns = report.duration_ns.saturating_add(duration);
            report.loss.add(&loss);
        }
        report
    }
}

impl Compared {
    pub(super) fn new(
        [old_calls, new_calls]: [u64; 2],
        metrics: &[Metric],
        judged: &[Judged],
        options: &Options,
    ) -> Self {
        let presence = match (old_calls, new_calls) {
            (_, 0) => Presence::Old,
            (0, _) => Presence::New,
            _ => Presence::Both,
        };
        let is_in = |other| presence == Presence::Both || presence == other;
        let change = |judged| Change::new(judged, is_in(Presence::Old), is_in(Presence::New));
        let changes = metrics.iter().copied().zip(judged.iter().map(change));
        let changes = Changes(changes.collect());
        let of_metric = changes.of(options.metric);
        let verdict = of_metric.verdict;
        let failed = options.fail_over.is_some_and(|limit| {
            verdict.is_worse() && of_metric.change_percent.is_some_and(|change| change > limit)
        });
        Self { presence, old_calls, new_calls, verdict, failed, changes }
    }
}

impl Change {
    /// Returns whether the number may have halved, and may as well have doubled. Where only one of
    /// these is possible, the interval excludes the other.
    pub fn is_open(&self) -> bool {
        let reaches = self.low_percent.is_some_and(|low| low <= -50.0)
            && self.high_percent.is_some_and(|high| high >= 100.0);
        self.verdict == Verdict::Noise && reaches
    }

    const UNKNOWN: Self = Self {
        old: None,
        new: None,
        change_percent: None,
        low_percent: None,
        high_percent: None,
        verdict: Verdict::Unjudged,
    };

    fn new(judged: &Judged, in_old: bool, in_new: bool) -> Self {
        let known = |value: f64, is_in: bool| (is_in && value.is_finite()).then(|| rounded(value));
        let percent = |ratio: f64| (ratio.is_finite()).then(|| rounded((ratio - 1.0) * 100.0));
        let interval = judged.interval.unwrap_or((f64::NAN, f64::NAN));
        Self {
            old: known(judged.old, in_old),
            new: known(judged.new, in_new),
            change_percent: percent(judged.new / judged.old).filter(|_| in_old && in_new),
            low_percent: percent(interval.0),
            high_percent: percent(interval.1),
            verdict: judged.verdict,
        }
    }
}

/// Rounds to three decimals: further digits mean nothing.
fn rounded(value: f64) -> f64 {
    if value.abs() < 1e12 { (value * 1e3).round() / 1e3 } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_is_what_may_have_halved_or_doubled() {
        let is_open = |low, high, verdict| {
            let change = Change {
                low_percent: Some(low),
                high_percent: Some(high),
                verdict,
                ..Change::UNKNOWN
            };
            change.is_open()
        };
        assert!(is_open(-50.0, 100.0, Verdict::Noise));
        assert!(is_open(-73.0, 290.0, Verdict::Noise));
        // It has not doubled, or not halved.
        assert!(!is_open(-73.0, 99.0, Verdict::Noise));
        assert!(!is_open(-49.0, 290.0, Verdict::Noise));
        assert!(!is_open(-73.0, 290.0, Verdict::TooFew));
        assert!(!Change { verdict: Verdict::Noise, ..Change::UNKNOWN }.is_open());
    }
}
