//! One `[[target]]`: its processes, the functions to trace, and the outputs.

use crate::{
    daemon::ids::TargetName,
    session::{keep::flight::TooSlow, spec::TraceSpec},
    target::{
        process::{
            facts::{Facts, ProgramFacts},
            glob::PathGlob,
        },
        select::pattern,
        values::asked::AskedValues,
    },
    ui::ViewOptions,
    values::by_value,
};
use ctrace_core::units::Nanos;
use std::{path::PathBuf, time::Duration};

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Target {
    pub id: TargetName,
    pub matching: Matching,
    /// The limit of processes at a time.
    pub max_processes: u32,
    pub what: TraceSpec,
    /// Groups whose scopes are selected; merged into `what` once all keys have been read.
    pub groups: Vec<String>,
    /// Values of calls that are asked for; merged in the same way.
    pub args: Vec<AskedValues>,
    pub rets: Vec<AskedValues>,
    /// Metrics tell calls apart by this value.
    pub by: Option<ByValue>,
    /// The number of values that have series of their own.
    pub by_values: usize,
    /// Metrics tell the numbers of plots.
    pub plots: bool,
    pub reports: Reports,
    pub flight: Flight,
}

impl Target {
    /// Selects the scopes of its groups, and functions whose values are asked for.
    pub(crate) fn select_groups(&mut self) {
        self.what.select.values = [self.args.as_slice(), &self.rets].concat();
        let scopes = self.groups.iter().map(|group| format!("{group}/*"));
        self.what.select.markers.extend(scopes);
    }
}

/// The calls of some functions, and a value of theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ByValue {
    /// A pattern of functions.
    pub function: String,
    pub argument: String,
}

impl ByValue {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (function, argument) =
            by_value(text).ok_or("FUNCTION: ARG, as in 'handle: key', or off")?;
        pattern::Pattern::parse(function).map_err(|error| error.to_string())?;
        Ok(Self { function: function.to_owned(), argument: argument.to_owned() })
    }
}

/// Conditions that must all hold. Of several patterns of one key, one must match.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Matching {
    pub exe: Vec<PathGlob>,
    pub name: Vec<PathGlob>,
    pub command: Vec<PathGlob>,
    pub user: Vec<u32>,
    pub cgroup: Vec<PathGlob>,
    pub unit: Vec<PathGlob>,
    pub container: Vec<String>,
}

impl Matching {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether a process that runs this program may match.
    pub(crate) fn admits(&self, program: &ProgramFacts) -> bool {
        any(&self.exe, &program.exe)
            && (any(&self.name, &program.name) || any(&self.name, program.file_name()))
    }

    pub(crate) fn matches(&self, facts: &Facts) -> bool {
        self.matches_but_for_command(facts) && any(&self.command, &facts.command)
    }

    /// Returns whether the command line decides.
    pub(crate) fn depends_on_command(&self, facts: &Facts) -> bool {
        !self.command.is_empty() && self.matches_but_for_command(facts)
    }

    fn matches_but_for_command(&self, facts: &Facts) -> bool {
        let optional = |patterns: &[PathGlob], text: Option<&str>| {
            patterns.is_empty() || text.is_some_and(|text| any(patterns, text))
        };
        !self.is_empty()
            && self.admits(&facts.program)
            && (self.user.is_empty() || self.user.contains(&facts.user))
            && any(&self.cgroup, &facts.cgroup)
            && optional(&self.unit, facts.unit())
            && (self.container.is_empty()
                || facts.container().is_some_and(|id| {
                    self.container.iter().any(|wanted| id.starts_with(wanted.as_str()))
                }))
    }
}

fn any(patterns: &[PathGlob], text: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(text))
}

/// The output and interval of reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reports {
    pub kind: ReportKind,
    pub interval: Duration,
    pub output: Output,
    pub views: Vec<String>,
    pub sort: Option<String>,
    pub top: Option<usize>,
    pub center_cut: f64,
    pub rotate_bytes: u64,
    pub rotate_age: Option<Duration>,
    pub keep_files: u32,
    pub keep_bytes: u64,
}

impl Reports {
    /// Returns the chosen views and rows, if they fit the reports of a daemon.
    pub(crate) fn view_options(&self) -> anyhow::Result<ViewOptions> {
        let views = ViewOptions {
            views: self.views.iter().map(|name| name.parse()).collect::<Result<_, _>>()?,
            sort: self.sort.clone(),
            top: self.top,
            ..ViewOptions::default()
        };
        views.check(false)?;
        views.check_intervals()?;
        Ok(views)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ReportKind {
    #[default]
    Json,
    Table,
    None,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Output {
    /// Under systemd this is the journal.
    #[default]
    Stdout,
    File(PathBuf),
}

/// The flight recorder: keeps the newest calls in memory, and writes them after a slow one.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Flight {
    /// `None` switches it off.
    pub slow: Option<Duration>,
    pub functions: Vec<String>,
    pub keep: Duration,
    pub memory: u64,
    pub pause: Duration,
}

impl Flight {
    /// Returns the calls that are too slow, or `None` if it is off.
    pub(crate) fn too_slow(&self) -> anyhow::Result<Option<TooSlow>> {
        let functions = self.functions.iter().map(|text| pattern::Pattern::parse(text));
        let functions = functions.collect::<Result<_, _>>()?;
        let threshold = self.slow.map(|slow| Nanos(slow.as_nanos() as u64));
        Ok(threshold.map(|threshold| TooSlow { threshold, functions }))
    }
}
