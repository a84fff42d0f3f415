//! A JSON report as an input of a comparison: data of functions, without single calls.

use super::metric::Metric;
use crate::calls::paths::{Node, ROOT};
use crate::function::{ExitSeen, FunctionInfo};
use crate::report::{self, FunctionReport, LossReport};
use crate::units::{FuncId, Nanos};
use serde::Deserialize;

/// The reason why a file is no comparable report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FactsError {
    #[error("is neither a recording of `ctrace record` nor a report of `--format json`")]
    NotAReport,
    #[error("holds several reports, one for each --interval: compare files with one each")]
    Several,
    #[error("is a report of the version {0}, which this ctrace does not know: use a newer one")]
    Newer(String),
}

/// The part of a report that is compared.
#[derive(Clone, Debug, Deserialize)]
pub struct ReportFacts {
    schema: String,
    pub(crate) target: TargetFacts,
    pub(crate) duration_ns: Nanos,
    #[serde(default)]
    pub(crate) loss: LossReport,
    pub(crate) functions: Vec<FunctionReport>,
    pub(crate) paths: Vec<Path>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct TargetFacts {
    exe: Option<String>,
    #[serde(default)]
    program: Option<String>,
}

impl TargetFacts {
    /// Returns the name of the program as [`TargetReport::name`](crate::report::TargetReport::name)
    /// does.
    pub(crate) fn name(&self) -> Option<&str> {
        self.program.as_deref().or(self.exe.as_deref())
    }
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Path {
    parent: Option<usize>,
    function: usize,
    pub(crate) calls: u64,
    pub(crate) total_ns: Nanos,
    self_ns: Nanos,
    p50_ns: Option<Nanos>,
    p90_ns: Option<Nanos>,
    p99_ns: Option<Nanos>,
}

impl ReportFacts {
    pub fn parse(text: &[u8]) -> Result<Self, FactsError> {
        let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Self>();
        let facts = match values.next() {
            Some(Ok(facts)) => facts,
            _ => return Err(Self::no_report(text)),
        };
        if facts.schema != report::SCHEMA {
            return Err(Self::no_report(text));
        }
        match values.next() {
            None => Ok(facts),
            Some(_) => Err(FactsError::Several),
        }
    }

    fn no_report(text: &[u8]) -> FactsError {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        match serde_json::from_slice::<Head>(text) {
            Ok(head)
                if head.schema.starts_with("ctrace.report.") && head.schema != report::SCHEMA =>
            {
                FactsError::Newer(crate::report::render::clean::clean(&head.schema).into_owned())
            }
            _ => FactsError::NotAReport,
        }
    }

    /// Returns its functions in a recording's form, for selection.
    pub fn functions(&self) -> Vec<FunctionInfo> {
        let info = |function: &FunctionReport| FunctionInfo {
            short_name: function.short_name.clone(),
            full_name: function.full_name.clone(),
            aliases: function.aliases.clone(),
            kind: function.kind,
            group: function.group.clone(),
            point: function.point,
            exit: ExitSeen::Never,
            ..FunctionInfo::new(function.name.clone(), function.object.clone())
        };
        self.functions.iter().map(info).collect()
    }

    /// Returns the tree of its paths after a root. A broken path is left out.
    pub(crate) fn nodes(&self) -> Vec<Node> {
        let mut nodes = vec![Node::root()];
        for (place, path) in self.paths.iter().enumerate() {
            let parent = path.parent.map_or(ROOT as usize, |parent| parent.saturating_add(1));
            let known = parent <= place && path.function < self.functions.len();
            let node = match known {
                true => {
                    let func = FuncId(path.function as u32);
                    Node::new(func, parent as u32, &nodes[parent], false)
                }
                false => Node { other: true, ..Node::root() },
            };
            nodes.push(node);
        }
        nodes
    }

    fn rate(&self, amount: f64) -> f64 {
        match self.duration_ns.0 {
            0 => f64::NAN,
            duration => amount * 1e9 / duration as f64,
        }
    }

    /// Returns the metrics of a function; NaN where there is none.
    pub(super) fn values_of(&self, row: &FunctionReport, metrics: &[Metric]) -> Vec<f64> {
        let of = |metric: Metric| (metric.number().number().of)(row).real().unwrap_or(f64::NAN);
        self.values(metrics, of)
    }

    /// Returns the metrics of a path.
    pub(super) fn values_on(&self, path: &Path, metrics: &[Metric]) -> Vec<f64> {
        self.values(metrics, |metric| path.number(metric))
    }

    /// Returns these numbers; amounts are those of a second.
    fn values(&self, metrics: &[Metric], of: impl Fn(Metric) -> f64) -> Vec<f64> {
        let value = |&metric: &Metric| match metric.is_rate() {
            true => self.rate(of(metric)),
            false => of(metric),
        };
        metrics.iter().map(value).collect()
    }
}

fn real(ns: Option<Nanos>) -> f64 {
    ns.map_or(f64::NAN, |ns| ns.0 as f64)
}

impl Path {
    fn number(&self, metric: Metric) -> f64 {
        match metric {
            Metric::CALLS => self.calls as f64,
            Metric::P50 => real(self.p50_ns),
            Metric::P90 => real(self.p90_ns),
            Metric::P99 => real(self.p99_ns),
            Metric::TOTAL => self.total_ns.0 as f64,
            Metric::OWN => self.self_ns.0 as f64,
            // A path of a report has no other numbers.
            _ => f64::NAN,
        }
    }
}
