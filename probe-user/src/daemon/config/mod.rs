//! What the operator asks for: `ctrace.toml`, read whole and checked before anything is done.
//!
//! The keys are a registry ([`keys`]) from which reading, defaults, the documentation and the
//! example file derive.
#![allow(clippy::unit_arg, reason = "what a key means is one assignment")]

#[cfg(test)]
mod docs;
mod document;
pub(crate) mod keys;
mod metrics;
mod remarks;
mod target;
mod value;

pub(crate) use metrics::{METRICS, Metrics};
pub(crate) use target::{Flight, Matching, Output, ReportKind, Reports, Target, TargetName};

use anyhow::Context;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// Everything in the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Config {
    pub daemon: Daemon,
    pub metrics: Metrics,
    /// In the order of the file: the first one that matches a process has it.
    pub targets: Vec<Target>,
    /// What they have in common, for processes that are attached to by hand.
    pub common: Target,
}

/// What concerns the daemon itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Daemon {
    pub socket: PathBuf,
    /// Who may use the socket besides root.
    pub group: Option<u32>,
    pub max_processes: u32,
    pub rescan: Duration,
    pub recordings: Recordings,
}

/// Where recordings are kept, and how many.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Recordings {
    pub folder: PathBuf,
    pub files: u32,
    pub bytes: u64,
}

impl Config {
    pub(crate) fn load(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| {
            let place = path.display();
            format!(
                "cannot read {place} (--config FILE names another; docs/ctrace.toml is an example)"
            )
        })?;
        Self::parse(&text).map_err(|error| anyhow::anyhow!("{}:{error}", path.display()))
    }

    /// A mistake is told with its line and column.
    pub(crate) fn parse(text: &str) -> Result<Self, Mistake> {
        document::parse(text)
    }
}

/// What is wrong, and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mistake {
    pub line: usize,
    pub column: usize,
    pub what: String,
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.what)
    }
}

#[cfg(test)]
mod tests;
