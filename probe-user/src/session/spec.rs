//! The specification of a session, for whoever starts one: a command, the daemon, a screen.

use super::budget::slowdown::SlowdownPolicy;
use crate::{
    bpf::LinkChoice,
    target::{
        place::Returns, read::budget::ObjectLimits, select::awaits::Awaits,
        usdt::provider::ProviderFile, values::asked::AskedValues,
    },
};
use anyhow::ensure;
use ctrace_core::{filter::Filter, report::By};
use std::{path::PathBuf, time::Duration};

/// The subject of a trace, and its options.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TraceSpec {
    pub select: SelectSpec,
    pub most: SelectionLimits,
    pub filter: Filter,
    pub probes: ProbeSpec,
}

/// Patterns of functions, USDT probes and marker scopes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SelectSpec {
    pub functions: Vec<String>,
    pub usdt: Vec<String>,
    pub markers: Vec<String>,
    pub exclude: Vec<String>,
    /// Pairs of USDT probes that are timed as calls, beside those that their names tell.
    pub pairs: Vec<String>,
    /// USDT probes are points whatever their names are.
    pub no_pairs: bool,
    /// The number of calls from chosen functions to others that are traced as well.
    pub with_callees: u32,
    /// The number of calls of chosen functions by others that are traced as well.
    pub with_callers: u32,
    /// Values of calls, and conditions on them. Their functions are selected, too.
    pub values: Vec<AskedValues>,
    /// What arguments of USDT probes mean.
    pub providers: Vec<ProviderFile>,
    /// Locks are followed. `values` has what that needs.
    pub locks: bool,
}

impl SelectSpec {
    /// Returns the values with their functions. A condition without functions holds for all that are
    /// chosen by their names.
    pub(crate) fn asked_of_functions(&self) -> anyhow::Result<Vec<AskedValues>> {
        let mut all = Vec::new();
        for asked in &self.values {
            if !asked.functions.is_empty() {
                all.push(asked.clone());
                continue;
            }
            let condition = asked.condition.as_ref();
            ensure!(
                !self.functions.is_empty(),
                "the condition `{0}` applies to no function: write --where 'FUNCTION: {0}', or choose \
                 functions with -f",
                condition.map(ToString::to_string).unwrap_or_default()
            );
            all.extend(
                self.functions
                    .iter()
                    .map(|functions| AskedValues { functions: functions.clone(), ..asked.clone() }),
            );
        }
        Ok(all)
    }
}

/// Limits beyond which a selection is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SelectionLimits {
    pub max_functions: usize,
    /// Limits for reading one program or library.
    pub object: ObjectLimits,
}

/// The way of a thread whose marker buffer finds its ring nearly full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnFull {
    /// It goes on. What finds no room is lost, and counted.
    Drop,
    /// It waits until the ring is read, for a limited time.
    Wait,
}

/// The way probes are placed, and their permitted cost.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ProbeSpec {
    pub returns: Returns,
    pub link: LinkChoice,
    /// Perf links even for many functions.
    pub force_perf: bool,
    /// Children of the target are traced, too.
    pub follow: bool,
    /// What is asked for may come later.
    pub wait: bool,
    /// The facts by which the kernel knows later processes; 0: none.
    pub admits: u32,
    /// Bytes of each CPU's ring; none: by the memory there is.
    pub ring_size: Option<u64>,
    /// None: it waits where the kernel lets it.
    pub on_full: Option<OnFull>,
    /// Bytes of memory for calls.
    pub spool: u64,
    /// Percent of the target's own CPU time.
    pub budget: Option<f64>,
    /// Waits of threads are told apart from their work.
    pub waits: bool,
    /// Who ends these waits is told, too.
    pub wakers: bool,
    /// Calls are counted in the kernel, without an event of each.
    pub aggregate: bool,
    pub max_slowdown: SlowdownPolicy,
}

impl ProbeSpec {
    /// Returns the same for the target's children, too.
    pub(crate) fn following(&self) -> Self {
        Self { follow: true, ..self.clone() }
    }

    /// Returns what may come later and have what is asked for.
    pub(crate) fn awaits(&self) -> Option<Awaits> {
        match self {
            Self { follow: true, .. } => Some(Awaits::Started),
            Self { wait: true, .. } => Some(Awaits::Loaded),
            _ => None,
        }
    }
}

/// The contents, form and destination of reports.
#[derive(Clone, Debug)]
pub(crate) struct ReportSpec {
    pub format: ReportFormat,
    /// Names of views; none: the usual ones.
    pub views: Vec<String>,
    pub sort: Option<String>,
    pub top: Option<usize>,
    pub center_cut: f64,
    pub min_percent: Option<f64>,
    /// The time between reports; none: one report.
    pub interval: Option<Duration>,
    /// Each report covers everything since the start.
    pub cumulative: bool,
    /// Times contain the cost of probes, even where it is known.
    pub raw: bool,
    /// The function whose calls are frames, or the mark between frames.
    pub frame: Option<String>,
    /// The rule for parts that have reports of their own.
    pub by: Option<By>,
    /// Calls are counted in the kernel: none is kept.
    pub aggregate: bool,
    /// The functions that were chosen by a name without a wildcard.
    pub named: Vec<String>,
    /// A file, or `-` for stdout.
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportFormat {
    Table,
    Json,
    Csv,
}
