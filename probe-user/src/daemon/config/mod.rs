//! The operator's wishes: `ctrace.toml`, read whole and checked before anything is done.
//!
//! The keys are a registry ([`keys`]). The reader, defaults, documentation and example file derive
//! from it.
#![allow(clippy::unit_arg, reason = "what a key means is one assignment")]

#[cfg(test)]
mod docs;
mod document;
mod fleet;
pub(crate) mod keys;
mod metrics;
mod pprof;
mod remarks;
mod store;
mod target;
mod value;

pub(crate) use fleet::{FLEET, Fleet};
pub(crate) use metrics::{METRICS, Metrics};
pub(crate) use pprof::{PPROF, Pprof};
pub(crate) use target::{ByValue, Output, ReportKind, Reports, Target};

use super::profiles;
use anyhow::Context;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

/// The contents of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Config {
    pub daemon: Daemon,
    pub metrics: Metrics,
    pub pprof: Pprof,
    pub fleet: Fleet,
    /// In the order of the file. A process goes to its first match.
    pub targets: Vec<Target>,
    /// The common settings, for processes that are attached to by hand.
    pub common: Target,
}

/// The settings of the daemon itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Daemon {
    pub socket: PathBuf,
    /// The group that may use the socket besides root.
    pub group: Option<u32>,
    pub max_processes: u32,
    pub rescan: Duration,
    pub recordings: Recordings,
}

/// The folder of recordings, and their limits.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Recordings {
    pub folder: PathBuf,
    pub files: u32,
    pub bytes: u64,
}

impl Config {
    /// Returns the receivers of profiles.
    pub(crate) fn profiles(&self) -> profiles::Options {
        let [pyroscope, parca] = self.pprof.pushes();
        profiles::Options { otlp: self.metrics.profiles(), pyroscope, parca }
    }

    pub(crate) fn load(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| {
            let place = path.display();
            format!(
                "cannot read {place} (--config FILE names another; docs/ctrace.toml is an example)"
            )
        })?;
        Self::parse(&text).map_err(|error| anyhow::anyhow!("{}:{error}", path.display()))
    }

    /// Parses the file. A mistake has its line and column.
    pub(crate) fn parse(text: &str) -> Result<Self, Mistake> {
        document::parse(text)
    }
}

/// A mistake and its place.
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
