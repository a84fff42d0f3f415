//! Asks a running daemon at its control socket for its processes, and for the data of one.

use crate::{
    daemon::control::{Ask, Whom, client},
    session::keep::live::Snapshot,
};
use anyhow::{Context, ensure};
use ctrace_core::{report::Report, units::Nanos};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use std::path::Path;

/// A process that the daemon traces.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Traced {
    pub(crate) target: String,
    pub(crate) process: Process,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    #[serde(default)]
    pub(crate) exe: Value,
    #[serde(default)]
    pub(crate) since_s: u64,
    #[serde(default)]
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) last: Last,
}

/// The process's last report.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Last {
    pub(crate) calls: u64,
    pub(crate) lost: u64,
    pub(crate) cost_percent: Option<f64>,
}

#[derive(Deserialize)]
struct Targets {
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    target: String,
    #[serde(default)]
    processes: Vec<Process>,
}

#[derive(Deserialize)]
struct Reports {
    reports: Vec<OfDaemon>,
}

#[derive(Deserialize)]
struct OfDaemon {
    daemon: Facts,
    #[serde(flatten)]
    report: Report,
}

#[derive(Deserialize)]
struct Facts {
    #[serde(default)]
    cpu_ns: Option<Nanos>,
    #[serde(default)]
    spent_ns: Vec<Nanos>,
    #[serde(default)]
    paths_open: Vec<u64>,
    #[serde(default)]
    timed_ns: Vec<u64>,
    #[serde(default)]
    timed_squares: Vec<String>,
}

impl From<OfDaemon> for Snapshot {
    fn from(OfDaemon { daemon, mut report }: OfDaemon) -> Self {
        for (path, open) in report.paths.iter_mut().zip(daemon.paths_open) {
            path.open = open;
        }
        let sums = daemon.timed_ns.into_iter().zip(&daemon.timed_squares);
        for (function, (timed_ns, squares)) in report.functions.iter_mut().zip(sums) {
            // Without exact squares, the rounded numbers of the report remain.
            if let Ok(squares) = squares.parse() {
                function.restore(timed_ns, squares);
            }
        }
        let stretch = report.duration_ns;
        report.functions.iter_mut().for_each(|function| function.set_stretch(stretch));
        Self { report, spent: daemon.spent_ns, cpu: daemon.cpu_ns }
    }
}

/// Returns all processes of all targets.
pub(crate) fn processes(socket: &Path) -> anyhow::Result<Vec<Traced>> {
    let Targets { targets } = ask(socket, Ask::Targets)?;
    let of = |Target { target, processes }: Target| {
        processes.into_iter().map(move |process| Traced { target: target.clone(), process })
    };
    Ok(targets.into_iter().flat_map(of).collect())
}

/// Returns the intervals that ended since the last look, then the interval so far. The costs of
/// each cover the whole interval.
pub(crate) fn look(socket: &Path, pid: u32, since: Option<Nanos>) -> anyhow::Result<Vec<Snapshot>> {
    let whom = Whom { target: None, pid: Some(pid) };
    let question = Ask::Report { whom, table: false, full: true, since_ns: since };
    let Reports { reports } = ask(socket, question)?;
    ensure!(!reports.is_empty(), "the daemon has no report of process {pid}");
    Ok(reports.into_iter().map(Snapshot::from).collect())
}

fn ask<T: DeserializeOwned>(socket: &Path, question: Ask) -> anyhow::Result<T> {
    let (reply, _) = client::ask(socket, question)?;
    serde_json::from_value(Value::Object(reply.what)).context(client::NO_SENSE)
}
